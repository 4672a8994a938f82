"""Arguments of calls on the way out: the same bytes however deep the caller's stack is."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.core.build import Row, ask, log_of
from turnwal.core.limits import NESTING_MAX
from turnwal.transcript.check import check
from turnwal.transcript.render import render
from turnwal.transcript.targets import TARGETS

USER: Row = ("user_message", {"parts": [{"type": "text", "content": "go"}]})


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def frames_down(frames: int, act: Callable[[], Any]) -> Any:
    return act() if frames == 0 else frames_down(frames - 1, act)


def is_wrapped(target: str, arguments: str) -> bool:
    made = render(iter(log_of(USER, ask("aaaaaaaa1", arguments=arguments)).events), target)
    assert check(target, made.messages) == []
    return "arguments_wrapped" in [finding.code for finding in made.findings]


@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("frames", [0, 100, 300])
def test_how_deep_arguments_may_be_does_not_depend_on_the_stack(target: str, frames: int) -> None:
    depths = (NESTING_MAX, NESTING_MAX + 1, 900, 960, 10_000)
    found = [frames_down(frames, partial(is_wrapped, target, nested(depth))) for depth in depths]
    assert found == [False, True, True, True, True]


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_brackets_that_are_no_nesting_do_not_count(target: str) -> None:
    texts = ["{[" * 300, '"' * 300, '\\"{' * 300, "\\" * 300]
    assert not is_wrapped(target, json.dumps({"texts": texts, "lists": [[]] * 300}))


def test_half_a_character_is_found_however_deep_it_is() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": nested(300).replace("1", '"\\ud83d"')},
    }
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
    ]
    assert frames_down(200, lambda: [problem.code for problem in check("openai-chat", messages)]) == ["surrogate"]
