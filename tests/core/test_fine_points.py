"""Fine points of the scan, the plan and the surface: what mutants of the code changed and no test had seen."""

from typing import Any

import pytest

from tests.core.build import (
    DURABLE,
    SILENT,
    STEP,
    STEP_END,
    TURN_END,
    Row,
    ask,
    codes,
    dispatch,
    extend,
    log_of,
    note,
    result,
    risks,
)
from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.core.keys import parse
from turnwal.core.line import Event, Unreadable, compact, make, read, read_many
from turnwal.core.log import Log
from turnwal.core.recovery import open_turns, plan, scan_of
from turnwal.core.surface import Surface, range_of

USER: Row = ("user_message", {"parts": [{"type": "text", "content": "go"}]})


def messages(log: Log) -> dict[str, str]:
    """The sentence of each finding, by its code."""
    return {finding.code: finding.message for finding in plan(log).findings}


def damage(after: int | None, kind: str = "torn", **data: Any) -> Row:
    return ("damage", ({} if after is None else {"after": after}) | {"kind": kind} | data)


# The plan as data


def test_a_plan_is_told_as_plain_values() -> None:
    told = plan(log_of(SILENT, STEP, ask("a"), ("step_end", {}), ("step_end", {}))).to_json()
    repair = told["repairs"][0]

    assert list(told) == ["interrupted", "repairs", "findings"]
    assert told["interrupted"] is True
    assert list(repair) == ["run", "type", "data", "rule", "because"]
    assert (repair["run"], repair["type"], repair["rule"], repair["because"]) == ("main", "tool_result", 8, [1, 2])
    assert repair["data"]["call"] == "2.0"
    assert [finding["code"] for finding in told["findings"]] == ["stray_step_end"]
    assert plan(Log()).to_json() == {"interrupted": False, "repairs": [], "findings": []}


def test_open_turns_are_those_that_no_end_has_closed() -> None:
    log = log_of(("turn_start", {"turn": 1}), TURN_END, ("turn_start", {"turn": 2}), ("turn_start", {"turn": 3}))

    assert [event.seq for event in open_turns(log)] == [3, 2]
    extend(log, [("turn_end", {"turn": 3}), USER])
    assert [event.seq for event in open_turns(log)] == [2]


def test_open_turns_hold_no_more_than_what_is_open() -> None:
    log = log_of(*(row for number in range(9) for row in (("turn_start", {"turn": number}), ("turn_end", {}))), SILENT)

    assert [event.seq for event in open_turns(log)] == [18]


def test_a_void_rests_on_its_question() -> None:
    (void,) = (
        repair
        for repair in plan(log_of(DURABLE, STEP, ask("a"), note("approval_request", "a", "2.0"))).repairs
        if repair.type == "approval_response"
    )
    assert void.because == (3,)


def test_a_turn_ends_with_the_count_of_its_steps() -> None:
    for count in range(4):
        assert plan(log_of(SILENT, *[STEP, STEP_END] * count)).repairs[-1].data["steps"] == count


@pytest.mark.parametrize(("depth", "kept"), [(197, True), (198, True), (199, False)])
@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("leaf", [{}, [], {"n": 1}, [1]])
def test_what_a_repair_repeats_is_left_out_where_it_would_be_too_deep(
    depth: int, kept: bool, lists: bool, leaf: Any
) -> None:
    value = leaf
    for _ in range(depth - 2):
        value = [value] if lists else {"n": value}
    log = log_of(DURABLE, STEP, ask("a"), dispatch("a", "2.0", child={"n": value}))
    metadata = plan(log).repairs[0].data["metadata"]

    assert ("child" in metadata) is kept
    extend(log, [(repair.type, dict(repair.data), repair.run) for repair in plan(log).repairs])


# Damage


def test_damage_is_told_with_its_length_and_kind() -> None:
    assert messages(log_of(damage(-1, "nul", length=7)))["damage"] == "7 bytes that are no record (nul)"
    assert messages(log_of(damage(-1)))["damage"] == "? bytes that are no record (torn)"


def test_damage_that_does_not_say_where_stands_behind_the_event_before_it() -> None:
    assert risks(log_of(SILENT, ask("a"), damage(None, "nul"))) == {"1.0": "unknown"}
    later = log_of(SILENT, STEP, damage(None, "nul"), ask("a"), STEP_END)
    assert risks(later) == {"3.0": "inferred"}


