"""Who owns a session now: proof of life by a lock that the kernel drops with its holder (F25).

Promises:
- A claim of this process is known here, so that reading a session that this very process owns never asks the kernel,
  whose answer would be "held".
- A forked child closes the descriptors it inherited, so that a lock never outlives its owner, and its copies of the
  claims are dead.

Does not: believe the description that lies beside a session. It is for the people who are refused, never proof.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH119

import os
import sys
import threading
import time
from typing import Final, Protocol

import msgspec

DESCRIPTION_BYTES_MAX: Final = 8 * 1024
"""How much of a description is read."""

_TOLD_CHARS_MAX: Final = 500
"""Length of what is shown of a description, which anybody may have written."""


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an owner says of itself."""

    pid: int = 0
    host: str = ""
    program: str = ""
    since: str = ""
    owner: str = ""


def describe(owner: str = "") -> Description:
    """Return the description of this process; `owner` is what the caller adds."""
    arguments = getattr(sys, "argv", None) or [""]
    return Description(
        pid=os.getpid(),
        host=os.uname().nodename,
        program=os.path.basename(arguments[0]) or "python",
        since=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        owner=owner,
    )


def written(description: Description) -> bytes:
    """Return the content of the file that describes an owner."""
    try:
        return msgspec.json.encode(description) + b"\n"
    except UnicodeEncodeError:
        plain = {
            name: ascii(value)[1:-1] for name, value in msgspec.structs.asdict(description).items() if name != "pid"
        }
        return msgspec.json.encode(Description(pid=description.pid, **plain)) + b"\n"


def told(description: Description | bytes) -> str:
    """Return a description as half a sentence, whatever stands in it."""
    if isinstance(description, bytes):
        try:
            description = msgspec.json.decode(description, type=Description)
        except (ValueError, RecursionError):
            description = Description()
    name = description.owner or description.program
    pid = f"pid {description.pid}" if description.pid else ""
    host = f"on {description.host}" if description.host else ""
    since = f"since {description.since}" if description.since else ""
    details = ", ".join(part for part in (" ".join(filter(None, (pid, host))), since) if part)
    text = f"{name} ({details})" if name and details else name or details or "an owner that does not say who it is"
    return "".join(char if char.isprintable() else "?" for char in text[:_TOLD_CHARS_MAX])


class LiveClaim(Protocol):
    """What this module needs of a claim."""

    @property
    def size(self) -> int:
        """How many bytes of the session are known to be whole and acknowledged."""
        ...

    @property
    def description(self) -> Description:
        """What the claim says of its owner."""
        ...

    def disown(self) -> None:
        """Close what was inherited, without unlocking: this is a forked child."""
        ...


Inode = tuple[int, int]
"""Device and number: what a lock belongs to, whatever name led there."""

claiming: Final = threading.RLock()
"""Held while a descriptor is locked and entered here, and while the process forks: a child inherits no unknown lock."""

_live: Final[dict[Inode, LiveClaim]] = {}


def enter(inode: Inode, claim: LiveClaim) -> None:
    """Make a claim known; the caller holds `claiming`."""
    _live[inode] = claim


def leave(inode: Inode) -> None:
    """Forget the claim of a file."""
    _live.pop(inode, None)


def own(inode: Inode) -> LiveClaim | None:
    """Return this process's claim of a file, if it has one."""
    return _live.get(inode)


def _in_child() -> None:
    for claim in _live.values():
        claim.disown()
    _live.clear()
    claiming.release()


os.register_at_fork(before=claiming.acquire, after_in_parent=claiming.release, after_in_child=_in_child)
