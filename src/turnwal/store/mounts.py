"""Which file systems live on another machine, where a lock and a sync mean something else.

Promises: a known network file system is named, where the system tells what is mounted (`/proc/self/mountinfo`).
Does not: guess. What cannot be found out passes.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH123

import os
from typing import Final

_MOUNTS: Final = "/proc/self/mountinfo"
_NETWORK: Final = frozenset(
    (
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "pvfs2",
        "smb3",
        "smbfs",
    )
)
_NETWORK_FUSE: Final = (
    "blobfuse",
    "ceph",
    "davfs",
    "gcsfuse",
    "glusterfs",
    "goofys",
    "juicefs",
    "mountpoint-s3",
    "rclone",
    "s3fs",
    "seaweedfs",
    "sshfs",
)


def network_type(path: str, mounts: str = _MOUNTS) -> str | None:
    """Return the type of the network file system that a path is on, None when it is on none that is known."""
    try:
        with open(mounts, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return None
    path = os.path.realpath(path)
    found = ("", "")
    for line in lines:
        fields, _, rest = line.partition(b" - ")
        columns = fields.split(b" ")
        if len(columns) <= _POINT or not rest:
            continue
        point = os.fsdecode(_unescaped(columns[_POINT]))
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # a later mount on the same point lies over the earlier one
        if inside and len(point) >= len(found[0]):
            found = (point, rest.split(b" ")[0].decode("ascii", "replace"))
    return found[1] if _is_network(found[1]) else None


_POINT: Final = 4


def _unescaped(field: bytes) -> bytes:
    """The kernel writes space, tab, newline and backslash as three octal digits."""
    head, *parts = field.split(b"\\")
    return head + b"".join(bytes([int(part[:3], 8)]) + part[3:] for part in parts)


def _is_network(kind: str) -> bool:
    name, _, sub = kind.partition(".")
    return name in _NETWORK or (name == "fuse" and sub.startswith(_NETWORK_FUSE))
