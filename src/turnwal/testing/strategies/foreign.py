"""Events that `Log.append` accepts and that make as little sense as a foreign log may."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from turnwal.testing.strategies.rows import Row
from turnwal.testing.strategies.values import json_objects, texts

_IDS = st.sampled_from(["a", "a", "a", "b", "b", "", "\ud83d"])
_NAMES = st.sampled_from(["tool", "tool", "tool", "other"])
_ARGUMENTS = st.sampled_from(["{}", "{}", "{}", "{}", "", '{"x":1}', '{"x":', "\ud800", {"x": 1}])
_RUNS = st.sampled_from(["main"] * 7 + ["sub", "1.0"])
_NUMBERS = st.integers(0, 3)
_DISPATCH = st.sampled_from(["durable", "durable", "none", "sometimes"])
_HINTS = st.fixed_dictionaries(
    {},
    optional={
        "hints": st.dictionaries(
            st.sampled_from(["read_only", "idempotent", "destructive"]), st.booleans() | st.none()
        ),
        "hints_from": st.sampled_from(["declared", "confirmed", "annotated"])
        | st.just({"read_only": "declared"})
        | st.just([1]),
        "keyed": st.booleans(),
        "key": st.just("0" * 32),
        "child": st.just({"session": "child-7"}),
    },
)


def _maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object that may lack any of these fields; half of them lack none."""
    return st.fixed_dictionaries(fields) | st.fixed_dictionaries({}, optional=fields)


def _keys(last: int) -> st.SearchStrategy[str]:
    """Keys of lines before, at and after the next one, and texts that are no key."""
    named = st.builds("{}.{}".format, st.integers(0, last + 3), st.sampled_from(["0", "0", "1", "2", "d"]))
    return named | st.sampled_from(["", "x", "1", "01.0", "-1.0", "1.-1", "1.0 ", "9" * 30 + ".0", "1." + "9" * 9])


def _call_parts() -> st.SearchStrategy[dict[str, Any]]:
    fields = {"id": _IDS, "name": _NAMES, "arguments": _ARGUMENTS, "format": st.sampled_from(["text", "json"])}
    return st.builds(lambda more: {"type": "tool_call", **more}, _maybe(**fields))


def _other_parts() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {"type": "text", "content": "ab\ud83d"},
            {"type": "server_tool_call", "id": "a", "name": "search"},
            {"type": "reasoning", "content": "\u2028"},
            {"type": "of_tomorrow", "v": [1, {"x": 10**3000}]},
        ]
    )


@cache
def foreign_row(last: int) -> st.SearchStrategy[Row]:
    """One event of a foreign log whose last seq is `last`."""
    seqs = st.integers(0, last + 2)
    waiting = st.lists(
        _maybe(call=_keys(last) | st.none(), id=_IDS | st.integers(), name=_NAMES, run=_RUNS), max_size=2
    )
    hint = {"open": st.lists(seqs, max_size=2), "waiting": waiting}
    call = {"call": _keys(last), "id": _IDS, "name": _NAMES}
    bare = {"id": _IDS, "name": _NAMES}
    parts = st.lists(_call_parts() | _call_parts() | _other_parts(), max_size=3)
    said = st.lists(_other_parts(), max_size=2)
    synthetic = st.sampled_from([{}, {"synthetic": True}, {"synthetic": True, "risk": "tool_outcome_unknown"}])
    dispatched = {"arguments": _ARGUMENTS, "attempt": st.sampled_from([1, 1, 1, 0, 2, 3])}
    decisions = st.sampled_from(["granted", "denied", "void", "maybe"])
    kinds = st.sampled_from(["torn", "nul", "corrupt", "lost", "of_tomorrow"])

    def both(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return _maybe(**bare, **more) | _maybe(**call, **more)

    data: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "turn_start": _maybe(turn=_NUMBERS, dispatch=_DISPATCH, **hint),
        "turn_end": _maybe(turn=_NUMBERS, steps=_NUMBERS, reason=st.just("complete"), **hint),
        "step_start": _maybe(turn=_NUMBERS, step=_NUMBERS, dispatch=_DISPATCH),
        "step_end": _maybe(step=_NUMBERS, outcome=st.sampled_from(["ok", "interrupted"])),
        "assistant_message": _maybe(parts=parts, complete=st.booleans(), completes=seqs),
        "assistant_delta": _maybe(step=_NUMBERS, index=_NUMBERS, text=texts()),
        "user_message": _maybe(parts=said),
        "tool_call": st.builds(
            lambda one, two: one | two,
            both(**dispatched),
            _HINTS,
        ),
        "tool_result": both(parts=said, is_error=st.booleans(), metadata=synthetic),
        "tool_outcome": both(attempt=_NUMBERS, outcome=st.sampled_from(["happened", "unknown"])),
        "tool_suspended": both(),
        "approval_request": both(question=st.just("Really?")),
        "approval_response": both(decision=decisions),
        "damage": _maybe(after=st.integers(-1, last + 2), length=seqs, kind=kinds),
        "session_resume": _maybe(format=st.sampled_from([0, 1]), **hint),
        "session_copied": st.just({}),
        "x.note": json_objects(3),
    }
    often = ["turn_start", "step_start", *["assistant_message"] * 5, *["tool_call"] * 5, *["tool_result"] * 3]
    often += ["approval_request", "approval_response", "tool_suspended"]
    types = st.sampled_from([*data, *often])
    return types.flatmap(
        lambda drawn: st.builds(Row, st.just(drawn), data[drawn], _RUNS, st.none() | st.integers(-10, 10))
    )


_ASKING = {"parts": [{"type": "tool_call", "id": "a", "name": "tool", "arguments": "{}"}] * 2}
_BEGINNINGS: tuple[tuple[Row, ...], ...] = (
    (),
    (Row("turn_start", {}),),
    (Row("turn_start", {"turn": 1, "dispatch": "durable"}), Row("assistant_message", _ASKING)),
    (Row("turn_start", {"turn": 1}), Row("step_start", {}), Row("assistant_message", _ASKING)),
    (Row("turn_start", {"dispatch": "durable"}), Row("step_start", {}), Row("assistant_message", _ASKING)),
)


@st.composite
def foreign_rows(draw: st.DrawFn, max_size: int = 16) -> list[Row]:
    """The events of a foreign log."""
    size = draw(st.integers(0, max_size))
    rows = list(draw(st.sampled_from(_BEGINNINGS)))
    return rows + [draw(foreign_row(seq - 1)) for seq in range(len(rows), size)]
