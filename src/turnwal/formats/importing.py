"""A foreign session as the lines of a turnwal session, so that every verb works on it.

Promises:
- What the tool recorded keeps its order, its words and its ids; where it came from stands in the first line.
- Each run is one turn. It stays open where a call has no result, so that `plan` says of the import what `doctor` says
  of the file; nothing is closed that the tool left open.
- The lines are the same for the same file, id, nonce and time.
"""

from collections.abc import Iterator
from typing import Any

from turnwal.core import keys
from turnwal.core.chain import EMPTY, after
from turnwal.core.line import make
from turnwal.core.log import draft
from turnwal.core.scan import Scan
from turnwal.core.types import FORMAT
from turnwal.core.values import asking_parts, id_of
from turnwal.formats.format import Found
from turnwal.formats.items import About, Said, Sign


def lines_of(found: Found, id: str, *, nonce: str, time: int, writer: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of a session made of a foreign one; the first says what it was made of.

    `time` (Unix milliseconds) is that of records that have none. Raises what the format's reader raises, and
    `InvalidEvent` or `OverLimit` for a record that no line can hold.
    """
    yield from _Importer(found, time).lines(id, nonce, writer)


class _Importer:
    """Where importing is."""

    def __init__(self, found: Found, time: int) -> None:
        self._found = found
        self._time = time
        self._head = EMPTY
        self._scan = Scan()
        self._open: dict[tuple[str, str], list[str]] = {}
        """By run and id: the keys of the calls that have no result yet, oldest first."""
        self._dispatched: set[str] = set()
        self._runs: dict[str, int] = {}

    def lines(self, id: str, nonce: str, writer: dict[str, Any]) -> Iterator[bytes]:
        found = self._found
        durable = False
        about = {"format": found.format.name, "path": found.where}
        start: dict[str, Any] = {"format": FORMAT, "id": id, "nonce": nonce, "writer": writer, "imported": about}
        if found.session is not None:
            about["session"] = found.session
        begun = False
        for item in found.format.read(found, "whole"):
            if isinstance(item, About):
                durable = durable or item.durable
                if not begun:
                    about |= {k: v for k, v in (("version", item.version), ("session", item.session)) if v is not None}
                continue
            if not isinstance(item, (Said, Sign)):
                continue
            if not begun:
                begun = True
                yield self._line("session_start", start)
            if isinstance(item, Said):
                yield from self._said(item, durable=durable)
            else:
                yield from self._sign(item)
        if not begun:
            yield self._line("session_start", start)
        for run in sorted(self._runs, key=lambda name: name == "main"):
            yield from self._ended(run)

    def _said(self, said: Said, *, durable: bool) -> Iterator[bytes]:
        if said.run not in self._runs:
            self._runs[said.run] = self._head.count
            open_turns = [*self._scan.open_seqs(), self._head.count]
            data = {"dispatch": "durable" if durable else "none"} | self._scan.boundary(sorted(open_turns))
            yield self._line("turn_start", data, said.run, said.time)
        data = said.data
        if said.type == "tool_result":
            key = self._answered(said.run, id_of(data))
            data = data if key is None else {"call": key, **data}
        seq = self._head.count
        yield self._line(said.type, data, said.run, said.time)
        if said.type == "assistant_message":
            for index, part in asking_parts(data):
                self._open.setdefault((said.run, id_of(part)), []).append(keys.text(keys.pack(seq, index)))

    def _answered(self, run: str, id: str) -> str | None:
        """The key of the call that a result of this id answers."""
        for name in (run, *self._runs):  # a result may stand in the file of another run
            waiting = self._open.get((name, id))
            if waiting:
                key = waiting.pop(0)
                if not waiting:
                    del self._open[name, id]
                return key
        return None

    def _sign(self, sign: Sign) -> Iterator[bytes]:
        for run in self._runs:
            waiting = self._open.get((run, sign.id))
            if not waiting:
                continue
            key = waiting[-1]
            if sign.evidence == "waiting":
                yield self._line("tool_suspended", {"call": key, "id": sign.id, "seen": sign.what}, run)
            elif key not in self._dispatched:
                self._dispatched.add(key)
                yield self._line("tool_call", {"call": key, "id": sign.id, "seen": sign.what}, run)
            return

    def _ended(self, run: str) -> Iterator[bytes]:
        """The end of a run's turn, where nothing in it is owed."""
        turns = self._scan.run(run).turns
        if turns and not any(call.owed for call in turns[-1].calls.values()):
            still_open = [seq for seq in self._scan.open_seqs() if seq != turns[-1].seq]
            data = {"steps": 0, "reason": "complete"} | self._scan.boundary(still_open)
            yield self._line("turn_end", data, run)

    def _line(self, type: str, data: dict[str, Any], run: str = "main", time: int | None = None) -> bytes:
        if time is not None:
            self._time = time
        line, event = make(draft(type, data, run=run, time=self._time, ignorable=False, head=self._head))
        self._head = after(line, event)
        self._scan.feed(event)
        return line
