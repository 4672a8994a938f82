"""What reading other tools' session files costs beside parsing the same file."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.rows import Row, interleaved_us
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.doctor import diagnose
from turnwal.formats.format import Found

_TURNS = 4_000
_TIMES_MAX = 2
_USAGE = {"input_tokens": 4, "cache_read_input_tokens": 30_000, "output_tokens": 1, "service_tier": "standard"}


def measure(folder: Path) -> Iterator[Row]:
    """The rows of this module."""
    path = folder / "claude_code.jsonl"
    _write(path)
    found = Found(FORMAT, path)
    parsed, read = interleaved_us([lambda: _parse(path), lambda: diagnose(found)], 1, 7)
    assert diagnose(found).answered == _TURNS
    yield Row(
        f"diagnose a transcript of Claude Code, {path.stat().st_size / 1e6:.0f} MB",
        read,
        "msgspec.json.decode of its lines",
        parsed,
        f"{_TIMES_MAX} ×",
        read <= _TIMES_MAX * parsed,
    )


def _parse(path: Path) -> None:
    with path.open("rb", buffering=1 << 20) as file:
        for line in file:
            msgspec.json.decode(line)


def _write(path: Path) -> None:
    """Calls one after the other, with text, progress and results as long as sessions have them."""
    last = None
    with path.open("w", encoding="utf-8") as file:
        for turn in range(_TURNS):
            output = f"line {turn} of the output\n" * (40 + turn % 160)
            said = {"id": f"msg_{turn}", "role": "assistant", "model": "m", "usage": _USAGE}
            call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": {"command": "make"}}
            result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": output}
            for at, record in enumerate(
                [
                    {"type": "assistant", "message": said | {"content": [{"type": "text", "text": "I look. " * 20}]}},
                    {"type": "assistant", "message": said | {"content": [call]}},
                    {
                        "type": "progress",
                        "parentToolUseID": f"toolu_{turn}",
                        "data": {"type": "bash_progress", "output": output[:400]},
                    },
                    {
                        "type": "user",
                        "message": {"role": "user", "content": [result]},
                        "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False},
                    },
                ]
            ):
                uuid = f"{turn:08x}-0000-4000-8000-{at:012x}"
                envelope = {
                    "parentUuid": last,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": "/home/user/project",
                    "sessionId": "11111111-2222-4333-8444-555555555555",
                    "version": "2.1.39",
                    "gitBranch": "main",
                    "uuid": uuid,
                    "timestamp": "2026-01-01T00:00:00.000Z",
                }
                file.write(json.dumps(envelope | record, separators=(",", ":")) + "\n")
                last = uuid
