"""Session ids and the file names they map to.

Promises:
- Two ids never share a file, whatever they contain, also where a file system ignores case or normalises Unicode.
- A name holds nothing that a shell, a path or a listing trips over: no separator, no leading dot or dash.
- A short id can be read back from its name; a long one only checked against it.

Does not: touch a file.
"""

import re
from hashlib import sha256
from typing import Final

from turnwal.core.errors import InvalidName, SessionNotFound
from turnwal.core.limits import SESSION_ID_CHARS_MAX

SUFFIX: Final = ".jsonl"

_ENCODED_BYTES_MAX: Final = 180
"""File names have at most 255 bytes nearly everywhere; this leaves room for suffixes and for copies that add theirs."""
_PREFIX_BYTES: Final = 100
_MARK: Final = "~"
"""Stands before the digest of a long id, and in no name that spells its id out."""

_PLAIN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-.")
_SPELT: Final = re.compile(r"(?:[a-z0-9_.-]|%[0-9a-f]{2})+")
_SPLIT_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def check_id(session: object) -> str:
    """Return the id if it is one; raise `InvalidName` otherwise."""
    if not isinstance(session, str):
        reason = f"{session!r:.80} is a {type(session).__name__}, not text"
    elif not session:
        reason = "the id is empty"
    elif len(session) > SESSION_ID_CHARS_MAX:
        reason = f"the id has {len(session):,} characters, the limit is {SESSION_ID_CHARS_MAX:,}"
    elif _SPLIT_PAIR.search(session):
        reason = "the id holds one character as two surrogates, which reads back as another text"
    else:
        return session
    raise InvalidName(
        reason, action="name", subject="session", hint=f"an id is text of 1 to {SESSION_ID_CHARS_MAX:,} characters"
    )


def not_found(session: str, action: str, reason: str = "no such session") -> SessionNotFound:
    """The error for an id that leads to nothing."""
    return SessionNotFound(
        reason, action=action, subject=session, hint="`turnwal ls` and `sessions()` list what there is"
    )


def file_stem(session: str) -> str:
    """Return the name of a session's files without suffix. Raises `InvalidName` for an id that is none."""
    data = check_id(session).encode("utf-8", "surrogatepass")
    last = len(data) - 1
    spelt = "".join(
        chr(byte) if byte in _PLAIN and not _trips(byte, index, last) else f"%{byte:02x}"
        for index, byte in enumerate(data)
    )
    if len(spelt) <= _ENCODED_BYTES_MAX:
        return spelt
    return spelt[:_PREFIX_BYTES] + _MARK + sha256(data).hexdigest()


def session_of(stem: str) -> str | None:
    """Return the id that a name spells out; None for the name of a long id, and for a name that is none of ours."""
    if _SPELT.fullmatch(stem) is None:
        return None
    data = re.sub(rb"%(..)", lambda match: bytes.fromhex(match[1].decode()), stem.encode())
    try:
        session = data.decode("utf-8", "surrogatepass")
        return session if file_stem(session) == stem else None
    except (UnicodeDecodeError, InvalidName):
        return None


def is_digest_name(stem: str) -> bool:
    """Whether a name is that of a long id, which stands in the session itself."""
    return _MARK in stem


def _trips(byte: int, index: int, last: int) -> bool:
    """Whether a plain byte is none at this place: a dot at either end, a dash in front."""
    return (byte == ord(".") and index in (0, last)) or (byte == ord("-") and index == 0)
