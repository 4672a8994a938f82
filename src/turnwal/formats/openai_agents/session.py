"""Reading a session of the SDK: the rows of each branch, each one item of the Responses API.

Source: openai/openai-agents-python at 7f7a44f8, run as 0.24: a run saves what a step made when all its tools have
ended.

Promises: a session that does not end with words of the model is blind, since a step may have been at work behind it,
with calls that no row shows. Encrypted rows are not guessed at.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import apsw
import msgspec

from turnwal.formats.format import Depth
from turnwal.formats.items import TURNWAL, About, Blind, Fault, Item, Other, Said
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

_DATE: Final = "%Y-%m-%d %H:%M:%S"


def items(connection: apsw.Connection, table: Table, session: str, depth: Depth) -> Iterator[Item]:
    """Yield the items of a session."""
    yield About(session=session)
    yield from _Reader(depth).session(connection, table, session)


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


class _Reader:
    """Where reading is."""

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self._served: set[tuple[str, str]] = set()
        """The calls that the provider runs itself, whose outputs are no answers of the application."""
        self._reply: list[tuple[Row, dict[str, Any]]] = []

    def session(self, connection: apsw.Connection, table: Table, session: str) -> Iterator[Item]:
        told: set[int] = set()
        for branch in table.branches(connection, session):
            run = branch or MAIN
            last: dict[str, Any] | None = None
            for row in table.rows(connection, session, branch):
                try:
                    last = item_of(row)
                except NoItem as no_item:
                    if row.id not in told:
                        yield no_item.instead
                else:
                    if row.id not in told:  # a branch begins with the rows of the one that it left
                        yield from self._item(row, last, run)
                told.add(row.id)
            yield from self._replied(run)
            if last is not None and not _ends_a_run(last):
                what = "the SDK saves a step when all its tools have ended: a call may have been in flight"
                yield Blind(f"the end of {run}", f"{what}, and this store cannot show it")
        if table.has_branches:
            yield from self._in_no_branch(connection, table, session, told)

    def _in_no_branch(self, connection: apsw.Connection, table: Table, session: str, told: set[int]) -> Iterator[Item]:
        for row in table.rows(connection, session) if told else ():
            if row.id not in told:
                yield Other(f"row {row.id}", "row in no branch")

    def _item(self, row: Row, item: dict[str, Any], run: str) -> Iterator[Item]:
        kind = kind_of(item)
        if kind in OUTPUTS and not is_run_by_client(item):
            self._served.add((OUTPUTS[kind], call_id_of(item)))
        answers = kind in ANSWERS and (kind, call_id_of(item)) not in self._served
        by_client = answers or kind in MADE_BY_CLIENT or (kind == "message" and item.get("role") != "assistant")
        if not by_client:
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
        return is_ours(item.get("output"))
    return kind_of(item) == "message" and item.get("role") == "assistant"


def _time(text: str | None) -> int | None:
    try:
        return None if text is None else int(datetime.strptime(text[:19], _DATE).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None
