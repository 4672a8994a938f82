"""`turnwal approve`: grant or deny a call that waits for a person."""

import click

from turnwal.cli import exits
from turnwal.cli.places import accept_loss_option, at, json_option, session_argument, store_option, writing
from turnwal.cli.screen import Screen, print_json


@click.command(short_help="Grant or deny a call that waits.")
@session_argument()
@click.argument("call", metavar="CALL")
@click.option("--deny", is_flag=True, help="The call may not run; it is answered with a text for the model.")
@click.option("--text", metavar="T", help="With --deny: what the model reads as the result.")
@click.option("--by", metavar="WHO", default="", help="Who decided.")
@accept_loss_option
@store_option
@json_option
def approve(
    *,
    session: str,
    call: str,
    deny: bool,
    text: str | None,
    by: str,
    accept_loss: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Grant a call that waits for approval, or deny it with --deny. Runs nothing: the agent goes on with it later.

    CALL is the key that `turnwal show` prints, like 12.1. A call without an open question is refused, and so is a
    session with interrupted work (exit 3): recover it first.
    """
    if text is not None and not deny:
        raise click.UsageError("--text is the answer of a denied call; say --deny with it")
    with at(session, store) as place, writing(place, accept_loss=accept_loss) as opened:
        handle = opened.call(call)
        if not deny:
            event = handle.grant(by=by)
        else:
            event = handle.deny(by=by) if text is None else handle.deny(by=by, text=text)
        head = str(opened.head)
    decision = "denied" if deny else "granted"
    if as_json:
        print_json({"session": place.name, "call": call, "decision": decision, "seq": event.seq, "head": head})
    else:
        Screen().line(f"{place.name}: call {call} {handle.name or ''}".rstrip(), f" {decision} (seq {event.seq})")
    return exits.OK
