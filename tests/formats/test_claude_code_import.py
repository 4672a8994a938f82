"""Claude Code transcripts as turnwal sessions: the same calls are open, and the conversation can be sent on."""

from pathlib import Path
from typing import Any

import pytest

from tests.formats.transcripts import SESSION, Transcript, asked_in, examined, healthy
from turnwal.core.line import Event, read
from turnwal.core.log import Log
from turnwal.core.scan import Scan
from turnwal.formats.claude_code import FORMAT
from turnwal.formats.claude_code.reading import OFF_CHAIN
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of


def imported(tmp_path: Path, made: Transcript) -> list[Event]:
    path = made.write(tmp_path / f"{SESSION}.jsonl")
    return [
        read_event(line)
        for line in lines_of(Found(FORMAT, path), "s", nonce="0" * 32, time=1, writer={"name": "t", "version": "1"})
    ]
