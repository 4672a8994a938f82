"""Power failures without a power switch: record a workload, build what a disk may have, look at each.

    recording = record([sys.executable, "agent.py", "work"], "work")
    print(explore(recording, judge))

A kill leaves the system's cache in place, so a test that kills says nothing of a sync that is missing. Here the writes,
syncs and names of a workload are recorded with `strace`, together with what it acknowledges on its standard output; for
each moment the states are built that a disk may have when the power fails then, and a judge opens each.

Does not: see below the system calls. A disk that lies about flushing and a file system with a defect are not found.
"""

from turnwal.testing.power.disk import Names, Point, points
from turnwal.testing.power.exploring import Exploration, Explorer, Failure, Judge, explore
from turnwal.testing.power.operations import Recording
from turnwal.testing.power.recording import IGNORED, record
from turnwal.testing.power.tracing import Unrecordable

__all__ = [
    "IGNORED",
    "Exploration",
    "Explorer",
    "Failure",
    "Judge",
    "Names",
    "Point",
    "Recording",
    "Unrecordable",
    "explore",
    "points",
    "record",
]
