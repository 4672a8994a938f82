"""Repaired transcripts of Claude Code, read and forked by the vendor's own SDK; the tool itself is closed."""

from pathlib import Path

import claude_agent_sdk as sdk
import pytest

from tests.formats.transcripts import SESSION, Transcript, examined
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.claude_code.repair import repair
from turnwal.formats.format import Found
from turnwal.formats.wording import UNKNOWN_TEXT

COPY = "99999999-2222-4333-8444-555555555555"


def test_the_sdk_shows_every_answer_and_forks_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    made = Transcript()
    made.prompt("build it")
    for id in ("toolu_1", "toolu_2", "toolu_3"):
        made.call("msg_1", id)
    made.result("toolu_2", "built")
    made.prompt("go on")
    path = made.write(tmp_path / "projects" / "-w" / f"{SESSION}.jsonl")
    repair(Found(FORMAT, path), examined(path), path.with_name(f"{COPY}.jsonl"))
    contents = [message.message["content"] for message in sdk.get_session_messages(COPY)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    answers = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    assert answers == {"toolu_1": UNKNOWN_TEXT, "toolu_2": "built", "toolu_3": UNKNOWN_TEXT}
    assert contents[-1] == "go on"
    assert "build it (repaired)" in [info.summary for info in sdk.list_sessions()]
    forked = sdk.fork_session(COPY).session_id
    assert examined(path.with_name(f"{forked}.jsonl")).verdict == "clean"
