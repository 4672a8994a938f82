"""The table that classifies a lost call, row by row, each with the neighbour that just misses it."""

import pytest

from tests.core.build import DURABLE, SILENT, STEP, STEP_END, TURN_END, Row, ask, dispatch, log_of, note, result
from turnwal.core.recovery import plan

NONE: Row = ("turn_start", {"turn": 1, "dispatch": "none"})
SOMETIMES: Row = ("turn_start", {"turn": 1, "dispatch": "sometimes"})
WEAK_STEP: Row = ("step_start", {"step": 1, "dispatch": "none"})
ODD_STEP: Row = ("step_start", {"step": 1, "dispatch": "sometimes"})
ASK = ask("a")
TWO = ask("a", "b")
CUT = ask("a", arguments='{"x":')
GONE = {"type": "tool_call", "id": "a", "name": "tool", "arguments": "[gone]", "redacted": True}
MASKED = ("assistant_message", {"parts": [GONE]})
MASKED_LATER = ("assistant_message", {"parts": [GONE], "completes": 2})
PENDING = note("approval_request", "a", "2.0")
RESUMED: Row = ("session_resume", {"format": 1})


def decided(decision: str | None) -> Row:
    return note("approval_response", "a", "2.0", **({} if decision is None else {"decision": decision}))


def damage(kind: str | None, after: int) -> Row:
    return ("damage", {"after": after} if kind is None else {"kind": kind, "after": after})


