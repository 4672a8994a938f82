"""Message histories of Pydantic AI: what `ModelMessagesTypeAdapter` writes, conversations, and conversation stores.

Source: pydantic/pydantic-ai at 4fda3898 (MIT), run as 2.68. Where they are kept is the application's choice.

Promises: a result that `repair_messages` made is told from one of a tool. A call is said to wait where the conversation
says so, and where the calls beside it were answered without it: the library gives an application all results of a
response at once, except for those that it deferred.

Does not: know whether the last response of a bare array waits for an approval; that is not recorded there.
"""

from collections.abc import Iterator
from typing import Any, Final

from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import About, Fault, Item, Other, Said, Sign
from turnwal.formats.pydantic_ai.copying import repair
from turnwal.formats.pydantic_ai.history import (
    VERSION,
    around,
    calls,
    deferred_ids,
    is_entry,
    is_store,
    messages,
    store_of,
)
from turnwal.formats.pydantic_ai.messages import (
    answered_by,
    calls_of,
    is_message,
    said,
    text_of,
    time_of,
    unknown_parts,
)
from turnwal.formats.wording import OR_KILLED


def _recognises(sample: Sample) -> bool:
    if sample.kind == "json" and sample.array:
        listed: Any = sample.records
    elif sample.kind in ("json", "lines") and len(sample.records) == 1:
        value = sample.records[0]
        listed = value.get("entries", value.get("messages"))
    else:
        return False
    if not isinstance(listed, (list, tuple)) or not listed:
        return False
    return all(map(is_message, listed)) or all(is_entry(one) and is_message(one["message"]) for one in listed)


def _read(found: Found, depth: Depth) -> Iterator[Item]:
    reader = _Reader(depth)
    if is_store(found.path):
        yield from reader.store(found)
    else:
        yield from reader.array(found)


class _Reader:
    """Where reading is."""

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._open: dict[str, int] = {}
        """How many unanswered calls each id has."""

    def array(self, found: Found) -> Iterator[Item]:
        """The items of an array or a conversation."""
        record = around(found.path)
        yield About(session=_text_or_none(record.get("conversation_id")))
        last: list[Any] = []
        for item in (messages if self._depth == "whole" else calls)(found.path):
            if isinstance(item, Fault):
                yield item
                continue
            index, message = item
            last = [*last[-1:], message]
            yield from self._message(f"messages[{index}]", message, "main")
        yield from self._waiting(deferred_ids(record), last)

    def store(self, found: Found) -> Iterator[Item]:
        """The items of a store: its history, then what the lines that were left have of their own."""
        store = store_of(found.path)
        version = store.record.get("format_version")
        yield About(
            version=None if version is None else str(version),
            session=_text_or_none(store.record.get("conversation_id")),
        )
        if isinstance(version, int) and version > VERSION:
            what = f"it is of version {version}, and {VERSION} is the newest that is known"
            yield Fault("too_new", "the record", what)
        yield from store.faults
        told: set[str] = set()
        for number, tip in enumerate(store.tips()):
            line = store.line(tip)
            for entry in line:
                if entry.id in told:
                    continue
                told.add(entry.id)
                if is_message(entry.message):
                    run = "main" if number == 0 else f"main@{tip}"
                    yield from self._message(f"entry {entry.id}", entry.message, run)
                else:
                    yield Other(f"entry {entry.id}", "entry of an unknown kind")
            if number == 0:
                yield from self._waiting(deferred_ids(store.record), [entry.message for entry in line[-2:]])

    def _message(self, place: str, message: Any, run: str) -> Iterator[Item]:
        for kind in unknown_parts(message):
            yield Other(place, f"{kind} part")
        for call in calls_of(message):
            id = text_of(call.get("tool_call_id"))
            self._open[id] = self._open.get(id, 0) + 1
        answered = [id for id in map(answered_by, message["parts"]) if id is not None]
        if message["kind"] == "request":
            for id in answered:
                self._open[id] = self._open.get(id, 0) - 1
        if self._depth == "calls" and not answered and not calls_of(message):
            return
        time = time_of(message) if self._depth == "whole" else None
        for type_, data in said(message):
            if self._depth == "whole" or type_ in ("assistant_message", "tool_result"):
                yield Said(place, type_, data, run, time)

    def _waiting(self, deferred: set[str], last: list[Any]) -> Iterator[Item]:
        """The calls that the history waits for at its end."""
        for id in sorted(deferred):
            if self._open.get(id, 0) > 0:
                yield Sign("deferred_tool_requests", id, "waiting", f"the conversation waits for it, {OR_KILLED}")
        if deferred or len(last) < 2 or not all(map(is_message, last)):  # noqa: PLR2004 - a response and the request behind it
            return
        asked = [text_of(call.get("tool_call_id")) for call in calls_of(last[0])]
        answered = {answered_by(part) for part in last[1]["parts"] if last[1]["kind"] == "request"} - {None}
        if not answered or not answered <= set(asked) or len(last[1]["parts"]) != len(answered):
            return
        for id in asked:
            if id not in answered and self._open.get(id, 0) > 0:
                what = f"the calls beside it were answered without it: it is deferred, {OR_KILLED}"
                yield Sign("the last request", id, "waiting", what)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


FORMAT: Final = Format(
    name="pydantic_ai",
    title="Pydantic AI",
    on_resume="runs_again",
    resume_text="Without a new prompt the calls are executed again; with one the run is refused with a UserError.",
    recognises=_recognises,
    read=_read,
    repair=repair,
)
