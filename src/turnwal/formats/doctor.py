"""Examining sessions: one diagnosis for each, whatever is wrong with it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import apsw
import msgspec
import zstandard

from turnwal.core.errors import InvalidEvent, OverLimit, Refused, StoreFailed
from turnwal.formats.database import DatabaseBusy
from turnwal.formats.diagnosis import Diagnosis, Verdict
from turnwal.formats.finding import Unread, find
from turnwal.formats.format import Found
from turnwal.formats.liveness import in_doubt, written_ago
from turnwal.formats.weighing import weigh
from turnwal.formats.zstd import Bomb


def examine(paths: Iterable[Path | str]) -> Iterator[Diagnosis]:
    """Yield what can be said of each session at these paths and below, or at these URLs. Writes nothing."""
    for found in find(paths):
        yield unread(found) if isinstance(found, Unread) else diagnose(found)


def diagnose(found: Found, *, now: float | None = None) -> Diagnosis:
    """What can be said of one session; a file that cannot be read is a verdict, not an error.

    With `now` (Unix seconds) a session that was written to moments ago is one that may be in use, and nothing in it is
    said to have not started.
    """
    try:
        with reading_errors(found):
            diagnosis = _resumed(found, weigh(found, found.format.read(found, "calls")))
        ago = None if now is None else written_ago(found, now)
        return diagnosis if ago is None else in_doubt(diagnosis, ago)
    except StoreFailed as error:
        verdict: Verdict = "busy" if isinstance(error.__cause__, DatabaseBusy) else "unreadable"
        return Diagnosis(
            found.where,
            found.format.name,
            verdict,
            session=found.session,
            on_resume="unknown",
            problem=error.message,
        )
    except (InvalidEvent, OverLimit) as error:  # a record holds what no event may
        return Diagnosis(
            found.where,
            found.format.name,
            "unreadable",
            session=found.session,
            on_resume="unknown",
            problem=error.message,
        )


def _resumed(found: Found, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with what becomes of the session where nothing that is open is in the way."""
    if found.format.resumed is None or diagnosis.on_resume != "continues":
        return diagnosis
    on_resume, why = found.format.resumed(found)
    return replace(diagnosis, on_resume=on_resume, problem=diagnosis.problem or why)


def write_copy(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write the repaired copy of a session to a path that is not there yet: whole, or not at all.

    Raises `Refused` where something is there or no truthful copy can be made, `StoreFailed` for a record that is shaped
    like none that is known, and `OSError` for what the disk refuses.
    """
    if found.format.repair is None:
        raise Refused(
            f"{found.format.title} sessions can be read, not written",
            action="repair",
            subject=found.name,
            hint="`turnwal import` takes it over",
        )
    with _shape_errors(found, "repair"):
        found.format.repair(found, diagnosis, out)


@contextmanager
def reading_errors(found: Found) -> Iterator[None]:
    """A block in which whatever may go wrong while a session is read is `StoreFailed`, with the reason."""
    try:
        with _shape_errors(found, "read"):
            yield
    except OSError as error:
        raise _failed(found, "read", error.strerror or str(error)) from error


@contextmanager
def _shape_errors(found: Found, action: str) -> Iterator[None]:
    try:
        yield
    except DatabaseBusy as error:
        raise _failed(found, action, str(error)) from error
    except (apsw.Error, msgspec.MsgspecError, zstandard.ZstdError, Bomb) as error:
        raise _failed(found, action, f"{type(error).__name__}: {error}") from error
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        # a record that is shaped like none that is known; other sessions go on
        raise _failed(found, action, f"a record of an unknown shape ({type(error).__name__}: {error})") from error


def unread(found: Unread) -> Diagnosis:
    """What can be said of a path that could not be looked at."""
    return Diagnosis(found.where, None, found.verdict, on_resume="unknown", problem=found.problem)


def _failed(found: Found, action: str, message: str) -> StoreFailed:
    return StoreFailed(message, action=action, subject=found.name, hint="`turnwal doctor` says what can be read")
