"""Every error turnwal raises, split by who has to act.

    TurnwalError
    ├── CallerError          what was asked for cannot be done as asked: the caller changes the call
    │   ├── InvalidEvent         invalid_event         the event is not one; nothing was appended
    │   ├── OverLimit            over_limit            a limit of `limits.py` was passed
    │   ├── InvalidName          invalid_name          a session id, run or call key that is no such thing
    │   ├── InvalidStoreUrl      invalid_store_url     a store URL that names no store
    │   ├── SessionNotFound      session_not_found     no such session in the store
    │   ├── SessionExists        session_exists        the session is there already
    │   ├── CallNotFound         call_not_found        no such call in the session
    │   ├── Refused              refused               an operation that would make the history wrong or ambiguous
    │   └── SessionClosed        session_closed        the object was closed before
    ├── StoreError           the store could not do it: the operator looks at the machine
    │   ├── StoreFailed          store_failed          the disk or the server said no; the outcome may be unknown
    │   ├── StoreFull            store_full            no space left
    │   ├── StoreUnsupported     store_unsupported     a place where the promises cannot be kept
    │   ├── SessionHeld          session_held          another owner is alive
    │   ├── OwnershipLost        ownership_lost        this owner is one no more, so nothing of it is accepted
    │   └── ClosedAfterFailure   closed_after_failure  an earlier failure closed the session to writes
    └── HistoryError         what is stored is not what it should be: a person decides
        ├── Damaged              damaged               unreadable bytes before readable records
        ├── DamagedStart         damaged_start         the first line is unreadable
        ├── EmptySession         empty_session         there is nothing in it
        ├── TooNew               too_new               written by a newer turnwal
        ├── Interrupted          interrupted           interrupted work, and the caller asked not to recover it
        └── HeadMismatch         head_mismatch         the log is not the one that a head from elsewhere commits to

Each error carries what was attempted (`action`), on what (`subject`), why it failed (the message), what to do next
(`hint`), and whether the same call may succeed later without any change (`retriable`).
"""

from collections.abc import Mapping
from typing import ClassVar


class TurnwalError(Exception):
    """The base of every error turnwal raises on purpose.

    `str(error)` is the sentence without the hint. `code` is stable and documented; match on it or on the class.
    """

    code: ClassVar[str] = "error"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, *, action: str = "", subject: str = "", hint: str = "") -> None:
        """Hold the sentence and its parts; no part is required, a hint nearly always helps."""
        super().__init__(message)
        self.message = message
        self.action = action
        self.subject = subject
        self.hint = hint

    def __str__(self) -> str:
        """One sentence: what was attempted, on what, and why it failed."""
        where = " ".join(part for part in (self.action, self.subject) if part)
        return f"{where}: {self.message}" if where else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Survive pickling, as an error crosses process pools."""
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))

    def to_json(self) -> Mapping[str, object]:
        """The fields of the error as plain values, in a fixed order."""
        return {
            "code": self.code,
            "action": self.action,
            "subject": self.subject,
            "message": self.message,
            "hint": self.hint,
            "retriable": self.retriable,
        }


def _rebuild(kind: type[TurnwalError], message: str, state: dict[str, object]) -> TurnwalError:
    error = kind.__new__(kind, message)
    error.__dict__.update(state)
    return error


class CallerError(TurnwalError):
    """The caller's mistake: nothing was written, and the same call fails again."""

    code = "caller_error"


class InvalidEvent(CallerError):
    """The event is not one: unknown type, wrong JSON type, a value JSON cannot hold, a broken replace."""

    code = "invalid_event"


class OverLimit(CallerError):
    """A limit was passed; the message names the limit and the value."""

    code = "over_limit"


class InvalidName(CallerError):
    """A session id, run or call key that is not text, is empty, or is too long."""

    code = "invalid_name"


class InvalidStoreUrl(CallerError):
    """A store URL that names no store turnwal knows."""

    code = "invalid_store_url"


class StoreNotFound(CallerError):
    """A store that was to be read and that nobody made."""

    code = "store_not_found"


class SessionNotFound(CallerError):
    """No session of that id is in the store."""

    code = "session_not_found"


class SessionExists(CallerError):
    """A session of that id is in the store already."""

    code = "session_exists"


class CallNotFound(CallerError):
    """No call of that key is in the session."""

    code = "call_not_found"


class Refused(CallerError):
    """An operation that would make the history wrong or ambiguous; nothing was written."""

    code = "refused"


class SessionClosed(CallerError):
    """The session, turn, step or call was closed before."""

    code = "session_closed"


class StoreError(TurnwalError):
    """The store could not do what it was asked."""

    code = "store_error"


class StoreFailed(StoreError):
    """The disk or the server refused. After a failed append the outcome is unknown to the caller."""

    code = "store_failed"


class StoreFull(StoreError):
    """No space is left, or a quota or file size limit was reached."""

    code = "store_full"
    retriable = True


class StoreUnsupported(StoreError):
    """A place or a version on which the store's promises cannot be kept."""

    code = "store_unsupported"


class SessionHeld(StoreError):
    """Another owner of the session is alive; `holder` describes it as it described itself."""

    code = "session_held"
    retriable = True

    def __init__(self, message: str, *, holder: str = "", **parts: str) -> None:
        """Keep the holder's own description; it is never proof of life."""
        super().__init__(message, **parts)
        self.holder = holder

    def to_json(self) -> Mapping[str, object]:
        """The fields of the error, the holder's description among them."""
        return {**super().to_json(), "holder": self.holder}


class OwnershipLost(StoreError):
    """This process no longer owns the session: it forked, was fenced off, or the file was replaced under it."""

    code = "ownership_lost"


class ClosedAfterFailure(StoreError):
    """An earlier failure left the outcome of a write unknown; the session takes no more until it is opened anew."""

    code = "closed_after_failure"


class HistoryError(TurnwalError):
    """What is stored is damaged, foreign, or from the future; turnwal does not guess."""

    code = "history_error"


class Damaged(HistoryError):
    """Unreadable bytes stand before readable records, so something recorded was lost."""

    code = "damaged"


class DamagedStart(HistoryError):
    """The first line cannot be read; such a file is never written to."""

    code = "damaged_start"


class EmptySession(HistoryError):
    """The session exists and holds nothing: it never began."""

    code = "empty_session"


class TooNew(HistoryError):
    """Written by a newer turnwal: an unknown record may already close what looks open."""

    code = "too_new"


class Interrupted(HistoryError):
    """The session holds interrupted work and the caller asked not to recover it."""

    code = "interrupted"


class HeadMismatch(HistoryError):
    """The log is shorter than, or differs from, the one that an expected or kept head commits to."""

    code = "head_mismatch"


class OutcomeUnknown(Exception):
    """Raised *by a tool* that lost its answer: the request went out, what came of it is not known.

    `call.run` records it as a result of the class `tool_outcome_unknown` instead of a failure (field case F16).
    """
