"""Big databases of goose and opencode: what reading takes is bounded by the largest record (F26)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.formats import test_goose, test_opencode
from tests.formats.test_claude_code_size import read

_RECORD = 32 << 20
_ROUNDS = 500
_SMALL = 128_000
"""Bytes of a result: of all rounds 64 MB."""
_PEAK_MB = 70
"""Of a process that holds no more than a few records; all results alone are 64 MB more."""


def _goose(path: Path, size: int, rounds: int) -> None:
    rows: list[test_goose.Row] = []
    for number in range(rounds):
        done = test_goose.response(f"c{number}")
        done["toolResult"]["value"]["content"][0]["text"] = "x" * size
        rows += [("assistant", [test_goose.request(f"c{number}")]), ("user", [done])]
    test_goose.stored(path, [*rows, ("assistant", [test_goose.request("open")])])


def _opencode(path: Path, size: int, rounds: int) -> None:
    messages: list[test_opencode.Message] = []
    for number in range(rounds):
        done = test_opencode.done(f"c{number}")
        done["state"]["output"] = "x" * size
        messages.append(("assistant", [done]))
    test_opencode.stored(path, [*messages, ("assistant", [test_opencode.tool("open", "running")])])


Make = Callable[[Path, int, int], None]
makers = pytest.mark.parametrize("make", [_goose, _opencode])


@makers
def test_f26_a_record_of_32_mb(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "x.db"
    make(path, _RECORD, 1)
    *found, peak = read(path)
    path.unlink()
    assert found == ["interrupted", 2, 1, 1]
    assert isinstance(peak, int)
    assert peak < _PEAK_MB + 4 * (_RECORD >> 20)


@makers
def test_f26_a_database_of_64_mb(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "x.db"
    make(path, _SMALL, _ROUNDS)
    *found, peak = read(path)
    path.unlink()
    assert found == ["interrupted", _ROUNDS + 1, _ROUNDS, 1]
    assert isinstance(peak, int)
    assert peak < _PEAK_MB
