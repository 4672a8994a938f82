"""The stored sessions of other tools, as their tests take them: a copy of one's own, never the stored file."""

import hashlib
import shutil
from pathlib import Path

from turnwal.core.log import Log
from turnwal.core.recovery import plan
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.doctor import diagnose
from turnwal.formats.finding import Unread, find
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of
from turnwal.transcript.check import Problem, check
from turnwal.transcript.render import render

DATA = Path(__file__).parent / "data"


def taken(format: str, name: str, to: Path) -> Path:
    """A copy of a stored file, with the log that its writer left beside it."""
    to.mkdir(parents=True, exist_ok=True)
    for beside in (DATA / format).glob(f"{name}*"):
        if beside.name in (name, f"{name}-wal"):
            shutil.copyfile(beside, to / beside.name)
    return to / name


def sessions(path: Path) -> list[Found]:
    """The sessions at a path, which must all be readable."""
    found = list(find([path]))
    assert not [one for one in found if isinstance(one, Unread)]
    return [one for one in found if isinstance(one, Found)]


def only(path: Path) -> tuple[Found, Diagnosis]:
    """The one session at a path, with what can be said of it."""
    (found,) = sessions(path)
    return found, diagnose(found)


def repaired(path: Path, out: Path) -> Diagnosis:
    """Repair the one session at a path, and say what can be said of the copy."""
    found, diagnosis = only(path)
    assert found.format.repair is not None
    found.format.repair(found, diagnosis, out)
    return only(out)[1]


def evidence(diagnosis: Diagnosis) -> dict[str, str]:
    """What is proved about each open call, by its id."""
    return {call.id: call.evidence for call in diagnosis.open}


def digests(directory: Path) -> dict[str, str]:
    """The hash of every file below a directory."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def imported(found: Found) -> Log:
    """The session as one of turnwal's."""
    return Log.read(lines_of(found, "s", nonce="0" * 32, time=0, writer={"name": "test", "version": "0"}))


def owed(found: Found) -> list[str]:
    """The ids of the calls that recovery would answer in the import."""
    return [event.data["id"] for event in plan(imported(found)).repairs if event.type == "tool_result"]


def refused(found: Found, target: str) -> list[Problem]:
    """What a provider would refuse of the import as it is sent."""
    made = render(imported(found), target, waiting="placeholder")
    return check(target, made.messages, system=made.system)