def test_only_the_innermost_turn_says_whether_a_torn_dispatch_could_be_missing() -> None:
    rows = (ask("a"), note("tool_suspended", "a", "2.0"), damage(3, "torn"))

    assert scan_of(log_of(SILENT, DURABLE, *rows)).waiting() == [{"call": "2.0", "id": "a", "name": "tool"}]
    assert scan_of(log_of(DURABLE, SILENT, *rows)).waiting()[0]["doubt"] is True


@pytest.mark.parametrize("kind", ["torn", "nul"])
def test_of_two_damages_at_one_place_the_later_one_is_named(kind: str) -> None:
    log = log_of(SILENT, ask("a"), damage(1, kind), damage(1, kind))

    assert plan(log).repairs[0].because == (1, 3)


# Who is waiting


def test_a_boundary_names_the_run_and_the_question_of_what_waits() -> None:
    log = log_of(
        ("turn_start", {"turn": 1}, "sub"),
        ask("a", "b", run="sub"),
        note("approval_request", "a", "1.0", run="sub"),
        note("tool_suspended", "a", "1.0", run="sub"),
        note("approval_request", "b", "1.1", run="sub"),
        note("approval_response", "b", "1.1", run="sub", decision="denied"),
        note("tool_suspended", "b", "1.1", run="sub"),
    )

    assert scan_of(log).waiting() == [
        {"call": "1.0", "id": "a", "name": "tool", "run": "sub", "question": 2},
        {"call": "1.1", "id": "b", "name": "tool", "run": "sub"},
    ]


def tail(*waiting: Any) -> list[Event]:
    """A boundary at seq 9 that says that these wait, as a scan of a tail begins with."""
    data = {"turn": 1, "open": [], "waiting": list(waiting)}
    return [make(Event(seq=9, prev="0" * 64, time=0, type="turn_end", data=data))[1]]


def test_a_tail_takes_what_waits_from_its_boundary() -> None:
    told = {"call": "3.0", "id": "a", "name": "tool", "run": "sub", "question": 4}

    assert scan_of(tail(told)).waiting() == [told]
    assert scan_of(tail(told | {"doubt": True})).waiting() == [told | {"doubt": True}]


@pytest.mark.parametrize("odd", [5, None, "3.0", {"call": None}, {"call": "x"}, {"call": "9.0"}, {"call": "10.0"}])
def test_a_tail_passes_over_what_names_no_call_before_its_boundary(odd: Any) -> None:
    assert scan_of(tail(odd)).waiting() == []


def test_a_run_of_another_form_in_a_boundary_is_main() -> None:
    assert scan_of(tail({"call": "3.0", "id": "a", "run": 5})).waiting() == [{"call": "3.0", "id": "a"}]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([note("tool_suspended", "a", "1.0")], "waits"),
        (
            [note("approval_request", "a", "1.0"), note("approval_response", "a", "1.0", decision="granted")],
            "was granted",
        ),
    ],
)
def test_doubt_is_told_of_what_waits_or_was_granted(rows: list[Row], said: str) -> None:
    log = log_of(SILENT, ask("a"), *rows, TURN_END)
    extend(log, [damage(len(log) - 1, "nul")])

    assert messages(log)["doubtful_call"].startswith(f"call 1.0 {said}, and its dispatch")


def test_doubt_ends_where_it_is_said_that_the_call_did_not_happen() -> None:
    log = log_of(SILENT, ask("a"), note("tool_suspended", "a", "1.0"), TURN_END)
    extend(log, [damage(3, "nul"), note("tool_outcome", "a", "1.0", outcome="did_not_happen")])

    assert scan_of(log).waiting() == [{"call": "1.0", "id": "a", "name": "tool"}]
    assert "doubtful_call" not in messages(log)


# Attempts and outcomes


