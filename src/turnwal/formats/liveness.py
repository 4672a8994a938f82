"""Whether a session may still be written to: to a reader a tool at work looks like one that died.

A file that was written to moments ago is taken for one in use. A tool that has been silent for longer may still be at
work; no file says so.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from turnwal.core.rules import NOT_STARTED, UNKNOWN
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found

LIVE_S: Final = 60.0
"""How long after the last write a session counts as one that may be in use."""


def written_ago(found: Found, now: float) -> float | None:
    """Seconds since the files of a session were last written to, for one that may be in use; else None.

    `now` is Unix seconds. A time in the future counts as now.
    """
    if found.url is not None:
        return None
    latest = max(_written(found), default=None)
    ago = None if latest is None else max(now - latest, 0.0)
    return ago if ago is not None and ago < LIVE_S else None


def in_doubt(diagnosis: Diagnosis, ago: float) -> Diagnosis:
    """The diagnosis of a session that may be in use: a call that has not started may start any moment."""
    if diagnosis.verdict != "interrupted":
        return diagnosis
    said = f"it was written to {ago:.0f} s ago: its tool may still be at work"
    calls = tuple(_doubted(call, said) for call in diagnosis.open)
    problem = f"{diagnosis.problem}; {said}" if diagnosis.problem else said
    return replace(diagnosis, open=calls, problem=problem)


def _doubted(call: OpenCall, said: str) -> OpenCall:
    return replace(call, risk=UNKNOWN, because=(*call.because, said)) if call.risk == NOT_STARTED else call


def _written(found: Found) -> Iterator[float]:
    """When each of its files was written to; files that come and go meanwhile are left out."""
    path = found.path
    beside = (Path(f"{path}{suffix}") for suffix in ("", "-wal", "-journal"))
    for each in (*path.rglob("*"), *found.files) if path.is_dir() else (*beside, *found.files):
        try:
            yield each.stat().st_mtime
        except OSError:
            continue
