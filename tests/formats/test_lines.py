"""Lines of JSON objects as processes that died have left them: each whole record is given, all other bytes named."""

import io
import json
import random
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnwal.formats import lines
from turnwal.formats.items import Fault
from turnwal.formats.lines import records


def decode(line: bytes) -> dict[str, Any]:
    """A record has an `n`; any other object is a piece of one."""
    value = msgspec.json.decode(line)
    if not isinstance(value, dict) or "n" not in value:
        raise msgspec.ValidationError("no record")
    return value


def told(content: bytes) -> tuple[list[tuple[int, int]], list[tuple[str, str]]]:
    """The records as (line, n), and the faults as (kind, place)."""
    found: list[tuple[int, int]] = []
    faults: list[tuple[str, str]] = []
    for item in records(io.BytesIO(content), decode):
        if isinstance(item, Fault):
            faults.append((item.kind, item.place))
        else:
            found.append((item[0], item[1]["n"]))
    return found, faults


def record(number: int, text: str = 'é\u2028 {"n":0} \\ \n', **more: Any) -> bytes:
    value = {"n": number, "text": text, "inner": {"type": "text", "list": [{"a": 1}, {"b": {}}]}} | more
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_sound_lines() -> None:
    assert told(record(1) + b"\n" + record(2) + b"\n") == ([(1, 1), (2, 2)], [])
    assert told(b"") == ([], [])
    assert told(b"\n\n" + record(1) + b"\r\n \n" + record(2)) == ([(3, 1), (5, 2)], [])
    assert told(b"\xef\xbb\xbf" + record(1)) == ([(1, 1)], [])


def test_only_a_line_feed_ends_a_line() -> None:
    text = "\u2028\u2029\u0085\x0b\x0c\x1c\x1e\r".translate({0x0B: "", 0x0C: "", 0x1C: "", 0x1E: "", 0x0D: ""})
    assert told(record(1, text) + b"\n" + record(2) + b"\n") == ([(1, 1), (2, 2)], [])


def test_the_last_record_cut_at_every_byte() -> None:
    before, last = record(1) + b"\n", record(2)
    for size in range(1, len(last)):
        assert told(before + last[:size]) == ([(1, 1)], [("torn", "line 2")]), size
    assert told(before + last) == ([(1, 1), (2, 2)], [])


def test_the_last_record_cut_at_every_byte_with_blank_lines_behind_it() -> None:
    before, last = record(1) + b"\n", record(2)
    for size in range(1, len(last)):
        assert told(before + last[:size] + b"\n\n") == ([(1, 1)], [("torn", "line 2")]), size


def test_a_record_cut_at_every_byte_with_the_next_one_glued_to_it() -> None:
    before, torn, glued = record(1) + b"\n", record(2), record(3) + b"\n"
    for size in range(1, len(torn)):
        found = told(before + torn[:size] + glued + record(4))
        assert found == ([(1, 1), (2, 3), (3, 4)], [("torn", "line 2")]), size
    assert told(before + torn + glued) == ([(1, 1), (2, 2), (2, 3)], [("fused", "line 2")])


def test_a_record_cut_at_every_byte_with_two_behind_it() -> None:
    torn = record(2)
    for size in range(1, len(torn)):
        found = told(torn[:size] + record(3) + record(4) + b"\n")
        assert found == ([(1, 3), (1, 4)], [("torn", "line 1")]), size


def test_whole_records_with_a_torn_one_behind_them() -> None:
    torn = record(3)
    for size in range(1, len(torn)):
        found, faults = told(record(1) + record(2) + torn[:size])
        assert (found, faults) == ([(1, 1), (1, 2)], [("fused", "line 1"), ("torn", "line 1")]), size


def test_whole_records_around_a_torn_one() -> None:
    torn = record(2)
    for size in range(1, len(torn)):
        found, faults = told(record(1) + torn[:size] + record(3) + b"\n" + record(4) + b"\n")
        assert (found, faults) == ([(1, 1), (1, 3), (2, 4)], [("fused", "line 1"), ("torn", "line 1")]), size


@pytest.mark.parametrize("between", [b"", b" ", b"\t\r"])
def test_fused_records(between: bytes) -> None:
    glued = between.join([record(1), record(2), record(3)])
    assert told(glued + b"\n" + record(4)) == ([(1, 1), (1, 2), (1, 3), (2, 4)], [("fused", "line 1")])


def test_a_piece_of_a_record_is_none() -> None:
    assert told(b'{"type":"text"}\n' + record(1)) == ([(2, 1)], [("corrupt", "line 1")])
    assert told(record(1) + b'{"type":"text"}\n' + record(2))[0] == [(1, 1), (2, 2)]


def test_a_bad_line_hides_nothing() -> None:
    bad = [b"", b"x", b"{", b"}", b"[1]", b"17", b"null", b'"text"', b"\xff\xfe", b'{"n":', b"{}" * 3]
    for line in bad[1:]:
        found, faults = told(record(1) + b"\n" + line + b"\n" + record(2) + b"\n" + record(3) + b"\n")
        assert found == [(1, 1), (3, 2), (4, 3)], line
        assert faults == [("corrupt", "line 2")], line


