"""Small logs and the bytes that break them."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256

from msgspec import UNSET, structs

from turnwal.core.chain import EMPTY, Head, after, digest
from turnwal.core.line import Event, make, read
from turnwal.core.log import Log
from turnwal.store.frames import frames
from turnwal.store.protocol import Gap, Record


def log_of(messages: int = 3, session: str = "s", text: str = "message") -> Log:
    log = Log()
    log.append("session_start", {"id": session, "format": 1})
    grow(log, messages, text)
    return log


def grow(log: Log, messages: int = 1, text: str = "message") -> list[bytes]:
    """Append messages and return their lines."""
    start = len(log)
    for _ in range(messages):
        log.append("user_message", {"parts": [{"type": "text", "content": f"{text} {len(log)}"}]})
    return list(log.lines())[start:]


def lines_of(log: Log, start: int = 0) -> list[bytes]:
    return list(log.lines())[start:]


def file_of(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def head_of(lines: Sequence[bytes]) -> Head:
    return after(lines[-1], read(lines[-1])) if lines else EMPTY


def batch_behind(head: Head, count: int) -> list[bytes]:
    """The lines of one batch: each but the first names the first."""
    lines = []
    first = head.count
    for _ in range(count):
        data = {"parts": [{"type": "text", "content": f"batched {head.count}"}]}
        batch = UNSET if head.count == first else first
        event = Event(seq=head.count, prev=head.hash, time=0, type="user_message", batch=batch, data=data)
        line, made = make(event)
        lines.append(line)
        head = after(line, made)
    return lines


def damage_line(head: Head, region: bytes, kind: str = "torn", *, seq: int | None = None, **data: object) -> bytes:
    """The `damage` event that covers bytes behind a head."""
    covering = {"after": head.count - 1, "length": len(region), "sha256": sha256(region).hexdigest(), "kind": kind}
    event = Event(
        seq=head.count if seq is None else seq, prev=head.hash, time=0, type="damage", data={**covering, **data}
    )
    return make(event)[0]


def with_batch(line: bytes, batch: int) -> bytes:
    return make(structs.replace(read(line), batch=batch))[0]


def source_of(data: bytes, chunk: int = 1 << 20) -> Callable[[int], Iterator[bytes]]:
    def source(position: int) -> Iterator[bytes]:
        for start in range(position, len(data), chunk):
            yield data[start : start + chunk]

    return source


def read_all(data: bytes, chunk: int = 1 << 20, *, past_damage: bool = False) -> list[Record | Gap]:
    return list(frames(source_of(data, chunk), past_damage=past_damage, subject="test"))


def sound_lines(found: Sequence[Record | Gap]) -> list[bytes]:
    return [each.line for each in found if isinstance(each, Record) and each.sound]


def gap_in(found: Sequence[Record | Gap]) -> Gap:
    """The one gap, which stands last."""
    gaps = [each for each in found if isinstance(each, Gap)]
    assert len(gaps) == 1
    assert found[-1] is gaps[0]
    return gaps[0]


__all__ = ["Gap", "Record", "digest"]
