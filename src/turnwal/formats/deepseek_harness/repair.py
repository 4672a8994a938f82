"""A repaired copy of a log of deepseek-harness.

Promises:
- Frames and lines that are whole are carried as they stand. What a torn frame still holds is written as a frame of its
  own, as the harness does; the bytes of a torn line are left out.
- The results of the calls that are open in the last step follow, in the order of the calls, with the next numbers and
  the time of the last event. The ends of step and turn are left to the harness, which writes them when it resumes.
- A result of a recovery that says that the outcome is unknown keeps its place and number, and has the words of ours.

Refuses what cannot be mended without giving events other numbers, which others point at: a gap, a version that is not
known, and a call that was left open in a step that has ended.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard
from msgspec import MsgspecError

from turnwal.core.errors import Refused
from turnwal.formats.deepseek_harness import events
from turnwal.formats.deepseek_harness.events import Event, Source
from turnwal.formats.deepseek_harness.reading import NOT_STARTED, OUTCOME_UNKNOWN, blocks_of, code_of, result_of
from turnwal.formats.diagnosis import Diagnosis, OpenCall
from turnwal.formats.format import Found
from turnwal.formats.items import Fault
from turnwal.formats.lenient import encoded, value_of
from turnwal.formats.parts import text
from turnwal.formats.repairing import fresh, unloadable
from turnwal.formats.slots import invented, to_answer
from turnwal.formats.wording import text_for

_NAMES: Final = {NOT_STARTED: "ToolNotStartedError", OUTCOME_UNKNOWN: "ToolOutcomeUnknownError"}
_CHUNK: Final = 1 << 20


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a repaired copy to `out`. Raises `Refused` as the module says, or where something is there; `OSError`."""
    for fault in diagnosis.damage:
        if fault.kind in ("gap", "too_new") or "header" in fault.what:
            raise _refused(found, f"{fault.place}: {fault.what}")
    copy = _Copy(found, diagnosis)
    copy.look()
    with fresh(out) as file:
        copy.write(file)


def _refused(found: Found, why: str) -> Refused:
    return unloadable(found.path, "the harness", why)


class _Copy:
    """Where copying is."""

    def __init__(self, found: Found, diagnosis: Diagnosis) -> None:
        self._found = found
        self._calls = to_answer(diagnosis)
        self._invented = invented(diagnosis)
        self._turn: object = None
        self._steps: dict[str, object] = {}
        """By id: the step of each call of the open step."""
        self._dispatches: dict[str, int] = {}
        """By id: the number of its dispatch."""
        self._next = 0
        self._time: object = None

    def look(self) -> None:
        """Find what the results need to know. Raises `Refused` for a call outside the open step."""
        for source in events.sources(self._found.path):
            for _, event in _kept(self._found.path, source):
                self._note(event)
        for call in self._calls:
            if call.id not in self._steps:
                raise _refused(self._found, f"call {call.id} ({call.place}) was left open in a step that has ended")

    def _note(self, event: Event) -> None:
        try:
            numbers = events.numbers(event)
        except MsgspecError:
            return
        if numbers is None:
            return
        self._next, self._time = sum(numbers), event.time if event.time is not None else self._time
        if event.type in ("turn/start", "turn/end", "step/end"):
            self._steps.clear()
            self._dispatches.clear()
            if event.type == "turn/start":
                self._turn = _data_of(event).get("turn")
        elif event.type == "assistant/message" and not event.replaces:
            data = _data_of(event)
            message = data.get("message")
            for block in blocks_of(message.get("content")) if isinstance(message, dict) else ():
                if block.get("type") == "tool-call":
                    self._steps[text(block.get("id"))] = data.get("step")
        elif event.type == "tool/call":
            id = _data_of(event).get("callId")
            if isinstance(id, str) and isinstance(event.seq, int):
                self._dispatches[id] = event.seq

    def write(self, file: BinaryIO) -> None:
        """Write the copy."""
        packed = False
        for source in events.sources(self._found.path):
            packed = source.frame is not None
            whole = source.frame is not None and source.frame.state == "whole"
            lines, changed = [], not whole
            for data, event in _kept(self._found.path, source):
                truthful = self._truthful(data, event)
                changed = changed or truthful != data
                lines.append(truthful + b"\n")
                if not packed:
                    file.write(lines.pop())
            if packed and not changed:
                self._carry(file, source)
            elif lines:
                file.write(_frame(lines))
        answers = [encoded(self._result(call, number)) + b"\n" for number, call in enumerate(self._calls, self._next)]
        if answers:
            file.write(_frame(answers) if packed else b"".join(answers))

    def _carry(self, file: BinaryIO, source: Source) -> None:
        """Write a frame as it stands."""
        frame = source.frame
        if frame is None:
            return
        with self._found.path.open("rb") as original:
            original.seek(frame.start)
            left = frame.end - frame.start
            while left and (data := original.read(min(left, _CHUNK))):
                file.write(data)
                left -= len(data)

    def _truthful(self, data: bytes, event: Event) -> bytes:
        """The line, with words of ours where recovery made the result of a call that is still open."""
        if event.type != "tool/result" or not self._invented:
            return data
        result = _data_of(event)
        id, _, _ = result_of(result)
        call = self._invented.get(id)
        if call is None or code_of(result) not in _NAMES:
            return data
        value = value_of(data)
        _say(value["data"], text_for(call.risk))
        value["data"]["error"] = _error(OUTCOME_UNKNOWN)
        return encoded(value)

    def _result(self, call: OpenCall, number: int) -> dict[str, object]:
        """The event that answers a call."""
        said = {"type": "text", "text": text_for(call.risk)}
        content = {"type": "tool-result", "toolCallId": call.id, "isError": True, "content": [said]}
        message = {
            "id": f"turnwal-tool-result-{call.id}-{number}",
            "role": "user",
            "source": {"kind": "tool", "callId": call.id},
            "content": [content],
        }
        code = NOT_STARTED if call.risk == "tool_not_started" else OUTCOME_UNKNOWN
        data = {"turn": self._turn, "step": self._steps[call.id], "message": message, "error": _error(code)}
        event = {"type": "tool/result", "seq": number, "time": self._time, "data": data, "surfaceOp": "append"}
        dispatch = self._dispatches.get(call.id)
        return event if dispatch is None else event | {"sourceEventSeqs": [dispatch]}


def _data_of(event: Event) -> dict[str, Any]:
    """The data of an event; nothing where it is of a shape that reading has named."""
    try:
        return events.data_of(event)
    except MsgspecError:
        return {}


def _say(result: dict[str, Any], words: str) -> None:
    """Put words in place of what a result says, where `result_of` reads them."""
    message = result.get("message")
    holder = message if isinstance(message, dict) and "content" in message else result
    said = [{"type": "text", "text": words}]
    inner = [block for block in blocks_of(holder.get("content")) if block.get("type") == "tool-result"]
    for block in inner or [holder]:
        block["content"] = said


def _error(code: str) -> dict[str, str]:
    return {"name": _NAMES[code], "code": code}


def _kept(path: Path, source: Source) -> Iterator[tuple[bytes, Event]]:
    """The events of a part that can be read, with their bytes."""
    for item in events.read(path, source, lambda data: (data.strip(), events.event(data))):
        if not isinstance(item, Fault):
            yield item[1]


def _frame(lines: list[bytes]) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(b"".join(lines))
