"""For each target a valid request with a violation planted in it: each code that its checker knows is found."""

import copy
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.core.build import Row, ask, log_of, result
from turnwal.core.errors import InvalidEvent
from turnwal.transcript import check as checking
from turnwal.transcript.check import CODES, check
from turnwal.transcript.parsing import Log, parse
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

Spoil = Callable[[list[Any]], object]

ROWS: list[Row] = [
    ("user_message", {"parts": [{"type": "text", "content": "go"}]}),
    ask("aaaaaaaa1", "aaaaaaaa2"),
    result("aaaaaaaa1", "1.0"),
    result("aaaaaaaa2", "1.1"),
    ("assistant_message", {"parts": [{"type": "text", "content": "ok"}]}),
    ("user_message", {"parts": [{"type": "text", "content": "more"}]}),
]


def at(*path: Any, **fields: Any) -> Spoil:
    """Change fields of what stands at a path."""

    def spoil(messages: list[Any]) -> None:
        found: Any = messages
        for step in path:
            found = found[step]
        found.update(fields)

    return spoil


def without(*path: Any) -> Spoil:
    """Take away what stands at a path."""

    def spoil(messages: list[Any]) -> None:
        found: Any = messages
        for step in path[:-1]:
            found = found[step]
        del found[path[-1]]

    return spoil


def again(*path: Any) -> Spoil:
    """Put what stands at a path behind itself once more."""

    def spoil(messages: list[Any]) -> None:
        found: Any = messages
        for step in path[:-1]:
            found = found[step]
        found.insert(path[-1] + 1, copy.deepcopy(found[path[-1]]))

    return spoil


def put(item: Any, *path: Any) -> Spoil:
    """Put something in at a path."""

    def spoil(messages: list[Any]) -> None:
        found: Any = messages
        for step in path[:-1]:
            found = found[step]
        found.insert(path[-1], copy.deepcopy(item))

    return spoil


HALF = "a\ud83d"
TEXT = {"type": "text", "text": "a"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "abc"}
PDF = {"document": {"format": "pdf", "name": "a", "source": {"bytes": "AAAA"}}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "abc"}}}


def asked(message: dict[str, Any], *before: dict[str, Any]) -> dict[str, Any]:
    """A message with blocks before its own."""
    return {**message, "content": [*before, *message["content"]]}


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A message of the model's."""
    return {"role": "assistant", "content": [*blocks]}


