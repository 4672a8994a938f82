"""A foreign session as the lines of a turnwal session, so that every verb works on it.

Promises:
- What the tool recorded keeps its order, its words and its ids; where it came from stands in the first line.
- An answer that the tool invented is kept as what it is, an event that no model sees: its call has no result.
- Each run is one turn, and one more behind a call without a result where the same call is asked for again. A turn stays
  open where a call has no result, so that `plan` says of the import what `doctor` says of the file; nothing is closed
  that the tool left open.
- Times never step back: a record with an earlier one than those before it repeats theirs.
- The lines are the same for the same file, id, nonce and time.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from turnwal.core import keys
from turnwal.core.chain import EMPTY, after
from turnwal.core.line import make
from turnwal.core.log import draft
from turnwal.core.scan import Scan
from turnwal.core.types import FORMAT, SURFACE
from turnwal.core.values import arguments_of, asking_parts, id_of, name_of
from turnwal.formats.format import Found
from turnwal.formats.items import About, Said, Sign
from turnwal.formats.weighing import answered_of, is_invented


def lines_of(found: Found, id: str, *, nonce: str, time: int, writer: dict[str, Any]) -> Iterator[bytes]:
    """Yield the lines of a session made of a foreign one; the first says what it was made of.

    `time` (Unix milliseconds) is that of records that have none. Raises what the format's reader raises, and
    `InvalidEvent` or `OverLimit` for a record that no line can hold.
    """
    yield from _Importer(found, time).lines(id, nonce, writer)


INVENTED: Final = "x.invented_answer"
"""The type of an event that keeps what a tool's own recovery wrote in place of a result."""


class _Asked(NamedTuple):
    """A call without a result."""

    key: str
    name: str | None
    run: str
    seq: int
    arguments: str | None
    whole: bool
    """The message that asks for it completed; one that did not may come once more."""

    @property
    def place(self) -> str:
        """The record that asked."""
        return str(self.seq)


class _Importer:
    """Where importing is."""

    def __init__(self, found: Found, time: int) -> None:
        self._found = found
        self._time = time
        self._head = EMPTY
        self._scan = Scan()
        self._open: dict[tuple[str, str], list[_Asked]] = {}
        """By run and id: the keys of the calls that have no result yet, oldest first."""
        self._dispatched: set[str] = set()
        self._runs: dict[str, int] = {}
        """The seq of each run's turn."""
        self._shown: set[str] = set()
        """The runs in which something was said."""

    def lines(self, id: str, nonce: str, writer: dict[str, Any]) -> Iterator[bytes]:
        """The lines of the whole session."""
        about = {"format": self._found.format.name, "path": self._found.where}
        about |= {} if self._found.session is None else {"session": self._found.session}
        start: dict[str, Any] = {"format": FORMAT, "id": id, "nonce": nonce, "writer": writer, "imported": about}
        durable = False
        for item in self._found.format.read(self._found, "whole"):
            if isinstance(item, About):
                durable = durable or item.durable
                said = {"version": item.version, "session": item.session}
                about |= {name: value for name, value in said.items() if value is not None}
            elif isinstance(item, Said):
                if not self._head.count:
                    self._time = self._time if item.time is None else item.time
                    yield self._line("session_start", start)
                yield from self._said(item, durable=durable)
            elif isinstance(item, Sign):
                yield from self._sign(item)
        if not self._head.count:
            yield self._line("session_start", start)
        for run in sorted(self._runs, key=lambda name: name == "main"):
            yield from self._ended(run)

    def _said(self, said: Said, *, durable: bool) -> Iterator[bytes]:
        if said.run not in self._runs or self._asks_again(said):
            self._runs[said.run] = self._head.count
            open_turns = [*self._scan.open_seqs(), self._head.count]
            data = {"dispatch": "durable" if durable else "none"} | self._scan.boundary(sorted(open_turns))
            yield self._line("turn_start", data, said.run, said.time)
        data = said.data
        if is_invented(said):
            yield self._line(INVENTED, data, said.run, said.time, ignorable=True)
            return
        if said.type == "tool_result":
            key = self._answered(said.run, data)
            data = data if key is None else {"call": key, **data}
        seq = self._head.count
        if said.replaces and self._may_replace(said.run):
            data = {**data, "replace": [self._runs[said.run] + 1, seq - 1]}
        if said.type in SURFACE:
            self._shown.add(said.run)
        yield self._line(said.type, data, said.run, said.time)
        if said.type == "assistant_message":
            for index, part in asking_parts(data):
                key = keys.text(keys.pack(seq, index))
                whole = data.get("complete") is not False
                call = _Asked(key, name_of(part), said.run, seq, arguments_of(part), whole)
                self._open.setdefault((said.run, id_of(part)), []).append(call)

    def _asks_again(self, said: Said) -> bool:
        """Whether a message asks for a call that stands unanswered in the open turn, where it would be that one."""
        if said.type != "assistant_message":
            return False
        began = self._runs[said.run]
        return any(
            call.seq >= began and (call.name, call.arguments) == (name_of(part), arguments_of(part))
            for _, part in asking_parts(said.data)
            for call in self._open.get((said.run, id_of(part)), ())
            if call.whole
        )

    def _may_replace(self, run: str) -> bool:
        """Whether there is something to replace, and no open call in it: one that is owed must not be hidden (F27)."""
        return run in self._shown and not any(name == run for name, _ in self._open)

    def _answered(self, run: str, data: dict[str, Any]) -> str | None:
        """The key of the call that a result of this id answers."""
        for place in ((name, id_of(data)) for name in (run, *self._runs)):  # it may stand in the file of another run
            waiting = self._open.get(place)
            if waiting:
                call = waiting.pop(answered_of(waiting, run, name_of(data)))
                if not waiting:
                    del self._open[place]
                return call.key
        return None

    def _sign(self, sign: Sign) -> Iterator[bytes]:
        if sign.evidence == "requested":
            return
        for run in self._runs:
            waiting = self._open.get((run, sign.id))
            if not waiting:
                continue
            key = waiting[-1].key
            if sign.evidence == "waiting":
                yield self._line("tool_suspended", {"call": key, "id": sign.id, "seen": sign.what}, run)
            elif key not in self._dispatched:
                self._dispatched.add(key)
                yield self._line("tool_call", {"call": key, "id": sign.id, "seen": sign.what}, run)
            return

    def _ended(self, run: str) -> Iterator[bytes]:
        """The end of a run's turns, where nothing in them is owed."""
        for turn in self._scan.run(run).turns[::-1]:
            if any(call.owed for call in turn.calls.values()):
                return
            still_open = [seq for seq in self._scan.open_seqs() if seq != turn.seq]
            data = {"steps": 0, "reason": "complete"} | self._scan.boundary(still_open)
            yield self._line("turn_end", data, run)

    def _line(
        self, type: str, data: dict[str, Any], run: str = "main", time: int | None = None, *, ignorable: bool = False
    ) -> bytes:
        # the order of the records is the only one: the clocks of some tools step back hundreds of times a file
        self._time = self._time if time is None else max(self._time, time)
        line, event = make(draft(type, data, run=run, time=self._time, ignorable=ignorable, head=self._head))
        self._head = after(line, event)
        self._scan.feed(event)
        return line
