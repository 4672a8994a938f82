"""A region: bytes behind a sound record that are no record, and what can be said of them.

Promises:
- The region is hashed and counted as it is read; nothing of it is held but its first bytes.
- `torn` is said only of what a cut-off write of the expected line leaves; it is no doubt about anything acknowledged,
  so everything else is `nul` or `corrupt`.

Does not: decide where a region begins or ends; see `frames.py`.
"""

from hashlib import sha256
from typing import Final

import msgspec
from msgspec import UNSET

from turnwal.core.chain import Head
from turnwal.core.limits import DAMAGE_RAW_BYTES_MAX, LOST_SEQS_MAX
from turnwal.core.line import Event
from turnwal.store.protocol import Gap

_LINE_START: Final = b'{"seq":'
_CUT_OFF: Final = "Input data was truncated"
_skip = msgspec.json.Decoder(msgspec.Raw).decode


class Region:
    """The bytes from `position` on, behind the record that `head` names."""

    def __init__(self, position: int, line_number: int, head: Head, reason: str) -> None:
        """Begin with no byte; `reason` says what is wrong with the first line, as half a sentence."""
        self.position = position
        self.line_number = line_number
        self.reason = reason
        self.length = 0
        self.lines = 0
        self._head = head
        self._hash = sha256()
        self._newline = False
        self._raw = b""
        self._nul = False
        self._torn = True
        self._blank = True
        self._readable = 0
        self._seqs: list[int] = []
        self._explained: list[int] = []
        self._seq_max = -1

    def add(self, data: bytes, *, ends: bool) -> None:
        """Take bytes that can be no line; a newline follows them if `ends`."""
        self._take_bytes(data, ends=ends)
        self._nul = self._nul or b"\0" in data
        self._torn = False
        self._blank = False

    def take(self, line: bytes, event: Event | None, *, ends: bool) -> None:
        """Take a whole segment, with the event that can be read from it although it does not come next."""
        self._take_bytes(line, ends=ends)
        if event is not None:
            explained = explains(event, self._head)
            self._torn = self._torn and explained and not self._blank
            self._blank = False
            self._seq_max = max(self._seq_max, event.seq)
            seqs = self._explained if explained else self._seqs
            self._readable += not explained
            if len(seqs) < LOST_SEQS_MAX:
                seqs.append(event.seq)
        elif line.strip():
            self._nul = self._nul or b"\0" in line
            self._torn = self._torn and self._cut_off(line, ends=ends)
            self._blank = False

    def covered_by(self, event: Event) -> bool:
        """Whether an event that comes next is the `damage` event of exactly these bytes.

        The owner that wrote it began with a newline if the last byte was none, and did not count that one.
        """
        data = event.data
        if event.type != "damage" or data.get("after") != self._head.count - 1:
            return False
        if self._readable and data.get("kind") != "lost":
            return False
        if data.get("length") == self.length:
            return data.get("sha256") == self._digest()
        return self._newline and data.get("length") == self.length - 1 and data.get("sha256") == self._hash.hexdigest()

    def gap(self, *, readable: int | None = None, acknowledged: bool = False) -> Gap:
        """The region as a `Gap`; `readable` replaces the count of readable records where they are told apart.

        With `acknowledged`, the records of the batch that a torn write could have left are known to be no such thing.
        """
        readable = self._readable if readable is None else readable
        seqs = self._seqs
        if acknowledged:
            readable += len(self._explained)
            seqs = sorted(self._explained + self._seqs)[:LOST_SEQS_MAX]
        kind = "nul" if self._nul else "torn" if self._torn and not readable else "corrupt"
        return Gap(
            position=self.position,
            after=self._head.count - 1,
            length=self.length,
            sha256=self._digest(),
            kind=kind,
            raw=self._raw,
            line_number=self.line_number,
            reason=self.reason,
            readable=readable,
            seqs=tuple(seqs),
            seq_max=max(self._seq_max, self._head.count - 1 + self.lines),
        )

    def _take_bytes(self, data: bytes, *, ends: bool) -> None:
        if self._newline:
            self._hash.update(b"\n")
        self._hash.update(data)
        self._newline = ends
        self.length += len(data) + ends
        self.lines += ends
        if len(self._raw) < DAMAGE_RAW_BYTES_MAX:
            self._raw = (self._raw + data[:DAMAGE_RAW_BYTES_MAX] + b"\n" * ends)[:DAMAGE_RAW_BYTES_MAX]

    def _digest(self) -> str:
        if not self._newline:
            return self._hash.hexdigest()
        whole = self._hash.copy()
        whole.update(b"\n")
        return whole.hexdigest()

    def _cut_off(self, line: bytes, *, ends: bool) -> bool:
        """Whether a segment is the beginning of the expected line, or of a later one of its batch, and nothing else.

        A line that ends like a whole one, newline included, more likely is one with a changed quote.
        """
        if ends and line.endswith(b"}"):
            return False
        expected = b'{"seq":%d,"prev":"%s",' % (self._head.count, self._head.hash.encode())
        begun = _begins(line, expected) or (not self._blank and _begins(line, _LINE_START))
        return begun and _is_cut_off(line)


def explains(event: Event, head: Head) -> bool:
    """Whether a readable event belongs to the batch of the hole behind `head`, so that a torn write explains it."""
    return event.batch is not UNSET and event.batch <= head.count < event.seq


def _begins(line: bytes, start: bytes) -> bool:
    return line.startswith(start) or start.startswith(line)


def _is_cut_off(line: bytes) -> bool:
    """Whether JSON ends here before it is complete; a changed byte elsewhere nearly always reads differently."""
    try:
        _skip(line)
    except msgspec.DecodeError as error:
        return str(error) == _CUT_OFF
    return False
