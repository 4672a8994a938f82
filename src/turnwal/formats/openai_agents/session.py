"""Reading a session of the SDK: the rows of each branch, each one item of the Responses API.

Source: openai/openai-agents-python at 7f7a44f8, run as 0.24: a run saves what a step made when all its tools have
ended.

A step that a person has to approve is saved without it: the calls of the reply, and the outputs of those that need no
approval. What the person said is saved with the output alone, in no place before.

Promises: a session that does not end with words of the model is blind, since a step may have been at work behind it,
with calls that no row shows. Encrypted rows are not guessed at.
"""

from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import apsw
import msgspec

from turnwal.formats.format import Depth
from turnwal.formats.items import TURNWAL, About, Blind, Fault, Item, Other, Said, Sign
from turnwal.formats.openai_agents.tables import MAIN, ROW_MAX, Row, Table
from turnwal.formats.wording import is_ours
from turnwal.transcript.openai_responses.items import (
    ANSWERS,
    MADE_BY_CLIENT,
    OUTPUTS,
    call_id_of,
    is_run_by_client,
    kind_of,
)
from turnwal.transcript.openai_responses.parse import history

_OURS_MAX: Final = 512
"""Bytes under which the output of a repair stays."""
_APPROVAL: Final = (
    "the calls beside it have outputs, so the SDK waits until a person approves it; "
    "or a person has agreed since, or the application saves calls itself, and it was killed in it"
)
_ALONE: Final = "it is the last thing, as where the SDK waits until a person approves it: look there before a repair"
_DATE: Final = "%Y-%m-%d %H:%M:%S"


def items(connection: apsw.Connection, table: Table, session: str, depth: Depth) -> Iterator[Item]:
    """Yield the items of a session."""
    yield About(session=session)
    yield from _Reader(depth).session(connection, table, session)


def is_given(item: Mapping[str, Any]) -> bool:
    """Whether an item is the application's."""
    kind = kind_of(item)
    return kind in ANSWERS or kind in MADE_BY_CLIENT or (kind == "message" and item.get("role") != "assistant")


class NoItem(Exception):
    """A row that is no item, as what stands in its place."""

    def __init__(self, instead: Item) -> None:
        """Hold the item of ours."""
        super().__init__(instead)
        self.instead = instead


