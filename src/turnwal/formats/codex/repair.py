"""A repaired copy of a rollout.

Promises:
- Each line is carried as it stands, unknown ones too; bytes that are no line are left out, lines that were one are two.
- The outputs of open calls stand behind the message that asked, in the order of its calls. Where lines have ordinals,
  which may be pointed at, nothing is renumbered: the outputs are appended and go on counting.
- An output that Codex invented says what is known instead.
- The copy keeps the session's id. Where its name has another uuid, the first `session_meta` gets that one, since Codex
  wants both to be equal.

Refuses a rollout whose `session_meta` is lost: Codex does not load it, and nothing else says what stood there.

Does not: enter the copy into Codex's index, a database beside the rollouts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import MsgspecError

from turnwal.formats.codex import rollout
from turnwal.formats.codex.reading import INVENTED
from turnwal.formats.codex.rollout import Line, Payload
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found
from turnwal.formats.items import Fault
from turnwal.formats.lenient import encoded, value_of
from turnwal.formats.lines import records
from turnwal.formats.repairing import unloadable, write_lines
from turnwal.formats.slots import Row, invented, slots, to_answer
from turnwal.formats.wording import text_for

_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?=\.jsonl$)")


class _Kept(NamedTuple):
    """A line with its bytes."""

    place: str
    data: bytes
    line: Line


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a repaired copy to `out`. Raises `Refused` as the module says, or where something is there; `OSError`."""
    if not any(kept.line.type == "session_meta" for kept in _kept(found.path)):
        raise unloadable(found.path, "Codex", "there is no session_meta, which has its id and the folder it worked in")
    uuid = _UUID.search(out.name)
    write_lines(out, _Copy(found.path, diagnosis, None if uuid is None else uuid.group()).lines())


class _Copy:
    """Where copying is."""

    def __init__(self, path: Path, diagnosis: Diagnosis, uuid: str | None) -> None:
        self._path = path
        self._calls = to_answer(diagnosis)
        self._invented = invented(diagnosis)
        self._uuid = uuid
        self._places = {(call.place, call.id) for call in self._calls}
        self._types: dict[tuple[str, str], str] = {}
        """By place and id: the types of the calls that get an output."""
        self._ordinal: int | None = None

    def lines(self) -> Iterator[bytes]:
        behind = slots(map(self._row, _kept(self._path)), self._calls)
        met = False
        time: Any = None
        for index, kept in enumerate(_kept(self._path)):
            if kept.line.type == "session_meta" and not met:
                met = True
                yield self._named(kept)
            elif self._invented and kept.line.type == "response_item":
                yield self._truthful(kept)
            else:
                yield kept.data
            time = kept.line.timestamp
            if self._ordinal is None:
                for call in behind.get(index, ()):
                    yield self._output(call, time, bare=kept.line.bare)
        if self._ordinal is not None:
            for ordinal, call in enumerate(self._calls, self._ordinal + 1):
                yield self._output(call, time, ordinal=ordinal)

    def _row(self, kept: _Kept) -> Row:
        """What a line has to do with calls; notes what is needed to answer them."""
        if isinstance(kept.line.ordinal, int):
            self._ordinal = kept.line.ordinal
        item = _item(kept.line)
        if item is None:
            return Row(kept.place, ends=kept.line.type in ("turn_context", "compacted"))
        id = rollout.call_id(item)
        if rollout.is_call(item):
            if (kept.place, id) in self._places:
                self._types[kept.place, id] = item.type or ""
            return Row(kept.place, asks=(id,))
        if item.type in rollout.OUTPUTS:
            return Row(kept.place, answers=(id,))
        return Row(kept.place, ends=item.type == "message" and item.role != "assistant")

    def _named(self, kept: _Kept) -> bytes:
        """The first `session_meta`, with the uuid that the name of the copy has."""
        if self._uuid is None:
            return kept.data
        value = value_of(kept.data)
        meta = value if kept.line.bare else value["payload"]
        if meta.get("id") == self._uuid:
            return kept.data
        meta["id"] = self._uuid
        return encoded(value)

    def _truthful(self, kept: _Kept) -> bytes:
        """The line, with what is known where Codex invented the output of a call that is still open."""
        item = _item(kept.line)
        if item is None or item.type not in rollout.OUTPUTS or rollout.output_text(item.output) != INVENTED:
            return kept.data
        call = self._invented.get(rollout.call_id(item))
        if call is None:
            return kept.data
        value = value_of(kept.data)
        (value if kept.line.bare else value["payload"])["output"] = text_for(call.risk)
        return encoded(value)

    def _output(self, call: OpenCall, time: Any, *, ordinal: int | None = None, bare: bool = False) -> bytes:
        """The line that answers a call."""
        kind = self._types.get((call.place, call.id))
        item: dict[str, Any] = {"type": "function_call_output", "call_id": call.id, "output": text_for(call.risk)}
        if kind == "custom_tool_call":
            item["type"] = "custom_tool_call_output"
        elif kind == "tool_search_call":  # it has no place for a text; a search changes nothing
            found = {"status": "incomplete", "execution": "client", "tools": list[Any]()}
            item = {"type": "tool_search_output", "call_id": call.id, **found}
        if bare:
            return encoded(item)
        line = {"timestamp": time, "type": "response_item", "payload": item}
        return encoded(line if ordinal is None else line | {"ordinal": ordinal})


def _kept(path: Path) -> Iterator[_Kept]:
    """The lines that can be read, with their bytes."""
    decode = rollout.bare_line if rollout.is_bare(path) else rollout.line
    with rollout.opened(path) as file:
        for item in records(file, lambda data: (data.strip(), decode(data))):
            if not isinstance(item, Fault):
                number, (data, line) = item
                yield _Kept(f"line {number}", data, line)


def _item(line: Line) -> Payload | None:
    """The item of a line, or None for what is none or cannot be read."""
    if line.type != "response_item":
        return None
    try:
        return rollout.payload(line)
    except MsgspecError:
        return None