ATTEMPTS: tuple[Row, ...] = (
    DURABLE,
    STEP,
    ask("a", "b"),
    dispatch("a", "2.0"),
    result("a", "2.0", metadata={"synthetic": True}),
    dispatch("b", "2.1"),
    result("b", "2.1", metadata={"synthetic": True}),
    dispatch("a", "2.0", attempt=2),
    dispatch("b", "2.1", attempt=2),
)


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (note("tool_outcome", "a", "2.0", attempt=2), ["2.1"]),
        (note("tool_outcome", "b", "2.1", attempt=2), ["2.0"]),
        (note("tool_outcome", "a", attempt=2), ["2.1"]),
        (note("tool_outcome", "b", attempt=2), ["2.0"]),
        (note("tool_outcome", "b", "2.0", attempt=2), ["2.1"]),
        (note("tool_outcome", "c", attempt=2), ["2.0", "2.1"]),
        (note("tool_outcome", "a", "2.0", attempt=3), ["2.0", "2.1"]),
        (note("tool_outcome", "a", "2.0", attempt=1), ["2.0", "2.1"]),
    ],
)
def test_an_outcome_closes_the_attempt_that_it_names_by_key_or_else_by_id(outcome: Row, left: list[str]) -> None:
    log = log_of(*ATTEMPTS, outcome)

    assert [repair.data["call"] for repair in plan(log).repairs if repair.type == "tool_outcome"] == left


def test_an_outcome_is_about_the_call_that_it_names_or_closes() -> None:
    for outcome, about in (
        (note("tool_outcome", "a", "2.0"), "2.0"),
        (note("tool_outcome", "b", attempt=2), "2.1"),
        (note("tool_outcome", "c", attempt=2), None),
    ):
        assert scan_of(log_of(*ATTEMPTS, outcome)).about == parse(about)


def test_a_repeat_without_a_key_is_that_of_the_call_with_its_id() -> None:
    answered = (DURABLE, STEP, ask("a", "b"), dispatch("a", "2.0"), result("a", "2.0"))
    assert scan_of(log_of(*answered, dispatch("a", attempt=2))).about == parse("2.0")
    assert scan_of(log_of(*answered, dispatch("b", attempt=2))).about == parse("2.1")
    assert scan_of(log_of(*answered, dispatch("c", attempt=2))).about == parse("5.d")


def test_a_repeat_without_a_key_may_have_been_any_call_that_fits() -> None:
    asked = ask("a", "a", arguments="{}")
    log = log_of(DURABLE, ("user_message", {"parts": []}), asked, dispatch("a", attempt=2))

    assert risks(log) == {"2.0": "unknown", "2.1": "unknown"}


def test_a_repeat_without_a_key_fits_the_call_of_its_name_and_arguments() -> None:
    first = (
        "assistant_message",
        {"parts": [_part("a", "other", "{}"), _part("a", "tool", '{"n":1}'), _part("a", "tool", "{}")]},
    )
    assert scan_of(log_of(DURABLE, first, dispatch("a", attempt=2))).about == parse("1.2")


def _part(id: str, name: str, arguments: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments} | more


# Calls that are met by their dispatch, and asked for again


def test_a_dispatch_met_first_says_all_that_its_result_needs() -> None:
    log = log_of(SILENT, dispatch("a", "0.5", name="pay", redacted=True), dispatch("b", name="look"))
    answers = {repair.data["call"]: repair.data for repair in plan(log).lost_calls()}

    assert (answers["0.5"]["id"], answers["0.5"]["name"]) == ("a", "pay")
    assert (answers["2.d"]["id"], answers["2.d"]["name"]) == ("b", "look")


def test_a_dispatch_and_its_request_behind_it_are_one_call() -> None:
    log = log_of(SILENT, STEP, dispatch("a", arguments='{"n":1}'), ask("a", arguments='{"n":1}'))

    assert risks(log) == {"2.d": "unknown"}


def test_a_dispatch_of_a_call_that_is_known_makes_no_second_one() -> None:
    log = log_of(DURABLE, STEP, dispatch("a", "1.0"), dispatch("a", "1.0"), TURN_END)
    assert codes(log).count("dispatch_without_request") == 1
    assert codes(log).count("dangling_call") == 1


def completed(*parts: dict[str, Any], of: int = 1, **data: Any) -> Row:
    return ("assistant_message", {"parts": list(parts), "completes": of} | data)


def test_the_version_that_completes_a_message_says_what_its_calls_are() -> None:
    incomplete = ask("a", arguments='{"cut', complete=False)
    silent = log_of(SILENT, incomplete, completed(_part("a", "tool", "no json", format="text")))
    assert risks(silent) == {"1.0": "unknown"}
    assert risks(log_of(SILENT, incomplete, completed(_part("a", "tool", "no json")))) == {"1.0": "inferred"}
    assert risks(log_of(SILENT, incomplete, completed(_part("a", "tool", "no json", redacted=True)))) == {
        "1.0": "unknown"
    }


