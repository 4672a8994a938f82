"""`turnwal settle`: record what was learnt later about a call whose outcome was unknown."""

import click

from turnwal.cli import exits
from turnwal.cli.places import accept_loss_option, at, json_option, session_argument, store_option, writing
from turnwal.cli.screen import Screen, print_json

OUTCOMES = ("happened", "did_not_happen", "unknown")


@click.command(short_help="Record what became of a call.")
@session_argument()
@click.argument("call", metavar="CALL")
@click.argument("outcome", metavar="OUTCOME", type=click.Choice(OUTCOMES))
@click.option("--evidence", metavar="TEXT", help="What shows it: a receipt, a log line, a link.")
@click.option("--by", metavar="WHO", default="", help="Who found out.")
@accept_loss_option
@store_option
@json_option
def settle(
    *,
    session: str,
    call: str,
    outcome: str,
    evidence: str | None,
    by: str,
    accept_loss: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Record what became of a call: happened, did_not_happen or unknown.

    CALL is the key that `turnwal show` prints, like 12.1. The earlier result stays; the new fact is appended. A session
    with interrupted work is refused (exit 3): recover it first.
    """
    with at(session, store) as place, writing(place, accept_loss=accept_loss) as opened:
        event = opened.call(call).settle(outcome, evidence=evidence, by=by)  # type: ignore[arg-type]
        head = str(opened.head)
    if as_json:
        print_json({"session": place.name, "call": call, "outcome": outcome, "seq": event.seq, "head": head})
    else:
        Screen().line(
            f"{place.name}: call {call} {event.data.get('name', '')}".rstrip(), f" {outcome} (seq {event.seq})"
        )
    return exits.OK
