"""Transcripts of Claude Code, written by the shapes of public sample files, for the tests to cut and break."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from turnwal.formats.claude_code import FORMAT
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.doctor import diagnose
from turnwal.formats.format import Found

SESSION = "11111111-2222-4333-8444-555555555555"
Line = dict[str, Any]


class Transcript:
    """Records in the order of a file; each hangs under the newest but where it is told otherwise."""

    def __init__(self, *, version: str = "2.1.39", sidechain: bool = False) -> None:
        self.lines: list[Line] = []
        self.version = version
        self.sidechain = sidechain
        self.last: str | None = None
        self._clock = 0

    def add(self, type: str, *, parent: str | None = "last", **fields: Any) -> str:
        """Add a record of the tree; returns its uuid."""
        self._clock += 1
        uuid = str(UUID(int=(2 if self.sidechain else 1) << 64 | len(self.lines) + 1))
        record = {
            "parentUuid": self.last if parent == "last" else parent,
            "isSidechain": self.sidechain,
            "userType": "external",
            "cwd": "/w",
            "sessionId": SESSION,
            "version": self.version,
            "gitBranch": "main",
            "type": type,
            "uuid": uuid,
            "timestamp": f"2026-01-01T00:{self._clock // 60:02}:{self._clock % 60:02}.000Z",
        }
        self.lines.append(record | fields)
        self.last = self.lines[-1]["uuid"]
        return str(self.last)

    def beside(self, type: str, **fields: Any) -> None:
        """Add a record beside the tree."""
        self.lines.append({"type": type, **fields})

    def prompt(self, text: str, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": text}, **fields)

    def text(self, message: str, text: str, **fields: Any) -> str:
        return self._assistant(message, {"type": "text", "text": text}, **fields)

    def call(self, message: str, id: str, name: str = "Bash", **fields: Any) -> str:
        arguments = fields.pop("input", {"command": f"make {id}"})
        return self._assistant(message, {"type": "tool_use", "id": id, "name": name, "input": arguments}, **fields)

    def _assistant(self, message: str, *blocks: Line, **fields: Any) -> str:
        said = {
            "id": message,
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": list(blocks),
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 1_200,
                "cache_read_input_tokens": 30_000,
                "cache_creation": {"ephemeral_5m_input_tokens": 1_200, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 1,
                "service_tier": "standard",
            },
        }
        return self.add("assistant", requestId=f"req_{message}", message=said, **fields)

    def result(self, id: str, text: str = "done", **fields: Any) -> str:
        """A result, under the line that asks for it."""
        asking = next((line["uuid"] for line in self.lines if _asks(line, id)), self.last)
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        told: dict[str, Any] = {"parent": asking, "toolUseResult": tool_result(text)} | fields
        return self.add("user", message={"role": "user", "content": [block]}, **told)

    def progress(self, id: str, data: Line, **fields: Any) -> str:
        return self.add("progress", toolUseID="bash-progress-0", parentToolUseID=id, data=data, **fields)

    def encoded(self) -> list[bytes]:
        return [json.dumps(line, separators=(",", ":")).encode() for line in self.lines]

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(line + b"\n" for line in self.encoded()))
        return path


def tool_result(text: str) -> Line:
    """What the tool keeps of a result for its own display."""
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}


def _asks(line: Line, id: str) -> bool:
    return id in asked_in([line])


def asked_in(lines: Iterable[Line]) -> set[str]:
    """The ids that these records ask for, found without the reader."""
    return {block["id"] for block in blocks_of(lines) if block.get("type") == "tool_use"}


def answered_in(lines: Iterable[Line]) -> set[str]:
    return {block["tool_use_id"] for block in blocks_of(lines) if block.get("type") == "tool_result"}


def blocks_of(lines: Iterable[Line]) -> list[Line]:
    found = []
    for line in lines:
        content = line.get("message", {}).get("content")
        if isinstance(content, list):
            found += [block for block in content if isinstance(block, dict)]
    return found


def healthy() -> Transcript:
    """A session with everything that a healthy one has: text, parallel calls that begin while the message streams,
    hooks and progress, an edit with its backup, a sub-agent, a branch that was left, metadata.
    """
    made = Transcript()
    made.beside("summary", summary="Build", leafUuid=str(UUID(int=9)))
    made.beside("file-history-snapshot", messageId="m0", snapshot={"messageId": "m0"}, isSnapshotUpdate=False)
    made.prompt("build it")
    made.text("msg_1", "I build.")
    made.call("msg_1", "toolu_1")
    made.progress("toolu_1", {"type": "hook_progress", "hookEvent": "PreToolUse", "hookName": "PreToolUse:Bash"})
    made.progress("toolu_1", {"type": "bash_progress", "output": "…"})
    made.result("toolu_1")
    made.call("msg_2", "toolu_2", "Read", input={"file_path": "a"})
    second = made.call("msg_2", "toolu_3", "Grep", input={"pattern": "é\u2028"})
    made.result("toolu_2")
    made.call("msg_2", "toolu_4", "Edit", input={"file_path": "a", "old_string": "x"}, parent=second)
    made.beside("file-history-snapshot", messageId=made.last, snapshot={"messageId": made.last}, isSnapshotUpdate=True)
    made.result("toolu_4")
    made.result("toolu_3", "a\u2028b")
    made.beside("queue-operation", operation="enqueue", sessionId=SESSION, content="go on")
    left = made.prompt("another way")
    made.text("msg_3", "Another.")
    made.prompt("no, this way", parent=_before(made, left))
    made.call("msg_4", "toolu_5", "Task", input={"prompt": "look around", "description": "look"})
    made.progress("toolu_5", {"type": "agent_progress", "message": {"type": "user"}})
    made.result("toolu_5", "found")
    made.add("system", subtype="turn_duration", durationMs=12)
    made.add("attachment", attachment={"type": "hook_success", "toolUseID": "toolu_5", "hookEvent": "PostToolUse"})
    made.text("msg_5", "Done.")
    made.beside("last-prompt", lastPrompt="no, this way", leafUuid=made.last)
    made.beside("permission-mode", permissionMode="default", sessionId=SESSION)
    return made


def _before(made: Transcript, uuid: str) -> str:
    parent = next(line["parentUuid"] for line in made.lines if line.get("uuid") == uuid)
    return str(parent)


def examined(path: Path) -> Diagnosis:
    return diagnose(Found(FORMAT, path))


def opened(diagnosis: Diagnosis) -> dict[str, str]:
    return {call.id: call.evidence for call in diagnosis.open}
