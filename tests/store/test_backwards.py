"""A file from its end."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.building import file_of, lines_of, log_of
from turnwal.store import backwards as module
from turnwal.store.backwards import backwards, newest_records


def all_of(data: bytes) -> list[tuple[int, bytes | None]]:
    return list(backwards(lambda length, offset: data[offset : offset + length], len(data)))


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 50))
def test_segments_are_those_between_newlines_the_newest_first(pieces: list[bytes], first: int) -> None:
    data = b"\n".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST_BYTES", first)
        found = all_of(data)

    wanted = data.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    assert [segment for _, segment in found] == wanted[::-1]
    for position, segment in found:
        assert segment is not None
        assert data[position : position + len(segment)] == segment


def test_a_long_segment_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_BYTES", 10)
    data = b"a\n" + b"x" * 100_000 + b"\nb\n"
    asked: list[tuple[int, int]] = []

    def read_at(length: int, offset: int) -> bytes:
        asked.append((offset, offset + length))
        return data[offset : offset + length]

    assert [segment for _, segment in backwards(read_at, len(data))] == [b"b", b"x" * 100_000, b"a"]
    assert all(earlier[0] == later[1] for earlier, later in pairwise(asked))
    assert sum(end - start for start, end in asked) == len(data)


def test_a_segment_too_long_for_a_line_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 1000)
    monkeypatch.setattr(module, "FIRST_BYTES", 64)
    lines = lines_of(log_of(1))
    data = file_of(lines[:1]) + b"\0" * 5000 + b"\n" + file_of(lines[1:])

    found = list(newest_records(lambda length, offset: data[offset : offset + length], len(data)))

    assert [record and record.line for record in found] == [lines[1], None, lines[0]]
