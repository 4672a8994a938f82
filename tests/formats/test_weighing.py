"""Weighing: which calls have an outcome of their own, and what is proved about the others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from turnwal.core.rules import RULES
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Depth, Format, Found
from turnwal.formats.items import About, Blind, Evidence, Fault, FaultKind, Item, Other, Said, Sign
from turnwal.formats.weighing import FAULTS_MAX, weigh


def nothing(_: Found, __: Depth) -> Iterator[Item]:
    return iter(())


def weighed(*items: Item) -> Diagnosis:
    format = Format(
        name="some",
        title="Some Tool",
        on_resume="refused",
        resume_text="It is refused.",
        recognises=lambda _: True,
        read=nothing,
    )
    return weigh(Found(format, Path("a")), items)


def ask(
    *ids: str, name: str = "run", arguments: str = "{}", place: str = "line 1", run: str = "main", **data: Any
) -> Said:
    parts = [{"type": "tool_call", "id": id, "name": name, "arguments": arguments} for id in ids]
    return Said(place, "assistant_message", {"parts": [{"type": "text", "content": "x"}, *parts], **data}, run)


def answer(id: str, *, by: str | None = None, place: str = "line 2", run: str = "main") -> Said:
    data: dict[str, Any] = {"id": id, "parts": []}
    if by is not None:
        data["metadata"] = {"synthetic": True, "by": by}
    return Said(place, "tool_result", data, run)


def sign(id: str, evidence: Literal["requested", "dispatched", "ran", "waiting"], what: str = "shown") -> Sign:
    return Sign("line 3", id, evidence, what)


def left(found: Diagnosis) -> list[tuple[str, Evidence]]:
    return [(call.id, call.evidence) for call in found.open]


def faults(found: Diagnosis) -> list[tuple[str, str]]:
    return [(fault.kind, fault.place) for fault in found.damage]


def test_an_empty_session_is_clean() -> None:
    found = weighed()
    assert (found.verdict, found.calls, found.answered, found.on_resume) == ("clean", 0, 0, "continues")


def test_a_call_is_paired_with_its_answer_in_whatever_run_that_is() -> None:
    found = weighed(ask("a", "b"), answer("b"), answer("a", run="sub"))
    assert (found.verdict, found.calls, found.answered, found.on_resume) == ("clean", 2, 2, "continues")


def test_what_is_unanswered_is_open_in_the_order_of_asking() -> None:
    found = weighed(ask("a"), ask("b"), ask("c"), answer("b"))
    assert (found.verdict, found.on_resume) == ("interrupted", "refused")
    assert left(found) == [("a", "requested"), ("c", "requested")]


def test_an_open_call_says_where_and_what() -> None:
    (call,) = weighed(ask("a", name="pay", arguments='{"n":1}', place="row 7", run="sub")).open
    assert (call.name, call.arguments, call.place, call.run) == ("pay", '{"n":1}', "row 7", "sub")
    assert call.because == ("row 7: asked for", RULES[-1].sentence)
    (call,) = weighed(ask("a", complete=False)).open
    assert call.because[0] == "line 1: asked for by a message that never completed"


def test_an_id_that_is_used_again_before_its_answer_is_answered_where_it_was_asked_last() -> None:
    twice = (ask("k", arguments='{"n":1}'), ask("k", arguments='{"n":2}', place="line 5"))
    found = weighed(*twice)
    assert (found.calls, len(found.open)) == (2, 2)
    found = weighed(*twice, answer("k"))
    assert [call.arguments for call in found.open] == ['{"n":1}']
    assert weighed(*twice, answer("k"), answer("k")).verdict == "clean"


def test_an_id_that_is_used_again_after_its_answer_is_another_call() -> None:
    found = weighed(ask("k"), answer("k"), ask("k"))
    assert (found.calls, found.answered, left(found)) == (2, 1, [("k", "requested")])
    assert weighed(ask("k"), answer("k"), ask("k"), answer("k")).verdict == "clean"


def test_f08_the_same_call_in_another_message_is_another_one() -> None:
    found = weighed(ask("k"), ask("k", place="line 5"))
    assert (found.calls, [call.place for call in found.open]) == (2, ["line 1", "line 5"])
    found = weighed(ask("k"), ask("k", place="line 5"), answer("k"))
    assert [call.place for call in found.open] == ["line 1"]
    found = weighed(ask("k", "k"), answer("k"))
    assert (found.calls, found.answered, left(found)) == (2, 1, [("k", "requested")])


def test_a_message_that_did_not_complete_and_comes_once_more_asks_once() -> None:
    again = ask("k")._replace(place="row 2")
    found = weighed(ask("k", complete=False), again)
    assert (found.calls, len(found.open)) == (1, 1)
    assert weighed(ask("k", complete=False), again, answer("k")).verdict == "clean"


def test_f08_equal_calls_of_one_message_are_calls_of_their_own() -> None:
    found = weighed(ask("k"), ask("k"), answer("k"))
    assert (found.calls, found.answered, len(found.open)) == (2, 1, 1)


def test_calls_without_an_id_are_each_a_call() -> None:
    found = weighed(ask("", ""), answer(""))
    assert (found.calls, found.answered, len(found.open)) == (2, 1, 1)


def test_a_result_of_nothing_and_a_second_one_are_named() -> None:
    found = weighed(answer("x"))
    assert (found.verdict, faults(found)) == ("damaged", [("orphan_result", "line 2")])
    found = weighed(ask("k"), answer("k"), answer("k", place="line 9"))
    assert (found.verdict, faults(found), found.answered) == ("clean", [("duplicate", "line 9")], 1)


def test_an_invented_answer_is_no_outcome() -> None:
    found = weighed(ask("k"), answer("k", by="some"))
    (call,) = found.open
    assert (found.verdict, found.answered, call.evidence) == ("interrupted", 0, "answered_synthetic")
    assert (call.risk, call.because[1]) == ("tool_outcome_unknown", "line 2: an answer that some invented")


def test_the_answer_of_a_repair_says_the_truth() -> None:
    found = weighed(ask("k"), answer("k", by="turnwal"))
    assert (found.verdict, found.answered) == ("clean", 1)


def test_what_really_came_takes_the_place_of_an_invention() -> None:
    found = weighed(ask("k"), answer("k", by="some"), answer("k"))
    assert (found.verdict, found.answered, found.damage) == ("clean", 1, ())
    found = weighed(ask("k"), answer("k"), answer("k", by="some"))
    assert (found.verdict, found.answered, found.damage) == ("clean", 1, ())


_SHOWN: list[tuple[list[Literal["requested", "dispatched", "ran", "waiting"]], Evidence]] = [
    ([], "requested"),
    (["requested"], "requested"),
    (["dispatched"], "dispatched"),
    (["ran"], "ran"),
    (["ran", "dispatched"], "ran"),
    (["dispatched", "ran", "requested"], "ran"),
    (["waiting"], "waiting"),
    (["waiting", "requested"], "waiting"),
    (["waiting", "dispatched"], "dispatched"),
    (["dispatched", "waiting"], "dispatched"),
]


@pytest.mark.parametrize(("signs", "evidence"), _SHOWN)
def test_the_strongest_sign_counts_and_each_is_told(
    signs: list[Literal["requested", "dispatched", "ran", "waiting"]], evidence: Evidence
) -> None:
    found = weighed(ask("k"), *(sign("k", each, f"sign {each}") for each in signs))
    (call,) = found.open
    assert call.evidence == evidence
    assert [line for line in call.because if "sign" in line] == [f"line 3: sign {each}" for each in signs]
    assert found.verdict == ("waiting" if evidence == "waiting" else "interrupted")
    assert (call.risk is None) is (evidence == "waiting")


def test_a_sign_is_of_the_newest_call_of_its_id_and_of_no_answered_one() -> None:
    found = weighed(ask("k", arguments='{"n":1}'), ask("k", arguments='{"n":2}'), sign("k", "ran"))
    assert left(found) == [("k", "requested"), ("k", "ran")]
    assert weighed(ask("k"), answer("k"), sign("k", "dispatched"), sign("x", "ran")).verdict == "clean"


def test_not_started_is_said_only_where_the_writer_guarantees_dispatch_records() -> None:
    assert weighed(ask("k")).open[0].risk == "tool_outcome_unknown"
    found = weighed(About(durable=True), ask("k"), ask("m"), sign("m", "dispatched"))
    assert [call.risk for call in found.open] == ["tool_not_started", "tool_outcome_unknown"]
    assert found.open[0].because[-1] == RULES[3].sentence
    assert weighed(ask("k"), About(durable=True)).open[0].risk == "tool_not_started"


def test_what_the_table_would_only_infer_is_unknown() -> None:
    (call,) = weighed(ask("k", arguments='{"a":')).open
    assert (call.risk, call.because[-1]) == ("tool_outcome_unknown", RULES[5].sentence)


@pytest.mark.parametrize(
    ("kind", "risk"),
    [
        ("corrupt", "tool_outcome_unknown"),
        ("nul_run", "tool_outcome_unknown"),
        ("too_long", "tool_outcome_unknown"),
        ("gap", "tool_outcome_unknown"),
        ("torn", "tool_not_started"),
        ("duplicate", "tool_not_started"),
        ("fused", "tool_not_started"),
        ("raw_newline", "tool_not_started"),
    ],
)
def test_bytes_that_were_lost_may_have_been_the_dispatch(kind: FaultKind, risk: str) -> None:
    (call,) = weighed(About(durable=True), ask("k"), Fault(kind, "line 9", "x")).open
    assert call.risk == risk


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("torn", "damaged"),
        ("corrupt", "damaged"),
        ("nul_run", "damaged"),
        ("gap", "damaged"),
        ("missing_parent", "damaged"),
        ("too_long", "damaged"),
        ("orphan_result", "damaged"),
        ("too_new", "too_new"),
        ("duplicate", "clean"),
        ("fused", "clean"),
        ("raw_newline", "clean"),
    ],
)
def test_what_each_kind_of_damage_makes_of_a_session(kind: FaultKind, verdict: str) -> None:
    found = weighed(Fault(kind, "line 9", "x"))
    assert (found.verdict, faults(found)) == (verdict, [(kind, "line 9")])


def test_which_verdict_comes_first() -> None:
    torn, blind = Fault("torn", "line 9", "x"), Blind("line 9", "calls are recorded when they are done")
    assert weighed(ask("k"), torn, blind).verdict == "interrupted"
    assert weighed(ask("k"), sign("k", "waiting"), torn).verdict == "waiting"
    assert weighed(torn, blind).verdict == "damaged"
    found = weighed(blind)
    assert (found.verdict, found.problem) == ("blind", "calls are recorded when they are done")
    assert weighed(ask("k"), Fault("too_new", "line 1", "x")).verdict == "too_new"


def test_waiting_beside_an_open_one_is_interrupted() -> None:
    found = weighed(ask("k", "m"), sign("k", "waiting"))
    assert (found.verdict, left(found)) == ("interrupted", [("k", "waiting"), ("m", "requested")])


def test_many_faults_are_counted_and_not_kept() -> None:
    found = weighed(*(Fault("corrupt", f"line {number}", "x") for number in range(FAULTS_MAX + 1_234)))
    assert len(found.damage) == FAULTS_MAX + 1
    assert (found.damage[-1].place, found.damage[-1].what) == ("further", "1,234 more")


def test_types_that_are_not_known_are_counted() -> None:
    found = weighed(Other("line 1", "x"), Other("line 2", "y"), Other("line 3", "x"))
    assert (found.verdict, found.unknown) == ("clean", {"x": 2, "y": 1})


def test_the_newest_word_of_the_session_about_itself_counts() -> None:
    found = weighed(About("1", "s"), About("2"), About(None, "t"))
    assert (found.version, found.session) == ("2", "t")


def test_a_diagnosis_as_plain_values() -> None:
    found = weighed(About("1", "s"), ask("k"), Fault("torn", "line 9", "x"), Other("line 3", "y"))
    assert found.to_json() == {
        "path": "a",
        "format": "some",
        "version": "1",
        "session": "s",
        "calls": 1,
        "answered": 0,
        "verdict": "interrupted",
        "open": [
            {
                "id": "k",
                "name": "run",
                "evidence": "requested",
                "risk": "tool_outcome_unknown",
                "because": ["line 1: asked for", RULES[-1].sentence],
            }
        ],
        "damage": [{"kind": "torn", "place": "line 9", "what": "x"}],
        "on_resume": "refused",
        "unknown": {"y": 1},
        "problem": "",
    }


def test_an_invented_answer_is_nothing_in_the_way_of_the_tool_and_an_open_call_is() -> None:
    invented = (ask("a"), answer("a", by="some"))
    assert (weighed(*invented).verdict, weighed(*invented).on_resume) == ("interrupted", "continues")
    waiting = weighed(*invented, ask("b"), sign("b", "waiting"))
    assert (waiting.verdict, waiting.on_resume) == ("interrupted", "continues")
    assert weighed(*invented, ask("b")).on_resume == "refused"