def test_a_dispatch_that_a_later_version_asks_for_was_requested() -> None:
    rows = (SILENT, ask("a", complete=False), dispatch("a", "1.0"), completed(_part("a", "tool", "{}")), TURN_END)
    assert "dispatch_without_request" not in codes(log_of(*rows))


@pytest.mark.parametrize("of", [2, 3, True, "1", None, -1])
def test_what_completes_no_message_before_it_asks_anew(of: Any) -> None:
    log = Log()
    extend(log, [SILENT, ask("a")])
    data = {"parts": [_part("b", "tool", "{}")], "completes": of}
    try:
        log.append("assistant_message", data)
    except InvalidEvent:
        return
    assert set(risks(log)) == {"1.0", "2.0"}


def test_parts_of_an_earlier_version_keep_their_keys_beside_those_that_were_answered() -> None:
    log = log_of(
        SILENT,
        STEP,
        ask("a", "b", complete=False),
        dispatch("a", "2.0"),
        result("a", "2.0"),
        completed(_part("a", "tool", "{}"), _part("b", "tool", "{}"), of=2),
        ask("z"),
    )
    assert set(risks(log)) == {"2.1", "6.0"}


def test_a_new_part_of_a_later_version_is_no_call_of_another_message() -> None:
    later = completed(_part("a", "tool", "{}"), _part("b", "tool", "{}"), of=3)
    log = log_of(SILENT, STEP, ask("z", "y"), ask("a", complete=False), later)

    assert set(risks(log)) == {"2.0", "2.1", "3.0", "4.1"}


def test_what_a_later_version_no_longer_asks_for_is_not_owed() -> None:
    assert set(risks(log_of(SILENT, ask("a", "b"), completed(_part("a", "tool", "{}"))))) == {"1.0"}


def test_a_later_version_asks_for_what_was_dispatched_before_it() -> None:
    rows = (SILENT, USER, dispatch("a", "1.0"))

    assert "dispatch_without_request" in codes(log_of(*rows, TURN_END))
    assert "dispatch_without_request" not in codes(log_of(*rows, completed(_part("a", "tool", "{}")), TURN_END))


def test_a_later_version_may_name_a_call_whose_turn_has_ended() -> None:
    granted = (note("approval_request", "a", "1.0"), note("approval_response", "a", "1.0", decision="granted"))
    log = log_of(SILENT, ask("a"), *granted, TURN_END, SILENT, completed(_part("a", "tool", "{}")))

    assert [call["call"] for call in scan_of(log).granted()] == ["1.0"]


@pytest.mark.parametrize("odd", ["1", None, [1], 1.0])
def test_a_foreign_message_that_completes_no_seq_asks_anew(odd: Any) -> None:
    events = [*log_of(SILENT, ask("a"))]
    data = {"parts": [_part("b", "tool", "{}")], "completes": odd}
    events.append(Event(seq=2, prev="0" * 64, time=0, type="assistant_message", data=data))

    assert {repair.data["call"] for repair in plan(events).lost_calls()} == {"1.0", "2.0"}


def test_a_call_met_by_its_dispatch_may_wait() -> None:
    log = log_of(SILENT, dispatch("a", "0.5"), note("tool_suspended", "a", "0.5"))
    assert [call["call"] for call in scan_of(log).waiting()] == ["0.5"]


# Text that was shown


def test_text_that_was_shown_rests_on_its_first_and_its_last_piece() -> None:
    def delta(text: str) -> Row:
        return ("assistant_delta", {"step": 1, "index": 0, "text": text})

    def rests(*rows: Row) -> list[tuple[int, ...]]:
        return [finding.seqs for finding in plan(log_of(*rows)).findings if finding.code == "partial_message"]

    assert rests(DURABLE, STEP, delta("a"), delta("b"), delta("c"), STEP_END) == [(2, 4)]
    assert rests(DURABLE, STEP, delta("a"), STEP_END) == [(2,)]
    assert rests(DURABLE, STEP, delta("a"), delta("b")) == [(2, 3)]
    assert rests(DURABLE, STEP, delta("a"), ask("x"), STEP_END) == []


