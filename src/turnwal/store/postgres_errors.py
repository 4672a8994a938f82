"""What PostgreSQL and its driver say, as errors of ours.

Promises: every error of the driver becomes one with what was attempted, on which server, and what to do next. No
password is in it.

Does not: retry.
"""

from typing import Final

import psycopg
from psycopg import errors

from turnwal.core.errors import StoreError, StoreFailed, StoreFull, StoreUnsupported

_ANSWER_TO: Final = (
    ("password authentication failed", "check the user and the password of the URL"),
    ("no password supplied", "give the password in the URL, in PGPASSWORD or in a password file"),
    ("does not exist", "check the names of the user and of the database in the URL"),
    ("timeout", "the server does not answer: check the host, the port and the network between"),
)


class TooSlow(psycopg.OperationalError):
    """The server did not answer in the time that it was given."""


class Translated:
    """A block in which what psycopg raises becomes an error of ours."""

    def __init__(self, action: str, subject: str) -> None:
        """Name what is attempted, and where."""
        self._action = action
        self._subject = subject

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise `StoreFull`, `StoreUnsupported` or `StoreFailed` for an error of psycopg."""
        if isinstance(error, psycopg.Error):
            raise failure(error, self._action, self._subject) from error


def failure(error: psycopg.Error, action: str, subject: str) -> StoreError:
    """The error of ours for one of psycopg."""
    reason = " ".join(str(error).split()) or type(error).__name__
    kind: type[StoreError] = StoreFailed
    match error:
        case errors.DiskFull():
            kind, hint = StoreFull, "make room on the server, then open the session again"
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            hint = "make the tables with `turnwal migrate --store URL`, and check the search_path of the role"
        case errors.InsufficientPrivilege():
            hint = "grant the role what docs/postgres.md lists"
        case errors.ReadOnlySqlTransaction():
            hint = "this server takes no writes (a hot standby, or read-only): name the primary"
        case errors.QueryCanceled() | TooSlow():
            hint = "the server is slow or waits for a standby; open the session anew to see what is there"
        case errors.FeatureNotSupported() | errors.SyntaxError():
            kind, hint = StoreUnsupported, "the server is none that docs/postgres.md lists"
        case errors.TooManyConnections():
            hint = "raise max_connections, or share one store in each process"
        case psycopg.OperationalError() if action == "connect":
            hint = next(
                (told for part, told in _ANSWER_TO if part in reason), "is the server up, and is this its address?"
            )
        case _:
            hint = "look at the log of the server; open the session anew to see what is there"
    return kind(reason, action=action, subject=subject, hint=hint)