ROWS: dict[str, tuple[tuple[Row, ...], int]] = {
    "dispatched": ((DURABLE, STEP, ASK, dispatch("a", "2.0")), 1),
    "dispatched, then suspended and granted": (
        (DURABLE, STEP, ASK, dispatch("a", "2.0"), note("tool_suspended", "a", "2.0"), decided("granted")),
        1,
    ),
    "another call of the same id was dispatched by id": ((DURABLE, STEP, ask("a", "a"), dispatch("a")), 1),
    "a dispatch of other arguments fits both as badly": (
        (DURABLE, STEP, ask("a", "a"), dispatch("a", arguments='{"y":1}')),
        1,
    ),
    "NULs after the request": ((DURABLE, STEP, ASK, damage("nul", 2)), 2),
    "corrupt bytes after the request": ((DURABLE, STEP, ASK, damage("corrupt", 2)), 2),
    "lost bytes after the request": ((DURABLE, STEP, ASK, damage("lost", 2)), 2),
    "damage of an unknown kind": ((DURABLE, STEP, ASK, damage("of_tomorrow", 2)), 2),
    "damage of no kind": ((DURABLE, STEP, ASK, damage(None, 2)), 2),
    "damage that does not say where": ((DURABLE, STEP, ASK, ("damage", {"kind": "nul"})), 2),
    "NULs before the request": ((DURABLE, STEP, damage("nul", 1), ASK), 4),
    "NULs whose place is before the request": ((DURABLE, STEP, ASK, damage("nul", 1)), 4),
    "a torn tail under a durable turn": ((DURABLE, STEP, ASK, damage("torn", 2)), 4),
    "a torn tail under a step that weakens it": ((DURABLE, WEAK_STEP, ASK, damage("torn", 2)), 2),
    "a torn tail of a writer that declares nothing": ((SILENT, STEP, ASK, damage("torn", 2)), 2),
    "a torn tail behind an owner who repaired only": ((SILENT, STEP, CUT, RESUMED, damage("torn", 2)), 6),
    "NULs behind an owner who repaired only": ((DURABLE, STEP, ASK, RESUMED, damage("nul", 3)), 4),
    "a loss behind an owner who repaired only": ((DURABLE, STEP, ASK, RESUMED, damage("lost", 3)), 2),
    "NULs behind an owner who did more": ((DURABLE, STEP, ASK, RESUMED, ("x.note", {}), damage("nul", 4)), 2),
    "a copy after the request": ((DURABLE, STEP, ASK, ("session_copied", {})), 3),
    "a copy before the request": ((DURABLE, STEP, ("session_copied", {}), ASK), 4),
    "a durable turn": ((DURABLE, STEP, ASK), 4),
    "a durable turn without a step": ((DURABLE, ("user_message", {}), ASK), 4),
    "a durable step in a turn that declares nothing": (
        (SILENT, ("step_start", {"step": 1, "dispatch": "durable"}), ASK),
        9,
    ),
    "a step that weakens a durable turn": ((DURABLE, WEAK_STEP, ASK), 9),
    "a step that says something unknown": ((DURABLE, ODD_STEP, ASK), 9),
    "an approval that is pending": ((SILENT, STEP, ASK, PENDING), 5),
    "an approval that is pending in a turn without dispatches": ((NONE, STEP, ASK, PENDING), 5),
    "an approval that was denied": ((SILENT, STEP, ASK, PENDING, decided("denied")), 5),
    "an approval that was granted": ((SILENT, STEP, ASK, PENDING, decided("granted")), 9),
    "an approval that was granted and asked for again": (
        (SILENT, STEP, ASK, PENDING, decided("granted"), PENDING),
        9,
    ),
    "an approval that was granted and denied": (
        (SILENT, STEP, ASK, PENDING, decided("granted"), decided("denied")),
        9,
    ),
    "an approval with an unknown decision": ((SILENT, STEP, ASK, PENDING, decided("perhaps")), 9),
    "an approval without a decision": ((SILENT, STEP, ASK, PENDING, decided(None)), 9),
    "an approval that was void": ((SILENT, STEP, ASK, PENDING, decided("void")), 9),
    "arguments that were cut off": ((SILENT, STEP, CUT), 6),
    "arguments that were cut off in a turn without dispatches": ((NONE, STEP, CUT), 6),
    "arguments that were redacted": ((SILENT, STEP, MASKED), 9),
    "arguments that were redacted in a turn without dispatches": ((NONE, STEP, MASKED), 9),
    "arguments that were redacted in a later version": (
        (SILENT, STEP, ask("a", arguments='{"x":', complete=False), MASKED_LATER),
        9,
    ),
    "arguments that were redacted when the call was repeated": (
        (SILENT, STEP, ask("a", arguments="[gone]"), MASKED),
        9,
    ),
    "another call was dispatched": ((SILENT, STEP, TWO, dispatch("b", "2.1")), 7),
    "another call was dispatched and answered": ((SILENT, STEP, TWO, dispatch("b", "2.1"), result("b", "2.1")), 7),
    "another call was dispatched in an earlier step": (
        (SILENT, STEP, ASK, STEP_END, STEP, ask("b"), dispatch("b", "5.0")),
        7,
    ),
    "another call was dispatched in a turn that says none": ((NONE, STEP, TWO, dispatch("b", "2.1")), 9),
    "another call was dispatched in a turn that says something unknown": (
        (SOMETIMES, STEP, TWO, dispatch("b", "2.1")),
        9,
    ),
    "another call was dispatched, the step weakens": ((DURABLE, WEAK_STEP, TWO, dispatch("b", "2.1")), 9),
    "another call was dispatched, a third was answered without": (
        (SILENT, STEP, ask("a", "b", "c"), dispatch("b", "2.1"), result("c", "2.2")),
        9,
    ),
    "another call was dispatched, a third was answered by recovery": (
        (
            SILENT,
            STEP,
            ask("a", "b", "c"),
            dispatch("b", "2.1"),
            result("c", "2.2", metadata={"synthetic": True}),
        ),
        7,
    ),
    "another call was dispatched in an inner turn": (
        (SILENT, STEP, ASK, SILENT, ask("b"), dispatch("b", "4.0"), result("b", "4.0"), TURN_END),
        9,
    ),
    "another call was dispatched in another run": (
        (SILENT, STEP, ASK, ("turn_start", {"turn": 1}, "sub"), ask("b", run="sub"), dispatch("b", "4.0", run="sub")),
        9,
    ),
    "the step is closed and nothing was dispatched": ((SILENT, STEP, ASK, STEP_END), 8),
    "the step is closed in a turn that says none": ((NONE, STEP, ASK, STEP_END), 9),
    "the step is closed in a turn that says something unknown": ((SOMETIMES, STEP, ASK, STEP_END), 9),
    "the step is closed and another call was answered without a dispatch": (
        (SILENT, STEP, TWO, result("b", "2.1"), STEP_END),
        9,
    ),
    "the step is open and another one was closed": ((SILENT, STEP, ASK, STEP, STEP_END), 9),
    "the step is open": ((SILENT, STEP, ASK), 9),
    "there is no step": ((SILENT, ("user_message", {}), ASK), 9),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_first_rule_that_matches_decides(name: str) -> None:
    rows, rule = ROWS[name]

    found = {(repair.run, repair.data["call"]): repair.rule for repair in plan(log_of(*rows)).lost_calls()}

    asked = next(seq for seq, row in enumerate(rows) if row[0] == "assistant_message")
    assert found["main", f"{asked}.0"] == rule


@pytest.mark.parametrize(
    ("hints", "source", "keyed", "retry"),
    [
        ({"read_only": True}, "declared", False, "safe"),
        ({"read_only": True}, "confirmed", True, "safe"),
        ({"read_only": True}, {"read_only": "declared"}, False, "safe"),
        ({"read_only": True}, {"idempotent": "declared"}, False, "verify_first"),
        ({"read_only": True}, {"read_only": "server"}, False, "verify_first"),
        ({"read_only": True}, "server", False, "verify_first"),
        ({"read_only": True}, None, False, "verify_first"),
        ({"read_only": "true"}, "declared", False, "verify_first"),
        ({"read_only": 1}, "declared", False, "verify_first"),
        ({"idempotent": True}, "declared", True, "same_arguments"),
        ({"idempotent": True}, "server", True, "same_key"),
        ({"destructive": False}, "declared", False, "verify_first"),
        ({}, "declared", True, "same_key"),
        (None, None, False, "verify_first"),
    ],
)
def test_only_hints_that_the_application_vouches_for_soften_the_advice(
    hints: object, source: object, keyed: bool, retry: str
) -> None:
    more = {"hints": hints, "hints_from": source, "keyed": keyed}
    given = {name: value for name, value in more.items() if value is not None}
    dispatched: Row = ("tool_call", {"call": "2.0", "id": "a", **given})

    planned = plan(log_of(DURABLE, ("user_message", {}), ASK, dispatched))

    assert planned.lost_calls()[0].data["metadata"]["retry"] == retry