def image(**source: str) -> dict[str, Any]:
    """An image of Anthropic's."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"} | source}


CHAT: list[tuple[str, Spoil]] = [
    ("bad_arguments", at(1, "tool_calls", 0, "function", arguments='{"a":')),
    ("bad_arguments", at(1, "tool_calls", 0, "function", arguments='{"a":NaN}')),
    ("bad_id", at(1, "tool_calls", 0, id="")),
    ("bad_id", at(2, tool_call_id="x" * 41)),
    ("bad_name", at(1, "tool_calls", 0, "function", name="a b")),
    ("bad_name", at(2, name="a b")),
    ("bad_shape", at(0, role="narrator")),
    ("bad_shape", at(0, content=None)),
    ("bad_shape", at(0, content=[{"type": "of_tomorrow"}])),
    ("bad_shape", at(0, content=[{"type": "image_url", "image_url": {}}])),
    ("bad_shape", at(1, "tool_calls", 0, type="of_tomorrow")),
    ("bad_shape", without(1, "tool_calls", 0, "function")),
    ("duplicate_id", again(1, "tool_calls", 0)),
    ("duplicate_result", again(2)),
    ("empty_message", at(4, content="")),
    ("empty_message", at(0, content=[])),
    ("empty_message", list.clear),
    ("no_json", at(0, temperature=float("nan"))),
    ("orphan_result", without(1, "tool_calls", 0)),
    ("orphan_result", without(1)),
    ("surrogate", at(0, content=HALF)),
    ("surrogate", at(1, "tool_calls", 0, "function", arguments='{"a":"\\ud83d"}')),
    ("unanswered_call", without(2)),
    ("unanswered_call", put({"role": "user", "content": "hurry"}, 2)),
]

PLANTED: dict[str, list[tuple[str, Spoil]]] = {
    "anthropic": [
        ("bad_arguments", at(1, "content", 0, input="{}")),
        ("bad_id", at(1, "content", 0, id="a b")),
        ("bad_name", at(1, "content", 0, name="")),
        ("bad_shape", at(0, role="narrator")),
        ("bad_shape", put({"role": "system", "content": [image()]}, 3)),
        ("first_role", at(0, role="system")),
        ("role_order", put({"role": "system", "content": "a"}, 4)),
        ("role_order", lambda m: m.extend([{"role": "system", "content": "a"}, m[0]])),
        ("bad_shape", put({"type": "of_tomorrow"}, 1, "content", 0)),
        ("bad_shape", at(0, content=[{"type": "image"}])),
        ("bad_shape", at(0, content=[image(media_type="image/bmp")])),
        ("bad_shape", at(0, content=[image(data="%%")])),
        ("bad_shape", at(2, "content", 0, content=[image(data="")])),
        ("bad_shape", at(0, content=[{"type": "document", "source": {"type": "url"}}])),
        ("duplicate_id", again(1, "content", 0)),
        ("duplicate_result", again(2, "content", 0)),
        ("duplicate_result", again(2)),
        ("empty_message", at(0, content=" ")),
        ("empty_message", at(3, content=[])),
        ("empty_message", list.clear),
        ("first_role", without(0)),
        ("no_json", at(1, "content", 0, input={"n": float("inf")})),
        ("orphan_result", without(1, "content", 0)),
        ("orphan_result", put({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b"}]}, 1)),
        ("reasoning_alone", put(THINKING, 1, "content", 2)),
        ("reasoning_alone", at(3, content=[THINKING])),
        ("reasoning_not_first", lambda m: m.__setitem__(slice(1, None), [said(TEXT), asked(m[1], THINKING), m[2]])),
        ("results_not_first", put(TEXT, 2, "content", 0)),
        ("results_not_first", put({"role": "user", "content": "hurry"}, 2)),
        ("surrogate", at(0, content=HALF)),
        ("unanswered_call", without(2, "content", 0)),
        ("unanswered_call", put({"role": "assistant", "content": "wait"}, 2)),
        ("too_large", at(0, content=[image(data="A" * 6_000_000)])),
        ("unsigned_reasoning", put({"type": "thinking", "thinking": "hm", "signature": ""}, 1, "content", 0)),
    ],
    "bedrock": [
        ("bad_arguments", at(1, "content", 0, "toolUse", input="{}")),
        ("bad_id", at(1, "content", 0, "toolUse", toolUseId="a b")),
        ("bad_name", at(1, "content", 0, "toolUse", name="a.b")),
        ("bad_shape", at(0, role="narrator")),
        ("first_role", at(0, role="system")),
        ("bad_shape", at(0, content=[{"text": "a", "image": {}}])),
        ("bad_shape", put(PDF, 2, "content", 2)),
        ("duplicate_id", again(1, "content", 0)),
        ("duplicate_name", at(0, content=[{"text": "a"}, PDF, PDF])),
        ("duplicate_result", again(2, "content", 0)),
        ("empty_message", at(0, content=[{"text": " "}])),
        ("empty_message", list.clear),
        ("first_role", without(0)),
        ("no_json", at(1, "content", 0, "toolUse", input={"n": float("inf")})),
        ("orphan_result", without(1, "content", 0)),
        ("reasoning_alone", at(3, content=[THOUGHT])),
        ("results_not_first", put({"text": "a"}, 2, "content", 0)),
        ("role_order", put({"role": "user", "content": [{"text": "a"}]}, 0)),
        ("surrogate", at(0, content=[{"text": HALF}])),
        ("unanswered_call", without(2, "content", 0)),
        ("too_large", at(0, content=[{"image": {"format": "png", "source": {"bytes": "A" * 6_000_000}}}])),
        (
            "too_large",
            put(PDF | {"document": PDF["document"] | {"source": {"bytes": "A" * 7_000_000}}}, 0, "content", 0),
        ),
        ("unsigned_reasoning", put({"reasoningContent": {"reasoningText": {"text": "hm"}}}, 1, "content", 0)),
    ],
    "gemini": [
        ("bad_arguments", at(1, "parts", 0, "functionCall", args=[])),
        ("bad_id", at(1, "parts", 0, "functionCall", id="")),
        ("bad_name", at(1, "parts", 0, "functionCall", name="2nd")),
        ("bad_shape", at(0, role="system")),
        ("bad_shape", put({"of_tomorrow": 1}, 1, "parts", 0)),
        ("duplicate_id", again(1, "parts", 0)),
        ("duplicate_result", again(2, "parts", 0)),
        ("empty_message", at(0, parts=[{"text": ""}])),
        ("empty_message", at(0, parts=[])),
        ("empty_message", list.clear),
        ("first_role", without(0)),
        ("no_json", at(1, "parts", 0, "functionCall", args={"n": float("inf")})),
        ("orphan_result", without(1, "parts", 0)),
        ("reasoning_alone", at(3, parts=[{"text": "hm", "thought": True}])),
        ("results_apart", put({"text": "a"}, 2, "parts", 2)),
        ("role_order", put({"role": "model", "parts": [{"text": "a"}]}, 1)),
        ("surrogate", at(0, parts=[{"text": HALF}])),
        ("unanswered_call", without(2, "parts", 0)),
        ("unanswered_call", put({"role": "user", "parts": [{"text": "hurry"}]}, 2)),
        ("unsigned_reasoning", at(1, "parts", 0, thoughtSignature="no base64!")),
    ],
    "openai-responses": [
        ("bad_arguments", at(1, arguments="{")),
        ("bad_id", at(1, call_id="")),
        ("bad_id", at(1, id="msg_1")),
        ("bad_name", at(1, name="a b")),
        ("bad_shape", at(0, role="narrator")),
        ("bad_shape", at(0, content=[{"type": "output_text", "text": "a"}])),
        ("bad_shape", at(3, output=None)),
        ("duplicate_id", again(1)),
        ("duplicate_result", again(3)),
        ("empty_message", at(0, content="")),
        ("empty_message", at(5, content="")),
        ("empty_message", list.clear),
        ("no_json", at(0, top=float("nan"))),
        ("orphan_result", without(1)),
        ("orphan_result", lambda messages: messages.insert(1, messages.pop(3))),
        ("reasoning_alone", put({"type": "reasoning", "id": "rs_1", "summary": []}, 5 + 1)),
        ("surrogate", at(0, content=HALF)),
        ("surrogate", at(1, arguments='{"a":"\\ud83d"}')),
        ("unanswered_call", without(3)),
    ],
    "openai-chat": [
        *CHAT,
        ("bad_name", at(0, name="a b")),
        ("bad_shape", at(4, tool_calls=[])),
    ],
    "mistral": [
        *CHAT,
        ("first_role", without(0)),
        ("last_role", without(-1)),
        ("role_order", without(4)),
        ("role_order", at(4, prefix=True)),
    ],
}

CASES = [(target, code, spoil) for target, planted in PLANTED.items() for code, spoil in planted]


@pytest.mark.parametrize(("target", "code", "spoil"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_a_planted_violation_is_found_in_a_request_that_was_valid(target: str, code: str, spoil: Spoil) -> None:
    messages = render(log_of(*ROWS), target).messages
    assert check(target, messages) == []
    spoil(messages)
    before = copy.deepcopy(messages)
    found = check(target, messages)
    assert code in {problem.code for problem in found}
    assert {problem.code for problem in found} <= CODES.keys()
    assert repr(messages) == repr(before)


JUNK: list[Any] = [
    None,
    True,
    -1.5,
    "",
    HALF,
    [],
    {},
    [[]],
    [{}],
    {"type": []},
    {"role": {}},
    {"id": [1]},
    {1: 2},
    10**30,
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield (*path, step)
        yield from paths(inner, (*path, step))


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_nothing_is_raised_for_a_request_with_anything_in_it(target: str) -> None:
    valid = render(log_of(*ROWS), target).messages
    draw = random.Random(target)
    for _ in range(1_500):
        messages = copy.deepcopy(valid)
        for _ in range(draw.randint(1, 3)):
            places = list(paths(messages))
            if places:
                without(*draw.choice(places))(messages)
            places = [(*path, 0) for path in paths(messages) if isinstance(_found(messages, path), list)]
            places += list(paths(messages))
            if places:
                _replace(messages, draw.choice(places), draw.choice(JUNK))
        for problem in check(target, messages):
            assert problem.code in CODES


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_history_with_anything_in_it_is_refused_or_rendered(target: str) -> None:
    rows = [*ROWS[:1], ("assistant_message", {"parts": [{"type": "text", "content": "a"}]}), ROWS[0], *ROWS]
    valid = render(log_of(*rows), target).messages + RICH.get(target, [])
    draw = random.Random(target)
    rendered = 0
    for _ in range(300):
        messages = copy.deepcopy(valid)
        for _ in range(draw.randint(1, 2)):
            place = draw.choice(list(paths(messages)))
            if draw.random() < CUT_OUT:
                without(*place)(messages)
            else:
                _replace(messages, place, draw.choice(JUNK))
        with suppress(InvalidEvent):
            log = Log.seed(target, messages)
            for other in TARGETS:
                made = render(log, other, waiting="placeholder")
                check(other, made.messages, system=made.system)
            rendered += 1
    assert rendered


CUT_OUT = 0.3
SERVED = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
RICH: dict[str, list[Any]] = {
    "anthropic": [
        {"role": "user", "content": [image(), TEXT | {"cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [SERVED, {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}],
        },
    ],
    "bedrock": [
        {"role": "assistant", "content": [THOUGHT, {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "t", "content": [{"json": {}}], "status": "error"}}, PDF],
        },
    ],
}


@pytest.mark.parametrize("target", ["anthropic", "bedrock"])
def test_what_is_nested_without_end_is_refused_by_name(target: str) -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    block = {"type": "tool_use", "id": "a", "name": "b", "input": deep}
    if target == "bedrock":
        block = {"toolUse": {"toolUseId": "a", "name": "b", "input": deep}}
    message = {"role": "assistant", "content": [block]}
    with pytest.raises(InvalidEvent):
        parse(target, message if target == "anthropic" else {"output": {"message": message}})
    with pytest.raises(InvalidEvent):
        Log.seed(target, [message])


def _found(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _replace(messages: list[Any], path: tuple[Any, ...], junk: Any) -> None:
    holder = _found(messages, path[:-1])
    if isinstance(holder, list) and path[-1] >= len(holder):
        holder.append(copy.deepcopy(junk))
    else:
        holder[path[-1]] = copy.deepcopy(junk)


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_code_of_a_checker_is_planted(target: str) -> None:
    room = Path(checking.__file__).parent
    sources = [room / "check.py", room / TARGETS[target] / "check.py"]
    if "chat.problems(" in sources[1].read_text("utf-8"):
        sources.append(room / "chat" / "check.py")
    yielded = [found for path in sources for found in re.findall(r"Problem\(\s*([^,]*),", path.read_text("utf-8"))]
    codes = {code for found in yielded for code in re.findall(r'"(\w+)"', found)}
    assert {code for code, _ in PLANTED[target]} == codes


TAKEN: list[tuple[str, list[Any]]] = [
    ("anthropic", [{"role": "user", "content": "a"}, {"role": "system", "content": "be brief"}]),
    (
        "anthropic",
        [
            {"role": "user", "content": "a"},
            {"role": "system", "content": [TEXT]},
            {"role": "assistant", "content": [{"type": "compaction", "content": "a summary"}, TEXT]},
            {"role": "user", "content": "b"},
        ],
    ),
    ("bedrock", [{"role": "user", "content": [{"text": "a"}]}, {"role": "system", "content": [{"text": "be brief"}]}]),
    (
        "gemini",
        [
            {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "AAAA"}}, {"text": "a"}]},
            {
                "role": "model",
                "parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}, "thought_signature": "AAAA"}],
            },
            {"role": "user", "parts": [{"function_response": {"name": "f", "response": {"output": "x_y"}}}]},
        ],
    ),
]


@pytest.mark.parametrize(("target", "messages"), TAKEN, ids=[f"{at}-{each[0]}" for at, each in enumerate(TAKEN)])
def test_what_a_provider_takes_in_another_form_is_no_problem_and_can_be_seeded(
    target: str, messages: list[Any]
) -> None:
    assert check(target, messages) == []
    made = render(Log.seed(target, messages), target).messages
    assert check(target, made) == []
    roles = [event.type for event in Log.seed(target, messages).events]
    assert "system_message" in roles or roles == ["user_message", "assistant_message", "tool_result"]


def test_names_of_gemini_in_snake_case_come_back_in_camel_case() -> None:
    _, messages = TAKEN[-1]
    found = render(Log.seed("gemini", messages), "gemini").messages
    assert found[0]["parts"][0] == {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    assert found[1]["parts"][0]["functionCall"] == {"name": "f", "args": {"a_b": 1}}
    assert found[1]["parts"][0]["thoughtSignature"] == "AAAA"
    assert found[2]["parts"][0]["functionResponse"]["response"] == {"output": "x_y"}
    reply = {"candidates": [{"content": messages[1], "finish_reason": "STOP"}], "model_version": "gemini-3-pro"}
    data = parse("gemini", reply)
    assert (data["stop"], data["model"], data["parts"][0]["type"]) == ("STOP", "gemini-3-pro", "tool_call")
