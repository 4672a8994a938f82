"""Transcripts that broke in public, through every provider: what is sent checks, and says what the case is about.

The number of each test is the number of its case. What is sent is read back into events, so that one test speaks of all
providers; how each of them wants it is in the tests of the targets.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import turnwal
from tests.core.build import DURABLE, STEP, STEP_END, TURN_END, Row, ask, codes, dispatch, extend, log_of, result
from turnwal.core.errors import InvalidEvent
from turnwal.core.findings import Finding
from turnwal.transcript.conversation import Waiting
from turnwal.transcript.render import Rendering
from turnwal.transcript.targets import TARGETS
from turnwal.transcript.words import BRIDGE

targets = pytest.mark.parametrize("target", sorted(TARGETS))

INTERRUPTED: Row = ("turn_end", {"turn": 1, "reason": "interrupted"})
AGAIN: Row = ("turn_start", {"turn": 2, "dispatch": "durable"})


def user(text: str = "go") -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": text}]})


def summary(replaced: list[int]) -> Row:
    return ("user_message", {"parts": [{"type": "text", "content": "sum"}], "replace": replaced})


def said(*parts: Any, **more: Any) -> Row:
    told = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    return ("assistant_message", {"parts": told, **more})


def call(id: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": "tool", "arguments": arguments, **more}


@dataclass(frozen=True)
class Said:
    """What one message, or one result in a message, says."""

    kind: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    """Key, in the list that was sent, and arguments of each call it asks for."""
    answers: str | None = None
    """The key of the call that a result answers."""


def read_back(target: str, made: Rendering) -> list[Said]:
    """What the messages of a request say, in their order; system text and the bridge left out."""
    found = []
    for event in turnwal.Log.seed(target, made.messages):
        parts = event.data["parts"]
        text = "".join(part["content"] for part in parts if part["type"] == "text")
        calls = tuple(
            (f"{event.seq}.{index}", part["arguments"])
            for index, part in enumerate(parts)
            if part["type"] == "tool_call"
        )
        if event.type != "system_message" and (text != BRIDGE or calls):
            found.append(Said(event.type.removesuffix("_message"), text, calls, event.data.get("call")))
    return found


def sent(log: Iterable[turnwal.Event], target: str, waiting: Waiting = "refuse") -> tuple[Rendering, list[Said]]:
    """What is sent of a log; it breaks no rule of the provider, and every call in it is answered once and at once."""
    made = turnwal.render(log, target, waiting=waiting)
    assert turnwal.check(target, made.messages, system=made.system) == []
    back = read_back(target, made)
    owed: list[str] = []
    for one in back:
        if one.answers is not None:
            assert one.answers in owed
            owed.remove(one.answers)
        else:
            assert one.kind != "tool_result", "it answers no call"
            assert not owed, "something stands between a call and its result"
        owed += [key for key, _ in one.calls]
    assert not owed
    return made, back


def kinds(back: list[Said]) -> list[str]:
    return [one.kind for one in back]


def results(back: list[Said]) -> list[str]:
    return [one.text for one in back if one.answers is not None]


def found(made: Rendering, code: str) -> list[Finding]:
    return [finding for finding in made.findings if finding.code == code]


# Calls without an answer


@targets
@pytest.mark.parametrize(
    ("dispatched", "words"), [(True, "may have run fully, partly or not at all"), (False, "did not run")]
)
def test_f01_a_dangling_call_at_the_tail_is_answered_as_recovery_answers_it(
    target: str, dispatched: bool, words: str
) -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), *([dispatch("c1", "3.0")] if dispatched else []))
    before, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result"]
    assert words in results(back)[0]
    assert found(before, "unanswered_call")

    turnwal.recover(log)
    after, _ = sent(log, target)
    assert after.messages == before.messages
    assert not found(after, "unanswered_call")
    turnwal.recover(log)
    assert sent(log, target)[0] == after


@targets
def test_f03_a_call_is_answered_though_nothing_marks_the_interruption(target: str) -> None:
    for rows in ([user(), ask("c1"), dispatch("c1")], [DURABLE, user(), ask("c1"), dispatch("c1", "2.0"), TURN_END]):
        log = log_of(*rows)
        assert not turnwal.recover(log)
        extend(log, [user("and now?")])
        made, back = sent(log, target)
        assert kinds(back) == ["user", "assistant", "tool_result", "user"]
        assert "may have run" in results(back)[0]
        assert found(made, "unanswered_call")


@targets
def test_f04_of_three_calls_only_the_one_without_a_result_is_answered_anew(target: str) -> None:
    dispatches = [dispatch(id, f"3.{index}") for index, id in enumerate(("c1", "c2", "c3"))]
    log = log_of(
        *(DURABLE, user(), STEP, ask("c1", "c2", "c3"), *dispatches),
        *(result("c3", "3.2", text="third"), result("c1", "3.0", text="first")),
    )
    turnwal.recover(log)
    _, back = sent(log, target)
    first, second, third = results(back)
    assert ("first" in first, "may have run" in second, "third" in third) == (True, True, True)
    assert [one.answers for one in back if one.answers] == [key for key, _ in back[1].calls]


@targets
def test_f05_results_that_arrived_one_by_one_are_one_answer(target: str) -> None:
    log = log_of(
        *(DURABLE, user(), STEP, ask("c1", "c2"), dispatch("c1", "3.0"), result("c1", "3.0", text="one")),
        *(dispatch("c2", "3.1"), result("c2", "3.1", text="two"), STEP_END, TURN_END),
    )
    assert not turnwal.plan(log).findings
    made, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result", "tool_result"]
    assert not found(made, "unanswered_call")
    one_message = target in ("anthropic", "gemini", "bedrock")
    assert len(made.messages) == {"openai-responses": 5}.get(target, 3 if one_message else 4)


@targets
def test_f06_a_result_without_its_call_is_left_out_and_stays_in_the_log(target: str) -> None:
    log = log_of(user(), result("c9", text="lost"), said("fine"), user("and now?"))
    lines = list(log.lines())
    made, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "user"]
    assert "lost" not in json.dumps(made.messages)
    assert [finding.seqs for finding in found(made, "orphan_result")] == [(1,)]
    assert list(log.lines()) == lines


@targets
@pytest.mark.parametrize("second", ["v1", "v2"])
def test_f07_a_call_that_was_answered_twice_has_its_first_answer(target: str, second: str) -> None:
    log = log_of(
        *(DURABLE, user(), ask("c1"), dispatch("c1", "2.0"), result("c1", "2.0", text="v1"), TURN_END),
        *(AGAIN, user("again"), result("c1", "2.0", text=second)),
    )
    made, back = sent(log, target)
    (answer,) = results(back)
    assert "v1" in answer
    assert [finding.seqs for finding in found(made, "duplicate_result")] == [(4, 8)]


@targets
def test_f07_a_call_that_was_asked_for_twice_is_sent_once(target: str) -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), ask("c1"), dispatch("c1", "3.0"), result("c1", "3.0", text="v1"))
    made, back = sent(log, target)
    assert [len(one.calls) for one in back] == [0, 1, 0]
    assert found(made, "duplicate_call")


@targets
@pytest.mark.parametrize("id", ["call_0", "", "tool"])
def test_f08_reused_and_empty_ids_are_told_apart(target: str, id: str) -> None:
    rows: list[Row] = []
    for number in (1, 2):
        seq = len(rows) + 3
        rows += [("turn_start", {"turn": number, "dispatch": "durable"}), user(f"u{number}"), STEP, ask(id, id)]
        rows += [dispatch(id, f"{seq}.{index}") for index in (0, 1)]
        rows += [result(id, f"{seq}.{index}", text=f"r{number}{index}") for index in (1, 0)]
        rows += [STEP_END, ("turn_end", {"turn": number, "reason": "complete"})]
    made, back = sent(log_of(*rows), target)
    assert [text[-5:].strip('"}') for text in results(back)] == ["r10", "r11", "r20", "r21"]
    # which results a provider gets is told by ids, or by order, that the checker has looked at
    assert not found(made, "orphan_result")


@targets
def test_f09_what_came_between_a_call_and_its_result_stands_behind_both(target: str) -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"), user("wait"), result("c1", "3.0"), STEP_END)
    assert not codes(log)
    _, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result", "user"]
    assert back[-1].text == "wait"


@targets
def test_f12_finished_work_is_never_said_to_be_missing(target: str) -> None:
    rows = [DURABLE, user(), STEP, ask("k", "k")]
    rows += [dispatch("k", "3.0"), result("k", "3.0", text="one"), dispatch("k", "3.1"), result("k", "3.1", text="two")]
    rows += [STEP_END, TURN_END]
    log = log_of()
    for row in rows:
        extend(log, [row])
        turnwal.render(log, target)  # a renderer that grew says what one of the whole says
    made, back = sent(log, target)
    assert made == turnwal.render(list(log), target)
    assert ["one" in text or "two" in text for text in results(back)] == [True, True]
    assert "may have run" not in json.dumps(made.messages)
    assert not found(made, "unanswered_call")


@targets
@pytest.mark.parametrize("dispatched", [True, False])
def test_f13_what_is_said_of_a_lost_call_is_no_more_than_is_known(target: str, dispatched: bool) -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), *([dispatch("c1", "3.0")] if dispatched else []))
    turnwal.recover(log)
    _, back = sent(log, target)
    text = results(back)[0].lower()
    assert not any(word in text for word in ("fail", "cancel", "success", "succe", "user", "refus", "denied"))
    assert ("may have run" in text, "did not run" in text) == (dispatched, not dispatched)


@targets
def test_f15_the_model_reads_that_the_turn_was_interrupted(target: str) -> None:
    log = log_of(DURABLE, user("open a pull request"), STEP, ask("c1"), dispatch("c1", "3.0"))
    turnwal.recover(log)
    extend(log, [AGAIN, user("hello")])
    _, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result", "user"]
    assert "interrupted" in results(back)[0]
    assert back[-1].text == "hello"


# Compaction


@targets
def test_f27_a_summary_never_parts_a_call_from_its_result(target: str) -> None:
    rows = [DURABLE, user(), STEP, ask("c1", "c2"), dispatch("c1", "3.0"), dispatch("c2", "3.1")]
    rows += [result("c1", "3.0", text="one"), result("c2", "3.1", text="two"), STEP_END, TURN_END, AGAIN, user("on")]
    before = sent(log_of(*rows), target)[0].messages
    allowed = 0
    for first in range(len(rows)):
        for last in range(first, len(rows)):
            log, why = log_of(*rows), ""
            try:
                extend(log, [summary([first, last])])
            except InvalidEvent as error:
                why = error.message
            made, back = sent(log, target)
            if why:
                assert f"[{first}, {last}]" in why
                assert made.messages == before
            else:
                allowed += 1
                assert len(results(back)) in (0, 2)
    assert allowed


# What providers sign, cut off, or leave empty

_REASONING: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "thinking", "thinking": "hm", "signature": "sig"},
    "gemini": {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
    "bedrock": {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
    "openai-responses": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
}


def thought(provider: str, **changed: Any) -> dict[str, Any]:
    return {"type": "reasoning", "native": {"provider": provider, "block": {**_REASONING[provider], **changed}}}


@targets
@pytest.mark.parametrize("provider", sorted(_REASONING))
def test_f29_signed_reasoning_goes_back_whole_to_who_wrote_it_or_not_at_all(target: str, provider: str) -> None:
    whole = log_of(
        user(), said(thought(provider), "ok", call("c1"), provider=provider, model="m-1"), result("c1", "1.0")
    )
    text = json.dumps(sent(whole, target)[0].messages)
    assert ('"hm"' in text or "encrypted_content" in text) == (target == provider)
    for message in (
        said(thought(provider), "ok", call("c1"), provider=provider, model="m-1", complete=False),
        said(thought(provider), provider=provider, model="m-1"),
    ):
        log = log_of(user(), message, user("and now?"))
        lines = list(log.lines())
        sent(log, target)
        assert list(log.lines()) == lines
    other = log_of(
        user(), said(thought(provider), "ok", call("c1"), provider=provider, model="m-1"), result("c1", "1.0")
    )
    made = turnwal.render(other, target, model="n-2")
    assert turnwal.check(target, made.messages) == []
    assert '"hm"' not in json.dumps(made.messages)
    assert "encrypted_content" not in json.dumps(made.messages)


@targets
@pytest.mark.parametrize(
    "broken",
    [
        thought("anthropic", signature=None),
        thought("anthropic", signature=""),
        thought("anthropic", thinking=None),
        thought("bedrock", reasoningContent={"reasoningText": {"text": "hm"}}),
        {"type": "reasoning", "content": "hm"},
        {"type": "reasoning"},
    ],
    ids=range(6),
)
def test_f29_a_block_that_lost_its_signature_is_left_out(target: str, broken: dict[str, Any]) -> None:
    provider = broken.get("native", {}).get("provider", "anthropic")
    log = log_of(user(), said(broken, "ok", call("c1"), provider=provider), result("c1", "1.0"), user("on"))
    _, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result", "user"]
    assert back[1].text == "ok"


@targets
def test_f30_arguments_that_were_cut_off_are_sent_as_an_object_and_stay_as_they_were(target: str) -> None:
    raw = '{"path":"a.txt","text":"hel'
    log = log_of(DURABLE, user(), STEP, said(call("c1", raw)), result("c1", "3.0", text="incomplete", is_error=True))
    made, back = sent(log, target)
    (arguments,) = [json.loads(arguments) for _, arguments in back[1].calls]
    assert arguments == {"incomplete_arguments": raw}
    assert found(made, "arguments_wrapped")
    assert log.events[3].data["parts"][0]["arguments"] == raw
    turnwal.recover(log)

    never_ran = log_of(DURABLE, user(), STEP, said(call("c1", raw)))
    turnwal.recover(never_ran)
    assert "did not run" in results(sent(never_ran, target)[1])[0]


@targets
@pytest.mark.parametrize(
    ("parts", "provider"),
    [
        *((parts, "") for parts in ([], [""], [{"type": "reasoning", "content": "hm"}], [{"type": "reasoning"}, ""])),
        *(([thought(provider)], provider) for provider in sorted(_REASONING)),
    ],
    ids=range(4 + len(_REASONING)),
)
def test_f31_a_message_with_nothing_in_it_is_left_out(target: str, parts: list[Any], provider: str) -> None:
    empty = said(*parts, provider=provider)
    log = log_of(user("one"), empty, user("two"), empty, empty, user("three"), said("fine"))
    made, back = sent(log, target)
    assert [one.kind for one in back if one.text or one.calls][-1] == "assistant"
    spoken = "".join(one.text for one in back if one.kind == "user")
    assert spoken == "onetwothree"
    assert len(found(made, "empty_message")) == 3
    assert len(log) == 7


@targets
def test_f32_roles_follow_each_other_and_a_bridge_is_sent_but_never_stored(target: str) -> None:
    log = log_of(DURABLE, user(), STEP, ask("c1"), dispatch("c1", "3.0"))
    turnwal.recover(log)
    extend(log, [AGAIN, user("on")])
    lines = list(log.lines())
    made, back = sent(log, target)
    assert kinds(back) == ["user", "assistant", "tool_result", "user"]
    assert bool(found(made, "bridge_added")) == (BRIDGE in json.dumps(made.messages)) == (target == "mistral")
    assert list(log.lines()) == lines


@targets
def test_f35_half_a_character_is_replaced_on_the_way_out_alone(target: str) -> None:
    log = log_of(
        *(DURABLE, user("ab\ud83d"), STEP, said("x\udc8f", call("c\ud83d", '{"n":"\ud83d"}'))),
        *(dispatch("c\ud83d", "3.1"), result("c\ud83d", "3.1", text="r\ud800"), STEP_END),
    )
    lines = list(log.lines())
    made, back = sent(log, target)
    json.dumps(made.messages, ensure_ascii=False).encode()
    assert back[0].text == "ab\ufffd"
    assert "r\ufffd" in results(back)[0]
    assert found(made, "surrogate_replaced")
    assert list(log.lines()) == lines


# Ids across providers

_LONG = "call_abc|fc_" + "d" * 74
_PRINT = """
import json, sys, turnwal
log = turnwal.Log.read(sys.stdin.buffer.read().split(b"\\n"))
sys.stdout.write(json.dumps(turnwal.render(log, sys.argv[1]).messages))
"""


def unsigned(value: Any) -> Any:
    """Without what Gemini wants in the current turn alone (GE2)."""
    if isinstance(value, dict):
        return {name: unsigned(item) for name, item in value.items() if name != "thoughtSignature"}
    return [unsigned(item) for item in value] if isinstance(value, list) else value


@targets
@pytest.mark.parametrize("id", [_LONG, "mcp__a.b/c d", "é" * 30, "x" * 41, "toolu_01"])
def test_f40_an_id_that_the_next_provider_does_not_take_is_the_same_on_both_sides_in_every_process(
    target: str, id: str
) -> None:
    log = log_of(
        *(DURABLE, user(), STEP, ask(id, "plain1234"), dispatch(id, "3.0"), result(id, "3.0", text="one")),
        *(dispatch("plain1234", "3.1"), result("plain1234", "3.1", text="two"), STEP_END, TURN_END),
    )
    made, back = sent(log, target)
    assert ["one" in results(back)[0], "two" in results(back)[1]] == [True, True]
    assert log.events[3].data["parts"][0]["id"] == id
    extend(log, [AGAIN, user("on")])
    later = sent(log, target)[0].messages
    assert unsigned(later[: len(made.messages) - 1]) == unsigned(made.messages[:-1])


@targets
def test_f40_every_process_makes_the_same_bytes(target: str) -> None:
    rows = [DURABLE, user("é\ud83d"), STEP, ask(_LONG, "", "", arguments='{"b":1,"a":{"d":2,"c":3}}')]
    rows += [dispatch(_LONG, "3.0"), result(_LONG, "3.0", text="one"), STEP_END, TURN_END, AGAIN, user("on")]
    log = log_of(*rows)
    here = json.dumps(turnwal.render(log, target).messages)
    paths = str(Path(turnwal.__file__).parent.parent)
    for seed in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", _PRINT, target],
            input=b"\n".join(log.lines()),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
        )
        assert there.stdout.decode() == here
