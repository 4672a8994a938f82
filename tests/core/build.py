"""Short ways to write logs by hand, for tests that need one log and not thousands."""

from collections.abc import Iterable
from typing import Any

from turnwal.core.log import Log
from turnwal.core.recovery import Plan, plan

Row = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str]
"""Type, data, and the run where it is not `main`."""

DURABLE: Row = ("turn_start", {"turn": 1, "dispatch": "durable"})
SILENT: Row = ("turn_start", {"turn": 1})
"""A writer that declares nothing about its dispatches."""
STEP: Row = ("step_start", {"step": 1})
STEP_END: Row = ("step_end", {"step": 1, "outcome": "ok"})
TURN_END: Row = ("turn_end", {"turn": 1, "reason": "complete"})


def log_of(*rows: Row) -> Log:
    """A log of these events."""
    log = Log()
    extend(log, rows)
    return log


def extend(log: Log, rows: Iterable[Row]) -> Log:
    """The log with these events appended."""
    for row in rows:
        log.append(row[0], row[1], run=row[2] if len(row) == 3 else "main")
    return log


def ask(*ids: str, name: str = "tool", arguments: Any = "{}", run: str = "main", **data: Any) -> Row:
    """An assistant message that asks for calls."""
    parts = [{"type": "tool_call", "id": id, "name": name, "arguments": arguments} for id in ids]
    return ("assistant_message", {"parts": parts, **data}, run)


def dispatch(id: str, call: str | None = None, *, run: str = "main", **data: Any) -> Row:
    """A dispatch, by key where one is given."""
    return ("tool_call", _about(id, call) | {"name": "tool", "arguments": "{}"} | data, run)


def result(id: str, call: str | None = None, *, run: str = "main", text: str = "done", **data: Any) -> Row:
    """A real result, by key where one is given."""
    return ("tool_result", _about(id, call) | {"parts": [{"type": "text", "content": text}]} | data, run)


def note(type: str, id: str, call: str | None = None, *, run: str = "main", **data: Any) -> Row:
    """A suspension, an approval or an outcome, by key where one is given."""
    return (type, _about(id, call) | data, run)


def _about(id: str, call: str | None) -> dict[str, Any]:
    return {"id": id} if call is None else {"call": call, "id": id}


def risks(source: Log | Plan) -> dict[str, str]:
    """Key of each owed call, with its class: `unknown`, `declared` or `inferred`."""
    planned = plan(source) if isinstance(source, Log) else source
    return {
        repair.data["call"]: repair.data["metadata"].get("basis", "unknown")
        for repair in planned.repairs
        if repair.type == "tool_result"
    }


def codes(log: Log) -> list[str]:
    """The codes of what is odd in a log."""
    return [finding.code for finding in plan(log).findings]
