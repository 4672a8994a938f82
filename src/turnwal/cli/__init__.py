"""The command line: a person inspects, plans, recovers and settles sessions.

Promises:
- Nothing that a log, a file name or another process wrote reaches a terminal as a control character.
- An error is its code, one sentence and a hint on standard error; a traceback appears only with TURNWAL_DEBUG=1.
- Starting imports click and the version; each verb imports what it alone needs.
"""


def main() -> None:
    """Run the command line on the arguments of this process and exit."""
    try:
        from turnwal.cli.app import app
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app(prog_name="turnwal")
