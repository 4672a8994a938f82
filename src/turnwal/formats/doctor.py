"""Examining sessions: one diagnosis for each, whatever is wrong with it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw
import msgspec
import zstandard

from turnwal.formats.database import DatabaseBusy
from turnwal.formats.diagnosis import Diagnosis, Verdict
from turnwal.formats.finding import Unread, find
from turnwal.formats.format import Found
from turnwal.formats.weighing import weigh
from turnwal.formats.zstd import Bomb


def examine(paths: Iterable[Path | str]) -> Iterator[Diagnosis]:
    """Yield what can be said of each session at these paths and below, or at these URLs. Writes nothing."""
    for found in find(paths):
        yield unread(found) if isinstance(found, Unread) else diagnose(found)


def diagnose(found: Found) -> Diagnosis:
    """What can be said of one session; a file that cannot be read is a verdict, not an error."""
    try:
        return weigh(found, found.format.read(found, "calls"))
    except DatabaseBusy as error:
        return _failed(found, "busy", str(error))
    except OSError as error:
        return _failed(found, "unreadable", error.strerror or str(error))
    except (apsw.Error, msgspec.MsgspecError, zstandard.ZstdError, Bomb) as error:
        return _failed(found, "unreadable", f"{type(error).__name__}: {error}")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        # a record that is shaped like none that is known; the other sessions go on
        return _failed(found, "unreadable", f"a record of an unknown shape ({type(error).__name__}: {error})")


def unread(found: Unread) -> Diagnosis:
    """What can be said of a path that could not be looked at."""
    return Diagnosis(found.where, None, found.verdict, on_resume="unknown", problem=found.problem)


def _failed(found: Found, verdict: Verdict, problem: str) -> Diagnosis:
    return Diagnosis(
        found.where, found.format.name, verdict, session=found.session, on_resume="unknown", problem=problem
    )
