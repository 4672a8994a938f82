"""A repaired copy of a session database: an output item for each open call, behind the reply that asks for it.

Source: openai/openai-agents-python at 7f7a44f8: a history is ordered by id (SQLAlchemy: by time, then id; branches: by
`sequence_number`), so the rows behind an output that is put in get new ids, as `clear_session` and `add_items` would
give them. An item has no open place for a mark: the text is it.

Promises: the rows of other sessions stay as they are, and so do calls that wait; the counters of the database follow.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

from turnwal.core.errors import Refused
from turnwal.core.rules import Risk
from turnwal.formats.database import copied_to
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Found
from turnwal.formats.lenient import encoded
from turnwal.formats.openai_agents.session import NoItem, is_given, item_of
from turnwal.formats.openai_agents.tables import Row, Table, table_of
from turnwal.formats.wording import text_for
from turnwal.transcript.openai_responses.items import (
    ANSWERS,
    OUTPUTS,
    call_id_of,
    is_run_by_client,
    kind_of,
)

_STRUCTURE: Final = (
    "INSERT INTO message_structure (session_id, message_id, branch_id, message_type, sequence_number, "
    "user_turn_number, branch_turn_number, created_at) SELECT session_id, ?, branch_id, ?, sequence_number + 1, "
    "user_turn_number, branch_turn_number, created_at FROM message_structure WHERE session_id = ? AND message_id = ?"
)


class Placed(NamedTuple):
    """A new output, and the row that it stands behind."""

    behind: Row
    item: dict[str, Any]


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write the copy. Raises `Refused` for a call whose output has no words, and for a path that is there."""
    risks = {call.id: call.risk for call in diagnosis.open if call.evidence != "waiting"}
    copied_to(found.path, out, (lambda connection: _answer(connection, found, risks)) if risks else None)


def _answer(connection: apsw.Connection, found: Found, risks: Mapping[str, Risk | None]) -> None:
    table, session = table_of(connection, found)
    branches = table.branches(connection, session)
    placed: dict[tuple[int, str], Placed] = {}
    for branch in branches:
        for one in outputs(table.rows(connection, session, branch), risks, found.name):
            placed.setdefault((one.behind.id, one.item["call_id"]), one)
    if not placed:
        return
    if branches != [None]:
        _insert_in_branches(connection, table, session, list(placed.values()))
    else:
        _insert_in_order(connection, table, session, list(placed.values()))


def outputs(rows: Iterator[Row], risks: Mapping[str, Risk | None], name: str) -> Iterator[Placed]:
    """Yield an output for each open call of a history, so that those of a reply stand in the order of its calls."""
    listed: list[tuple[Row, dict[str, Any]]] = []
    for row in rows:
        try:
            listed.append((row, item_of(row)))
        except NoItem:
            listed.append((row, {}))  # the SDK steps over it
    missing = _missing([item for _, item in listed])
    index = 0
    while index < len(listed):
        asked: list[int] = []
        while index < len(listed) and not is_given(listed[index][1]):
            if is_run_by_client(listed[index][1]):
                asked.append(index)
            index += 1
        behind = index - 1
        there: dict[str, int] = {}
        while index < len(listed) and kind_of(listed[index][1]) in ANSWERS:
            there.setdefault(call_id_of(listed[index][1]), index)
            index += 1
        for number in asked:
            item = listed[number][1]
            if number in missing and call_id_of(item) in risks:
                yield Placed(listed[behind][0], _output(item, risks[call_id_of(item)], name))
            else:
                behind = there.get(call_id_of(item), behind)
        while index < len(listed) and is_given(listed[index][1]) and kind_of(listed[index][1]) not in ANSWERS:
            index += 1


def _missing(listed: list[dict[str, Any]]) -> set[int]:
    """The indexes of the calls without an output: an output answers the newest call of its id."""
    waiting: dict[str, int] = {}
    missing: set[int] = set()
    for index, item in enumerate(listed):
        if is_run_by_client(item):
            if call_id_of(item) in waiting:
                missing.add(waiting[call_id_of(item)])
            waiting[call_id_of(item)] = index
        elif kind_of(item) in ANSWERS:
            waiting.pop(call_id_of(item), None)
    return missing.union(waiting.values())


def _output(call: Mapping[str, Any], risk: Risk | None, name: str) -> dict[str, Any]:
    """The item that answers a call."""
    kind, text = kind_of(call), text_for(risk)
    output = {"type": OUTPUTS[kind], "call_id": call_id_of(call)}
    if kind in ("function_call", "custom_tool_call", "local_shell_call"):
        return output | {"output": text}
    if kind == "apply_patch_call":
        return output | {"status": "failed", "output": text}
    if kind == "shell_call":
        # of the outcomes that there are, only this one does not say how the command ended
        return output | {"output": [{"stdout": "", "stderr": text, "outcome": {"type": "timeout"}}]}
    raise Refused(
        f"the output of a {kind} cannot say that nothing is known",
        action="repair",
        subject=name,
        hint="import the session and settle the call there",
    )


def _insert_in_order(connection: apsw.Connection, table: Table, session: str, placed: list[Placed]) -> None:
    """Put the outputs in, and give all rows of the session behind the first of them new ids."""
    rows = list(table.rows(connection, session))
    first = min(next(n for n, row in enumerate(rows) if row.id == one.behind.id) for one in placed)
    (next_id,) = next(connection.execute(f"SELECT max(id) + 1 FROM {table.quoted}"))  # noqa: S608 - quoted
    tail: list[tuple[Row, dict[str, Any] | None]] = []
    for number, row in enumerate(rows[first:]):
        if number:
            tail.append((row, None))
        tail += [(row, one.item) for one in placed if one.behind.id == row.id]
    move = f"UPDATE {table.quoted} SET id = ? WHERE id = ?"  # noqa: S608 - quoted
    now: dict[int, int] = {}
    for row, item in tail:
        if item is None:
            connection.execute(move, (next_id, row.id))
            now[row.id] = next_id
        else:
            _insert(connection, table, next_id, now.get(row.id, row.id), item)
        next_id += 1
    connection.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (next_id - 1, table.name))


def _insert_in_branches(connection: apsw.Connection, table: Table, session: str, placed: list[Placed]) -> None:
    """Put the outputs in, each into all branches that have the row that it stands behind."""
    make_room = (
        "UPDATE message_structure SET sequence_number = sequence_number + 1 WHERE session_id = ? AND branch_id = ? "
        "AND sequence_number > ?"
    )
    for one in reversed(placed):  # each goes right behind its row, so the last comes first
        (next_id,) = next(connection.execute(f"SELECT max(id) + 1 FROM {table.quoted}"))  # noqa: S608 - quoted
        _insert(connection, table, next_id, one.behind.id, one.item)
        found = connection.execute(
            "SELECT branch_id, sequence_number FROM message_structure WHERE session_id = ? AND message_id = ?",
            (session, one.behind.id),
        ).fetchall()
        for branch, number in found:
            connection.execute(make_room, (session, branch, number))
        connection.execute(_STRUCTURE, (next_id, one.item["type"], session, one.behind.id))


def _insert(connection: apsw.Connection, table: Table, id: int, like: int, item: Mapping[str, Any]) -> None:
    """Add an item as a row of the same session and time as another."""
    insert = (
        f"INSERT INTO {table.quoted} (id, session_id, message_data, created_at) "  # noqa: S608 - quoted
        f"SELECT ?, session_id, ?, created_at FROM {table.quoted} WHERE id = ?"
    )
    connection.execute(insert, (id, encoded(item).decode(), like))
