"""Readers of other tools' session files: what each session proves, repaired copies, and the way into a turnwal store.

`examine` says what happened in the sessions at a path, `repair` writes a repaired copy, `events_of` gives a session as
turnwal events. Nothing here writes to what it reads.
"""

from turnwal.formats.diagnosis import Diagnosis, OnResume, OpenCall, Verdict
from turnwal.formats.doctor import examine
from turnwal.formats.finding import find
from turnwal.formats.format import Format, Found
from turnwal.formats.items import Evidence
from turnwal.formats.registry import FORMATS, format_of

__all__ = [
    "FORMATS",
    "Diagnosis",
    "Evidence",
    "Format",
    "Found",
    "OnResume",
    "OpenCall",
    "Verdict",
    "examine",
    "find",
    "format_of",
]