def item_of(row: Row) -> dict[str, Any]:
    """The item of a row. Raises `NoItem` for a row that is none."""
    place = f"row {row.id}"
    if row.data is None:
        raise NoItem(Fault("too_long", place, f"it is longer than {ROW_MAX:,} bytes"))
    try:
        value = msgspec.json.decode(row.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NoItem(
            Fault("corrupt", place, f"{len(row.data):,} bytes that are no JSON; the SDK skips them")
        ) from error
    if isinstance(value, dict) and value.get("__enc__") == 1:
        raise NoItem(Blind(place, "its rows are encrypted: a call in them cannot be seen"))
    if not isinstance(value, dict) or not kind_of(value):
        raise NoItem(Other(place, "row that is no item"))
    return value


class _Head(msgspec.Struct):
    """As much of an item as is needed to know whether it is about a call."""

    type: str | None = None
    role: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: msgspec.Raw = msgspec.Raw()
    enc: int | None = msgspec.field(default=None, name="__enc__")


_head: Final = msgspec.json.Decoder(_Head)


def _quick(row: Row) -> _Head | None:
    """An item of which no more is needed where only calls count, or None for one that has to be read whole."""
    try:
        head = _head.decode(row.data or b"")
    except msgspec.MsgspecError:
        return None
    if head.enc is not None:
        return None
    if head.type == "function_call":
        return head if head.call_id and head.name is not None and head.arguments is not None else None
    if head.type == "function_call_output":
        return head if head.call_id else None
    is_plain = head.role is not None and (head.type in (None, "message")) and b'_call"' not in (row.data or b"")
    return head if is_plain else None


def _quick_said(place: str, head: _Head, run: str) -> Said | None:
    """The event of such an item, with its content left out."""
    if head.type == "function_call":
        part = {"type": "tool_call", "id": head.call_id, "name": head.name, "arguments": head.arguments}
        return Said(place, "assistant_message", {"parts": [part]}, run)
    if head.type != "function_call_output":
        return None
    data: dict[str, Any] = {"id": head.call_id, "parts": []}
    if len(head.output) < _OURS_MAX and is_ours(msgspec.json.decode(head.output or b"null")):
        data["metadata"] = {"synthetic": True, "by": TURNWAL}
    return Said(place, "tool_result", data, run)


class _LastReply:
    """The calls of the last reply of a history, and which of them have outputs."""

    def __init__(self) -> None:
        self._asked: list[str] = []
        self._answered: set[str] = set()

    @property
    def open(self) -> list[str]:
        """The ids of the calls without an output, where nothing but outputs follows the reply."""
        return [id for id in self._asked if id not in self._answered]

    def take(self, item: Mapping[str, Any]) -> None:
        """Take the next item of the history."""
        kind = kind_of(item)
        if kind in ANSWERS:
            if call_id_of(item) in self._asked:
                self._answered.add(call_id_of(item))
            return
        if self._answered or is_given(item):
            self._asked, self._answered = [], set()
        if is_run_by_client(item):
            self._asked.append(call_id_of(item))

    def signs(self, place: str) -> Iterator[Item]:
        """What it says of its open calls that nothing follows the reply."""
        for id in self.open:
            if self._answered:
                yield Sign(place, id, "waiting", _APPROVAL)
            else:
                yield Sign(place, id, "requested", _ALONE)


class _Reader:
    """Where reading is."""

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._served: set[tuple[str, str]] = set()
        """The calls that the provider runs itself, whose outputs are no answers of the application."""
        self._reply: list[tuple[Row, dict[str, Any]]] = []

    def session(self, connection: apsw.Connection, table: Table, session: str) -> Iterator[Item]:
        """Yield the items of all branches, each row once: a branch begins with the rows of the one that it left."""
        told: set[int] = set()
        for branch in table.branches(connection, session):
            run = branch or MAIN
            last: Mapping[str, Any] | None = None
            reply = _LastReply()
            for row in table.rows(connection, session, branch):
                item = yield from self._row(row, run, is_new=row.id not in told)
                told.add(row.id)
                if item is not None:
                    reply.take(item)
                    last = item
            yield from self._replied(run)
            if reply.open:
                yield from reply.signs(f"the end of {run}")
            elif last is not None and not _ends_a_run(last):
                what = "the SDK saves a step when all its tools have ended: a call may have been in flight"
                yield Blind(f"the end of {run}", f"{what}, and this store cannot show it")
        if table.has_branches:
            yield from self._in_no_branch(connection, table, session, told)

    def _row(self, row: Row, run: str, *, is_new: bool) -> Generator[Item, None, Mapping[str, Any] | None]:
        """Yield what a row says. Returns its item, or None for a row that is none."""
        head = _quick(row) if self._depth == "calls" else None
        if head is not None:
            said = _quick_said(f"row {row.id}", head, run) if is_new else None
            if said is not None:
                yield said
            return {"type": head.type or "message", "role": head.role, "output": head.output, "call_id": head.call_id}
        try:
            item = item_of(row)
        except NoItem as no_item:
            if is_new:
                yield no_item.instead
            return None
        if is_new:
            yield from self._item(row, item, run)
        return item

    def _in_no_branch(self, connection: apsw.Connection, table: Table, session: str, told: set[int]) -> Iterator[Item]:
        for row in table.rows(connection, session) if told else ():
            if row.id not in told:
                yield Other(f"row {row.id}", "row in no branch")

    def _item(self, row: Row, item: dict[str, Any], run: str) -> Iterator[Item]:
        kind = kind_of(item)
        if kind in OUTPUTS and not is_run_by_client(item):
            self._served.add((OUTPUTS[kind], call_id_of(item)))
        answers = kind in ANSWERS and (kind, call_id_of(item)) not in self._served
        if not answers and (kind in ANSWERS or not is_given(item)):
            if self._depth == "whole":
                self._reply.append((row, item))
            elif kind in OUTPUTS or _hides_calls(item):
                yield from _events(row, [item], run, self._depth)
            return
        yield from self._replied(run)
        if self._depth == "whole" or answers:
            yield from _events(row, [item], run, self._depth)

    def _replied(self, run: str) -> Iterator[Item]:
        """The reply that ends here."""
        reply, self._reply = self._reply, []
        if reply:
            yield from _events(reply[0][0], [item for _, item in reply], run, self._depth)


def _events(row: Row, found: list[dict[str, Any]], run: str, depth: Depth) -> Iterator[Item]:
    place = f"row {row.id}"
    try:
        events = list(history(found))
    except (AttributeError, KeyError, TypeError, ValueError):
        yield Other(place, f"{kind_of(found[0])} of an unknown shape")
        return
    time = _time(row.time) if depth == "whole" else None
    for type_, data in events:
        yield Said(place, type_, _marked(data) if type_ == "tool_result" else data, run, time)


def _marked(data: dict[str, Any]) -> dict[str, Any]:
    """The data, with the answers of our repairs known as such: an item has no open place for a mark."""
    parts = data["parts"]
    if len(parts) == 1 and is_ours(parts[0].get("content")):
        return data | {"metadata": {"synthetic": True, "by": TURNWAL}}
    return data


def _hides_calls(item: Mapping[str, Any]) -> bool:
    content = item.get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") in OUTPUTS for block in content
    )


def _ends_a_run(item: Mapping[str, Any]) -> bool:
    """Whether nothing can be at work behind an item: the model has said its last words, or a repair of ours has."""
    if kind_of(item) in ANSWERS:
        output = item.get("output")
        if isinstance(output, msgspec.Raw):
            output = msgspec.json.decode(output) if 0 < len(output) < _OURS_MAX else None
        return is_ours(output)
    return kind_of(item) == "message" and item.get("role") == "assistant"


def _time(text: str | None) -> int | None:
    try:
        return None if text is None else int(datetime.strptime(text[:19], _DATE).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None
