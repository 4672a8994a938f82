"""Histories to store, and sessions that are claimed and read: what the checks are made of."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.limits import PENDING_BYTES_MAX
from turnwal.core.log import Log
from turnwal.store.protocol import Claim, Record, Store
from turnwal.testing.conformance.kit import Storage, require

_LONG: Final = 512 * 1024


def new_log(session: str = "s", messages: int = 2) -> Log:
    """A session that began, with some messages."""
    log = Log()
    log.append("session_start", {"id": session, "format": 1})
    grow(log, messages)
    return log


def grow(log: Log, messages: int = 1) -> None:
    """Append messages, each another one."""
    for _ in range(messages):
        log.append("user_message", {"parts": [{"type": "text", "content": f"message {len(log)}"}]})


def lines_of(log: Log, start: int = 0) -> list[bytes]:
    """The lines of a log, from one on."""
    return list(log.lines())[start:]


def odd_lines() -> list[bytes]:
    """Lines that nobody would write like this, and that are lines all the same."""
    lines = lines_of(new_log())
    lone, wide = b"\\ud800 \\u2028 \\u00e9", "é🙂".encode()
    for text in (lone, wide, b"1.0", b"12345678901234567890123"):
        body = b'"' + text + b'"' if text in (lone, wide) else text
        lines.append(
            b'{"prev":"%s", "seq":%d,"type":"x.odd","data":{"b": %b,"a":1e2},"time":0}'
            % (digest(lines[-1]).encode(), len(lines), body)
        )
    return lines


def long_log() -> Log:
    """More than any store need hold at once."""
    log = new_log(messages=0)
    for index in range(PENDING_BYTES_MAX // _LONG + 2):
        log.append("user_message", {"parts": [{"type": "text", "content": f"{index} ".ljust(_LONG, "x")}]})
    grow(log, 3)
    return log


def head_of(lines: Sequence[bytes]) -> Head:
    """The head behind these lines."""
    return Head(len(lines), digest(lines[-1])) if lines else EMPTY


@contextmanager
def claimed(storage: Storage, session: str = "s", *, create: bool = True) -> Iterator[tuple[Store, Claim]]:
    """A store with a claim of a session, given up at the end."""
    with closing(storage.open()) as store:
        claim = store.claim(session, create=create)
        try:
            yield store, claim
        finally:
            claim.release()


def stored(store: Store, session: str = "s") -> list[bytes]:
    """The lines that the store reads. Raises `NotConforming` for a gap, and for a line that is not sound."""
    lines = []
    for found in store.read(session):
        require(isinstance(found, Record), f"a gap is read where lines were acknowledged: {found}")
        if isinstance(found, Record):
            require(found.sound, f"line {found.event.seq} is read as not sound")
            lines.append(found.line)
    return lines