def test_a_second_result_says_whether_it_is_the_same() -> None:
    rows = (SILENT, STEP, ask("a"), dispatch("a", "2.0"), result("a", "2.0"))
    for text, said in (("done", "the same content"), ("other", "different content")):
        assert messages(log_of(*rows, result("a", "2.0", text=text)))["duplicate_result"] == (
            f"call 2.0 has a result already; this one has {said}"
        )


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_response_without_a_key_decides_the_pending_question_of_that_id(first: str) -> None:
    log = log_of(
        SILENT,
        ask("a", "a"),
        note("approval_request", "a", "1.1"),
        note("approval_response", "a", decision="denied"),
        *([note("approval_response", "a", decision="granted")] if first == "b" else []),
    )
    scan = scan_of(log)
    assert scan.about == parse("1.1" if first == "a" else "1.0")


@pytest.mark.parametrize("type", ["approval_request", "approval_response"])
def test_a_record_without_a_key_means_the_call_of_its_name(type: str) -> None:
    asks: Row = ("assistant_message", {"parts": [_part("a", "pay", "{}"), _part("a", "look", "{}")]})
    asked = (
        [note("approval_request", "a", "1.0"), note("approval_request", "a", "1.1")] if type[9:] == "response" else []
    )
    for name, key in (("pay", "1.0"), ("look", "1.1")):
        for before in ([], asked):
            assert scan_of(log_of(SILENT, asks, *before, note(type, "a", name=name))).about == parse(key)
    assert scan_of(log_of(SILENT, asks, *asked, note(type, "b"))).about is None


def test_a_question_without_a_key_is_asked_of_a_call_that_has_none() -> None:
    rows = (SILENT, ask("a", "a"), note("approval_request", "a", "1.0"))

    assert scan_of(log_of(*rows, note("approval_request", "a"))).about == parse("1.1")
    twice = (note("approval_request", "a"), note("approval_request", "a"))
    assert scan_of(log_of(*rows, *twice)).about == parse("1.0")


def test_a_response_without_a_key_goes_to_a_question_before_any_other_call() -> None:
    rows = (SILENT, ask("a", "a"), note("approval_request", "a", "1.1"))

    assert scan_of(log_of(*rows, note("approval_response", "a", decision="denied"))).about == parse("1.1")
    none_pending = log_of(SILENT, ask("a", "a"), note("approval_response", "a", decision="denied"))
    assert scan_of(none_pending).about == parse("1.0")


def test_what_has_its_result_does_not_wait_again() -> None:
    log = log_of(SILENT, STEP, ask("a"), dispatch("a", "2.0"), result("a", "2.0"), note("tool_suspended", "a", "2.0"))

    assert scan_of(log).waiting() == []


def test_a_call_that_a_tail_has_not_met_waits_under_its_key() -> None:
    log = log_of(SILENT, ask("a"), TURN_END, SILENT, note("tool_suspended", "a", "1.0", name="pay"))
    extend(log, [damage(0, "nul")])
    scan = scan_of(list(log)[3:])

    assert scan.waiting() == [{"call": "1.0", "id": "a", "name": "pay"}]
    assert scan_of([*list(log)[3:5], *log_of(*[USER] * 5, damage(1, "nul")).events[5:]]).waiting() == [
        {"call": "1.0", "id": "a", "name": "pay", "doubt": True}
    ]


def test_a_record_that_names_itself_means_no_call() -> None:
    assert scan_of(log_of(SILENT, note("tool_suspended", "a", "1.0"))).waiting() == []


def test_a_step_end_too_many_is_told() -> None:
    told = messages(log_of(SILENT, STEP_END))["stray_step_end"]
    assert told == "no step of the innermost open turn is open"


# The line


def test_a_line_that_is_refused_says_why_in_half_a_sentence() -> None:
    good, event = make(Event(seq=0, prev="0" * 64, time=0, type="x", data={"v": 1}))
    with pytest.raises(Unreadable) as caught:
        read(good.replace(b"1", b"1e999"))
    assert str(caught.value) == caught.value.reason == "is not JSON of the strict kind (a number is out of range)"
    assert read_many([good]) == [event]


def test_many_lines_are_read_at_once_where_that_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    short = make(Event(seq=0, prev="0" * 64, time=0, type="x", data={"v": 1}))[0]
    long = make(Event(seq=0, prev="0" * 64, time=0, type="x", data={"v": "v" * 500}))[0]
    monkeypatch.setattr("turnwal.core.line._read_strictly", _never)

    assert len(read_many([short, long, short])) == 3


