"""The tables of the SDK's sessions, whatever an application calls them.

Source: `memory/sqlite_session.py`, `extensions/memory/sqlalchemy_session.py` and `advanced_sqlite_session.py` of
openai/openai-agents-python at 7f7a44f8: a table of sessions and one of messages, whose names can be chosen. Those of
SQLAlchemy are ordered by time and then by id. With `message_structure` a session has branches; the history of one is
its rows.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import apsw

from turnwal.formats.format import Found

MESSAGES: Final = frozenset({"id", "session_id", "message_data", "created_at"})
SESSIONS: Final = frozenset({"session_id", "created_at", "updated_at"})
STRUCTURE: Final = frozenset({"session_id", "message_id", "branch_id", "message_type", "sequence_number"})
MAIN: Final = "main"
"""The first branch of a session."""

ROW_MAX: Final = 128 * 1024 * 1024
"""Bytes of one row."""


class Row(NamedTuple):
    """A row of messages."""

    id: int
    data: bytes | None
    """None for one over the limit."""
    time: str | None


class Table(NamedTuple):
    """A table of messages."""

    name: str
    by_time: bool
    """Its rows are ordered by time before id."""
    has_branches: bool

    @property
    def quoted(self) -> str:
        """The name as SQL has it."""
        return quoted(self.name)

    @property
    def order(self) -> str:
        """How the rows of a session are ordered."""
        return "m.created_at, m.id" if self.by_time else "m.id"

    def branches(self, connection: apsw.Connection, session: str) -> list[str | None]:
        """The branches of a session in the order in which they began; None alone where it has no structure."""
        if not self.has_branches:
            return [None]
        found = connection.execute(
            "SELECT branch_id FROM message_structure WHERE session_id = ? GROUP BY branch_id "
            "ORDER BY branch_id <> ?, min(id)",
            (session, MAIN),
        )
        return [str(branch) for (branch,) in found] or [None]

    def rows(self, connection: apsw.Connection, session: str, branch: str | None = None) -> Iterator[Row]:
        """The rows of a session, or of one branch of it, in order."""
        data = "CASE WHEN octet_length(m.message_data) <= ? THEN CAST(m.message_data AS BLOB) END"
        what = f"SELECT m.id, {data}, m.created_at"
        if branch is None:
            sql = f"{what} FROM {self.quoted} m WHERE m.session_id = ? ORDER BY {self.order}"
            found = connection.execute(sql, (ROW_MAX, session))
        else:
            sql = (
                f"{what} FROM {self.quoted} m JOIN message_structure s ON m.id = s.message_id "
                "WHERE m.session_id = ? AND s.branch_id = ? ORDER BY s.sequence_number"
            )
            found = connection.execute(sql, (ROW_MAX, session, branch))
        for id, data, time in found:
            yield Row(id, data, time if isinstance(time, str) else None)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def are_there(tables: Mapping[str, frozenset[str]]) -> bool:
    """Whether a database has a pair of such tables and they are the SDK's: nothing but its columns is in them."""
    return MESSAGES in tables.values() and SESSIONS in tables.values()


def tables_of(connection: apsw.Connection) -> list[Table]:
    """The tables of messages in a database."""
    names = [
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    ]
    columns = {name: _columns(connection, name) for name in names}
    owner = _owner(connection) if columns.get("message_structure", frozenset()) >= STRUCTURE else None
    return [
        Table(name, _is_ordered_by_time(connection, name), has_branches=owner == name)
        for name in names
        if columns[name] == MESSAGES
    ]


def table_of(connection: apsw.Connection, found: Found) -> tuple[Table, str]:
    """The table of a session that was found, and the id of the session in it."""
    tables = tables_of(connection)
    if len(tables) == 1:
        return tables[0], found.session or ""
    for table in tables:
        if (found.session or "").startswith(f"{table.name}/"):
            return table, (found.session or "").removeprefix(f"{table.name}/")
    raise ValueError("its table is not there any more")


def _columns(connection: apsw.Connection, table: str) -> frozenset[str]:
    return frozenset(str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,)))


def _owner(connection: apsw.Connection) -> str | None:
    """The table whose rows have branches."""
    found = connection.execute(
        """SELECT "table" FROM pragma_foreign_key_list('message_structure') WHERE "from" = 'message_id'"""
    ).fetchone()
    return None if found is None else str(found[0])


def _is_ordered_by_time(connection: apsw.Connection, table: str) -> bool:
    for (index,) in connection.execute("SELECT name FROM pragma_index_list(?)", (table,)).fetchall():
        names = connection.execute("SELECT name FROM pragma_index_info(?)", (index,)).fetchall()
        if names == [("session_id",), ("created_at",)]:
            return True
    return False