def test_bad_lines_in_a_row_are_each_named() -> None:
    content = b"".join(b"bad %d\n" % number for number in range(40)) + record(1) + b"\n"
    found, faults = told(content)
    assert found == [(41, 1)]
    assert faults == [("corrupt", f"line {number}") for number in range(1, 41)]


@pytest.mark.parametrize("count", [1, 2, 15])
def test_raw_line_feeds_inside_a_text(count: int) -> None:
    text = "\n".join(f"part {number}" for number in range(count + 1))
    broken = record(2, text).replace(b"\\n", b"\n")
    assert told(record(1) + b"\n" + broken + b"\n" + record(3)) == (
        [(1, 1), (2, 2), (2 + count + 1, 3)],
        [("raw_newline", "line 2")],
    )


def test_a_raw_line_feed_behind_a_bad_line() -> None:
    broken = record(2, "a\nb").replace(b"\\n", b"\n")
    assert told(b"bad\n" + broken + b"\n") == ([(2, 2)], [("corrupt", "line 1"), ("raw_newline", "line 2")])


def test_zeros() -> None:
    zeros = b"\0" * 4096
    assert told(record(1) + b"\n" + zeros) == ([(1, 1)], [("nul_run", "line 2")])
    assert told(record(1) + b"\n" + zeros + b"\n" + record(2)) == ([(1, 1), (3, 2)], [("nul_run", "line 2")])
    assert told(zeros + record(1) + b"\n") == ([(1, 1)], [("nul_run", "line 1")])
    assert told(record(1) + zeros + record(2) + b"\n") == (
        [(1, 1), (1, 2)],
        [("nul_run", "line 1"), ("fused", "line 1")],
    )
    torn = record(1)[:20]
    assert told(torn + zeros + record(2) + b"\n") == ([(1, 2)], [("nul_run", "line 1"), ("torn", "line 1")])


def test_a_line_over_the_limit_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_MAX", 200)
    fits = record(1, "")
    fits = record(1, "x" * (200 - len(fits)))
    assert len(fits) == 200
    long = record(2, "x" * 5_000_000)
    assert told(fits + b"\n" + long + b"\n" + record(3, "")) == ([(1, 1), (3, 3)], [("too_long", "line 2")])
    assert told(fits) == ([(1, 1)], [])
    assert told(record(2, "x" * 200)) == ([], [("too_long", "line 1")])


def test_broken_lines_are_held_only_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_MAX", 100)
    content = (b'{"n":' + b"x" * 60 + b"\n") * 5
    found, faults = told(content)
    assert found == []
    assert [place for _, place in faults] == [f"line {number}" for number in range(1, 6)]


def test_what_is_nested_too_deep_is_no_record() -> None:
    deep = b'{"n":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert told(deep + b"\n" + record(2)) == ([(2, 2)], [("corrupt", "line 1")])


def test_a_large_broken_line_takes_no_longer_than_a_few_readings() -> None:
    inner = [{"key": "x" * 50, "list": [1, 2, 3]}] * 30_000
    line = record(1, more=inner)
    began = time.process_time()
    msgspec.json.decode(line)
    json.loads(line)
    once = time.process_time() - began
    began = time.process_time()
    found, faults = told(line[:-1] + b"\n" + record(2))
    assert (found, faults) == ([(2, 2)], [("corrupt", "line 1")])
    assert time.process_time() - began < 60 * once


def test_any_bytes_are_read_to_the_end() -> None:
    chance = random.Random(7)
    sound = [record(number) for number in range(8)]
    for _ in range(300):
        content = bytearray(b"\n".join(sound) + b"\n")
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(content))
            match chance.randrange(3):
                case 0:
                    content[at] = chance.randrange(256)
                case 1:
                    del content[at : at + chance.randrange(40)]
                case _:
                    content[at:at] = chance.randbytes(chance.randrange(10))
        found, faults = told(bytes(content))
        intact = [sound.index(line) for line in bytes(content).split(b"\n") if line in sound]
        assert set(intact) <= {n for _, n in found}
        assert faults or len(found) == len([line for line in bytes(content).split(b"\n") if line.strip()])


def test_a_path_is_opened_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(record(1) + b"\n")
    assert [item[0] for item in records(tmp_path / "a", decode)] == [1]
    with pytest.raises(FileNotFoundError):
        list(records(tmp_path / "absent", decode))
    with pytest.raises(IsADirectoryError):
        list(records(tmp_path, decode))


class Counting:
    """A decoder that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def raw_decode(self, text: str, at: int) -> tuple[Any, int]:
        self.asked += 1
        return json.JSONDecoder().raw_decode(text, at)


@pytest.mark.parametrize("end", [b'"' + b"x" * 100_000, b"1," * 50_000])
def test_a_long_broken_line_of_nested_objects_is_given_up_soon(monkeypatch: pytest.MonkeyPatch, end: bytes) -> None:
    counting = Counting()
    monkeypatch.setattr(lines, "_python", counting)
    nested = b'{"a":[' * 200
    assert told(nested + end + b"\n" + record(1) + b"\n") == ([(2, 1)], [("corrupt", "line 1")])
    assert counting.asked < 12