def test_a_line_of_many_brackets_is_read_with_care(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = make(Event(seq=0, prev="0" * 64, time=0, type="x", data={"v": "[" * 500}))[0]
    monkeypatch.setattr("turnwal.core.line._read_strictly", _never)

    with pytest.raises(AssertionError):
        read_many([deep])


def _never(_: bytes) -> Event:
    raise AssertionError("read again")


def test_compact_text_names_the_path_of_what_it_cannot_hold() -> None:
    with pytest.raises(InvalidEvent, match=r"value\[0\] is nan"):
        compact([float("nan")])
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert compact(value) == "[" * 200 + "1" + "]" * 200
    with pytest.raises(OverLimit):
        compact([value])


def told(value: Any) -> tuple[str, str, str]:
    """What is said of a value that no line holds: what was attempted, why not, and what to do."""
    with pytest.raises((InvalidEvent, OverLimit)) as caught:
        make(Event(seq=0, prev="0" * 64, time=0, type="x", data={"v": value}))
    return caught.value.action, caught.value.message, caught.value.hint


def test_what_no_line_holds_is_refused_with_what_to_do() -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert told(10**4_000) == ("append", "data.v is an integer of more than 4,000 digits", "record it as text")
    assert told(deep)[0] == "append"
    assert told(deep)[1].endswith("is nested deeper than 200")
    assert told(deep)[2] == "record the value as text"
    assert told(float("inf")) == ("append", "data.v is inf, which JSON cannot hold", "record it as text")
    assert told({1, 2}) == (
        "append",
        "data.v is a set, which JSON cannot hold without loss",
        "convert it to text, a number, a list or an object first",
    )
    assert told({1: 2}) == ("append", "data.v has the key 1, which is a int, not text", "use text keys")
    assert told({"\ud83d\udc8f": 1, "\U0001f48f": 2}) == (
        "append",
        "data.v has two keys that both read back as '\U0001f48f'",
        "use keys that differ in more than how they are encoded",
    )


# The surface


def seen(*rows: Row) -> Surface:
    surface = Surface()
    for event in log_of(*rows):
        surface.add(event)
    return surface


def test_the_place_before_a_seq_is_that_of_the_last_visible_event_there() -> None:
    surface = seen(USER, STEP, USER, STEP, USER)

    assert [surface.before(seq) for seq in range(-1, 6)] == [-1, 0, 0, 1, 1, 2, 2]


def test_only_a_message_completes_a_message() -> None:
    surface = Surface()
    log = log_of(ask("a", complete=False), USER)
    for event in log:
        surface.add(event)
    other = Event(seq=2, prev="0" * 64, time=0, type="user_message", data={"parts": [], "completes": 0})

    assert surface.add(other) == 2
    assert [event.seq for event in surface] == [0, 1, 2]


def test_a_version_of_a_version_takes_its_place() -> None:
    log = log_of(USER, ask("a", complete=False), completed(of=1, complete=False), USER, completed(of=2))

    assert [event.seq for event in log.surface()] == [0, 4, 3]


def test_a_range_is_two_seqs_in_a_list() -> None:
    assert range_of({"replace": [1, 2]}) == (1, 2)
    for odd in (None, [], [1], [2, 1], [1, 2, 3], (1, 2), "12", {"0": 1}, [1, None], [True, 2]):
        assert range_of({"replace": odd}) is None
    assert range_of({}) is None


def test_a_replace_of_what_is_still_to_come_takes_its_place_all_the_same() -> None:
    surface = Surface()
    for seq, more in enumerate(({}, {"replace": [10, 12]}, {}, {})):
        data: dict[str, Any] = {"parts": [], **more}
        surface.add(Event(seq=seq, prev="0" * 64, time=0, type="user_message", data=data))

    assert [event.seq for event in surface] == [0, 2, 3, 1]
    assert [surface.position(index) for index in range(4)] == [0, 2, 3, 10]


def test_a_seq_that_a_replace_has_taken_is_behind_it() -> None:
    surface = Surface()
    for seq, more in enumerate(({"replace": [1, 1]}, {})):
        data: dict[str, Any] = {"parts": [], **more}
        surface.add(Event(seq=seq, prev="0" * 64, time=0, type="user_message", data=data))

    assert [event.seq for event in surface] == [0, 1]
