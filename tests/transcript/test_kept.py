"""What was rendered is handed out again, whoever asks for it."""

import json
from typing import Any

import pytest

from turnwal.core.log import Log
from turnwal.transcript.render import render

NESTING = 190
"""Of arguments, near the depth from which on they are wrapped."""
FRAMES = 700
"""Of a caller's stack."""


def rendered_from_within(frames: int, log: Log, target: str) -> list[dict[str, Any]]:
    """The messages of the log, for a caller so many frames deeper."""
    return rendered_from_within(frames - 1, log, target) if frames else render(log, target).messages


@pytest.mark.parametrize("target", ["anthropic", "bedrock", "gemini"])
def test_what_was_rendered_is_handed_out_again_however_full_the_stack_is(target: str) -> None:
    log = Log()
    log.append("user_message", {"parts": [{"type": "text", "content": "go"}]})
    arguments = '{"a":' * NESTING + "1" + "}" * NESTING
    log.append("assistant_message", {"parts": [{"type": "tool_call", "id": "a", "name": "n", "arguments": arguments}]})
    first = render(log, target).messages
    again = rendered_from_within(FRAMES, log, target)
    assert arguments in json.dumps(first, separators=(",", ":"))
    assert json.dumps(again) == json.dumps(first)
