"""Framing: every byte is a record, covered, or in a gap, and nothing is one that is not."""

from hashlib import sha256

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.store.building import (
    batch_behind,
    damage_line,
    file_of,
    gap_in,
    grow,
    head_of,
    lines_of,
    log_of,
    read_all,
    sound_lines,
    source_of,
    with_batch,
)
from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.errors import DamagedStart, OverLimit, Refused, TooNew
from turnwal.core.limits import DAMAGE_RAW_BYTES_MAX
from turnwal.store import segments
from turnwal.store.frames import frames
from turnwal.store.protocol import Gap, Record

CHUNKS = [1, 2, 3, 7, 64, 1 << 20]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_whole_log_is_its_records(chunk: int) -> None:
    lines = lines_of(log_of())
    data = file_of(lines)

    found = read_all(data, chunk)

    assert sound_lines(found) == lines
    assert len(found) == len(lines)
    for record in found:
        assert isinstance(record, Record)
        assert data[record.position :].startswith(record.line + b"\n")


@pytest.mark.parametrize("bad", [1, 127, 128, 129, 255, 256, 257, 299])
def test_one_bad_line_of_many_ends_the_records_before_it(bad: int) -> None:
    lines = lines_of(log_of(299))
    damaged = [*lines[:bad], lines[bad].replace(b"message", b"massage"), *lines[bad + 1 :]]
    # a changed line is found by the hash of the next one, so the last one's is not
    damaged[bad] = damaged[bad] if bad < 299 else damaged[bad][1:]

    gap = gap_in(found := read_all(file_of(damaged)))

    reached = bad + 1 if bad < 299 else bad
    assert sound_lines(found) == damaged[:reached]
    assert (gap.position, gap.line_number, gap.after) == (len(file_of(damaged[:reached])), reached + 1, reached - 1)


def test_an_empty_file_has_no_record() -> None:
    assert read_all(b"") == []


def test_reading_goes_on_from_a_position_and_the_head_before_it() -> None:
    lines = lines_of(log_of(4))
    position = len(file_of(lines[:3]))

    found = list(frames(source_of(file_of(lines)), position, after=head_of(lines[:3])))

    assert sound_lines(found) == lines[3:]


def test_reading_from_a_position_needs_the_head_before_it() -> None:
    with pytest.raises(Refused, match="head before it"):
        list(frames(source_of(b""), 7))


def test_a_gap_found_from_a_position_does_not_know_its_line_number() -> None:
    lines = lines_of(log_of(4))
    position = len(file_of(lines[:3]))

    found = list(frames(source_of(file_of(lines) + b"junk"), position, after=head_of(lines[:3])))

    assert gap_in(found).line_number == 0


# --- torn tails


@pytest.mark.parametrize("chunk", [1, 13, 1 << 20])
def test_f17_a_line_torn_at_any_byte_is_a_torn_tail(chunk: int) -> None:
    lines = lines_of(log_of(2, text="torn é🙂"))
    kept, last = file_of(lines[:-1]), lines[-1]
    for cut in range(1, len(last)):
        gap = gap_in(found := read_all(kept + last[:cut], chunk))
        assert sound_lines(found) == lines[:-1]
        assert (gap.kind, gap.position, gap.length, gap.after) == ("torn", len(kept), cut, len(lines) - 2), cut
        assert (gap.raw, gap.sha256) == (last[:cut], digest(last[:cut]))
        assert (gap.readable, gap.corrupt, gap.line_number, gap.seqs) == (0, False, len(lines), ())


@pytest.mark.parametrize("chunk", CHUNKS)
def test_f19_a_whole_last_line_without_its_newline_is_a_record(chunk: int) -> None:
    lines = lines_of(log_of())

    assert sound_lines(found := read_all(file_of(lines)[:-1], chunk)) == lines
    assert len(found) == len(lines)


def test_f19_the_first_line_without_its_newline_is_a_record() -> None:
    lines = lines_of(log_of(0))

    assert sound_lines(read_all(lines[0])) == lines


@pytest.mark.parametrize(
    "tail", [b'{"se\n\n', b'{"seq":4,"prev":"', b"\n", b"\n\n \n", b"{", b'{"seq":4,"prev":"\n{"seq":4']
)
def test_f19_the_tail_is_everything_behind_the_last_record(tail: bytes) -> None:
    lines = lines_of(log_of())

    gap = gap_in(found := read_all(file_of(lines) + tail))

    assert sound_lines(found) == lines
    assert (gap.kind, gap.length, gap.sha256) == ("torn", len(tail), digest(tail))
    assert not gap.corrupt


def test_f20_separators_of_other_languages_end_no_line() -> None:
    log = log_of()
    line = grow(log, text="a\u2028b\u2029c\u0085d\x0b\x0c\x1c\r")[0]
    raw = line.replace(b"\\u2028", "\u2028".encode()).replace(b"\\u0085", "\u0085".encode())
    assert raw != line
    foreign = [*lines_of(log)[:-1], raw]

    assert sound_lines(found := read_all(file_of(foreign))) == foreign
    assert len(found) == len(foreign)


@pytest.mark.parametrize(
    "tail",
    [
        b"garbage",
        b"garbage\n",
        b'{"seq":5,"prev":"',
        b'{"seq":4,"prev":"0000',
        b'{"a":1}\n',
        b"[]\n",
        b'{"seq":4,"prev":"x"}\n',
        b"\xff\xfe",
        b"{}",
    ],
)
def test_a_tail_that_a_cut_off_write_does_not_leave_is_corrupt_but_may_be_covered(tail: bytes) -> None:
    gap = gap_in(read_all(file_of(lines_of(log_of())) + tail))

    assert gap.kind == "corrupt"
    assert not gap.corrupt


def test_a_changed_byte_in_the_last_line_is_not_called_torn() -> None:
    lines = lines_of(log_of())
    for at in range(len(lines[-1])):
        flipped = lines[-1][:at] + bytes([lines[-1][at] ^ 0x80]) + lines[-1][at + 1 :]
        gap = gap_in(read_all(file_of([*lines[:-1], flipped])))
        assert gap.kind == "corrupt", (at, gap)


# --- NULs


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("tail", [b"\0\0", b"\0" * 3000, b'{"seq":4,"pr\0\0\0', b"\n\0\n\0"])
def test_f21_nuls_at_the_end_are_a_tail_of_their_own_kind(tail: bytes, chunk: int) -> None:
    lines = lines_of(log_of())

    gap = gap_in(found := read_all(file_of(lines) + tail, chunk))

    assert sound_lines(found) == lines
    assert (gap.kind, gap.length, gap.sha256) == ("nul", len(tail), digest(tail))
    assert not gap.corrupt


@pytest.mark.parametrize("chunk", CHUNKS)
def test_f21_nuls_before_readable_records_are_corruption(chunk: int) -> None:
    lines = lines_of(log_of(5))
    data = file_of(lines[:2]) + b"\0" * 1000 + b"\n" + file_of(lines[3:])

    gap = gap_in(found := read_all(data, chunk))

    assert sound_lines(found) == lines[:2]
    assert (gap.kind, gap.readable, gap.corrupt, gap.seqs) == ("nul", 3, True, (3, 4, 5))
    assert (gap.line_number, gap.after, gap.seq_max) == (3, 1, 5)
    assert gap.length == len(data) - len(file_of(lines[:2]))
    assert "NUL" in gap.reason


def test_f21_nuls_as_long_as_the_disk_are_read_in_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "LINE_BYTES_MAX", 10_000)
    lines = lines_of(log_of())
    kept = file_of(lines)

    def source(_: int) -> object:
        yield kept
        for _ in range(64):
            yield b"\0" * 1_000_000

    gap = gap_in(list(frames(source)))  # type: ignore[arg-type]

    whole = sha256()
    for _ in range(64):
        whole.update(b"\0" * 1_000_000)
    assert (gap.kind, gap.length, gap.sha256) == ("nul", 64_000_000, whole.hexdigest())
    assert gap.raw == b"\0" * DAMAGE_RAW_BYTES_MAX


# --- corruption


def test_f17_a_stub_and_the_next_record_on_one_line_are_corruption_where_records_follow() -> None:
    lines = lines_of(log_of(5))
    fused = file_of(lines[:2]) + lines[2][:30] + file_of(lines[3:])

    gap = gap_in(found := read_all(fused))

    assert sound_lines(found) == lines[:2]
    assert (gap.kind, gap.readable, gap.seqs) == ("corrupt", 2, (4, 5))


def test_f18_a_bad_line_before_readable_ones_is_corruption_naming_the_place() -> None:
    lines = lines_of(log_of(5))
    lines[2] = lines[2].replace(b"message", b"massage")

    gap = gap_in(found := read_all(file_of(lines)))

    # the changed line is still the third record; only the one behind it shows that it was changed
    assert sound_lines(found) == lines[:3]
    assert (gap.line_number, gap.position, gap.readable) == (4, len(file_of(lines[:3])), 3)
    assert "prev" in gap.reason


def test_f18_a_lost_line_is_corruption() -> None:
    lines = lines_of(log_of(5))

    gap = gap_in(read_all(file_of(lines[:2] + lines[3:])))

    assert (gap.readable, gap.kind, gap.seqs, gap.seq_max) == (3, "corrupt", (3, 4, 5), 5)
    assert gap.reason == "has seq 3 where 2 comes next"


@pytest.mark.parametrize("ending", [b"\n", b""])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_last_line_with_the_wrong_seq_or_prev_is_never_a_record(ending: bytes, chunk: int) -> None:
    lines = lines_of(log_of())
    other = lines_of(log_of(text="another"))
    for stranger in (lines[1], lines[-1], other[3], batch_behind(Head(4, digest(b"")), 1)[0], other[-1]):
        gap = gap_in(found := read_all(file_of(lines) + stranger + ending, chunk))
        assert sound_lines(found) == lines
        assert (gap.kind, gap.readable, gap.corrupt) == ("corrupt", 1, True)


def test_a_sound_record_behind_garbage_is_corruption() -> None:
    log = log_of()
    kept = file_of(lines_of(log))
    line = grow(log)[0]

    gap = gap_in(read_all(kept + b"garbage\n" + line + b"\n"))

    assert (gap.readable, gap.seqs, gap.kind) == (1, (4,), "corrupt")


# --- batches


@pytest.mark.parametrize("hole", [0, 1, 2])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_records_behind_a_hole_in_their_own_batch_are_part_of_the_torn_tail(hole: int, chunk: int) -> None:
    lines = lines_of(log_of())
    batch = batch_behind(head_of(lines), 4)
    kept = lines + batch[:hole]
    tail = b"\0" * len(batch[hole]) + b"\n" + file_of(batch[hole + 1 :])

    gap = gap_in(found := read_all(file_of(kept) + tail, chunk))

    assert sound_lines(found) == kept
    assert (gap.kind, gap.readable, gap.corrupt, gap.length) == ("nul", 0, False, len(tail))
    assert gap.seq_max == len(lines) + 3


def test_a_line_missing_from_a_batch_without_a_trace_is_not_called_torn() -> None:
    lines = lines_of(log_of())
    batch = batch_behind(head_of(lines), 3)

    gap = gap_in(read_all(file_of([*lines, batch[0], batch[2]])))

    assert (gap.kind, gap.readable) == ("corrupt", 0)


def test_records_of_a_later_batch_behind_a_hole_are_corruption() -> None:
    lines = lines_of(log_of())
    batch = batch_behind(head_of(lines), 2)
    later = batch_behind(head_of(batch), 2)

    gap = gap_in(read_all(file_of(lines) + b"\0" * len(batch[0]) + b"\n" + file_of([batch[1], *later])))

    assert (gap.readable, gap.seqs) == (2, (6, 7))


def test_a_record_that_claims_the_batch_but_an_old_seq_is_corruption() -> None:
    lines = lines_of(log_of())
    stranger = with_batch(lines[2], 1)

    assert gap_in(read_all(file_of([*lines, stranger]))).readable == 1


# --- covered tails


def covered(tail: bytes, kind: str = "torn") -> tuple[list[bytes], bytes]:
    lines = lines_of(log_of())
    line = damage_line(head_of(lines), tail, kind)
    newline = b"" if tail.endswith(b"\n") or not tail else b"\n"
    return [*lines, line, *batch_behind(head_of([line]), 2)], file_of(lines) + tail + newline


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("tail", [b"", b"x", b'{"se', b'{"se\n\n', b"\n", b"\0\0\0", b"\0\n", b"a\nb\nc"])
def test_f23_a_tail_that_is_covered_is_passed_over_and_the_chain_goes_on(tail: bytes, chunk: int) -> None:
    lines, begun = covered(tail)
    data = begun + file_of(lines[4:])

    found = read_all(data, chunk)

    assert sound_lines(found) == lines
    assert len(found) == len(lines)
    for record in found:
        assert isinstance(record, Record)
        assert data[record.position :].startswith(record.line + b"\n")


def test_f23_a_covering_event_without_its_newline_covers() -> None:
    lines, begun = covered(b'{"se')

    assert sound_lines(found := read_all(begun + lines[4])) == lines[:5]
    assert len(found) == 5


def test_a_copy_with_the_event_but_not_the_bytes_is_a_normal_log() -> None:
    lines, _ = covered(b'{"se')

    assert sound_lines(found := read_all(file_of(lines))) == lines
    assert len(found) == len(lines)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_crash_inside_the_covering_batch_is_covered_by_the_next(chunk: int) -> None:
    lines = lines_of(log_of())
    head = head_of(lines)
    tail = b'{"seq":4,"prev":'
    first = damage_line(head, tail)
    for cut in range(len(first)):
        wider = tail + b"\n" + first[:cut]
        gap = gap_in(read_all(file_of(lines) + wider, chunk))
        assert (gap.kind, gap.corrupt, gap.length) == ("torn", False, len(wider)), cut
        second = damage_line(head, wider)
        newline = b"\n" if cut else b""
        assert sound_lines(read_all(file_of(lines) + wider + newline + second, chunk)) == [*lines, second]


def test_a_covering_event_that_describes_other_bytes_covers_nothing() -> None:
    lines = lines_of(log_of())
    head = head_of(lines)
    for wrong in (
        damage_line(head, b"other"),
        damage_line(head, b"tail", after=7),
        damage_line(head, b"tail", sha256="0" * 64),
        damage_line(head, b"tail", length=True),
        damage_line(Head(head.count, digest(b"")), b"tail"),
    ):
        gap = gap_in(found := read_all(file_of(lines) + b"tail\n" + file_of([wrong])))
        assert sound_lines(found) == lines
        assert gap.readable == 1


def test_a_valid_record_is_never_stepped_over_whatever_a_damage_event_says() -> None:
    log = log_of()
    lines = lines_of(log)
    head = head_of(lines)
    behind = b"garbage\n" + file_of(grow(log))
    for kind in ("torn", "nul", "corrupt"):
        line = damage_line(head, behind, kind)
        gap = gap_in(found := read_all(file_of(lines) + behind + file_of([line])))
        assert sound_lines(found) == lines
        assert gap.readable == 2


@pytest.mark.parametrize("chunk", CHUNKS)
def test_what_a_person_gave_up_as_lost_is_passed_over_with_its_records(chunk: int) -> None:
    lines = lines_of(log_of(5))
    bad = b"\0\0\0\n" + file_of(lines[3:])
    gap = gap_in(read_all(file_of(lines[:2]) + bad, chunk))
    lost = damage_line(head_of(lines[:2]), bad, "lost", seq=gap.seq_max + 1)
    more = batch_behind(head_of([lost]), 2)

    found = read_all(file_of(lines[:2]) + bad + file_of([lost, *more]), chunk)

    assert sound_lines(found) == [*lines[:2], lost, *more]
    assert len(found) == 5


def test_the_break_of_lost_lines_is_accepted_in_a_copy() -> None:
    lines = lines_of(log_of(1))
    lost = damage_line(head_of(lines), b"", "lost", seq=9)
    torn = damage_line(head_of(lines), b"", "torn", seq=9)

    assert sound_lines(read_all(file_of([*lines, lost]))) == [*lines, lost]
    assert gap_in(read_all(file_of([*lines, torn]))).readable == 1


# --- the first line, newer lines, long lines


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("start", [b"\0\0", b'{"type":"sess\n', b"\n", b"x", b'{"seq":0', b'{"a":1}\n', b"\0" * 5000])
def test_f22_a_first_line_that_is_none_is_a_damaged_start(start: bytes, chunk: int) -> None:
    lines = lines_of(log_of())

    for data in (start, start + b"\n" + file_of(lines), start + file_of(lines[1:])):
        with pytest.raises(DamagedStart, match="the first line"):
            read_all(data, chunk)
        first, *rest = read_all(data, chunk, past_damage=True)
        assert isinstance(first, Gap)
        assert (first.position, first.after, first.line_number) == (0, -1, 1)
        readable = [item for item in rest if isinstance(item, Record)]
        assert not any(item.sound for item in readable)
        assert first.readable == len(readable)
        assert [item.line for item in readable] == [line for line in data.split(b"\n") if line in lines]


def test_f22_a_log_without_its_beginning_is_a_damaged_start() -> None:
    with pytest.raises(DamagedStart, match="has seq 1 where 0 comes next"):
        read_all(file_of(lines_of(log_of())[1:]))


def test_f39_a_key_of_a_newer_version_is_too_new_where_it_follows() -> None:
    log = log_of()
    kept = lines_of(log)
    newer = grow(log)[0][:-1] + b',"signature":"x"}'

    with pytest.raises(TooNew, match="line 4 has the unknown key 'signature'"):
        read_all(file_of([*kept, newer]))
    with pytest.raises(TooNew):
        read_all(file_of([damage_line(EMPTY, b"")[:-1] + b',"signature":"x"}']))
    gap = gap_in(read_all(file_of([*kept[:-1], newer])))
    assert gap.readable == 1


def test_f39_a_newer_event_that_covers_is_too_new() -> None:
    lines, begun = covered(b'{"se')

    with pytest.raises(TooNew):
        read_all(begun + file_of([lines[4][:-1] + b',"signature":"x"}']))


@pytest.mark.parametrize("chunk", [7, 1 << 20])
@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_f26_a_line_over_the_limit_is_an_error_naming_its_offset(
    monkeypatch: pytest.MonkeyPatch, chunk: int, ending: bytes
) -> None:
    monkeypatch.setattr(segments, "LINE_BYTES_MAX", 1000)
    lines = lines_of(log_of())

    with pytest.raises(OverLimit, match=rf"the line at offset {len(file_of(lines)):,} is longer than 1,000 bytes"):
        read_all(file_of(lines) + b'{"seq":4,"' + b"x" * 2000 + ending, chunk)


@pytest.mark.parametrize("chunk", [7, 999, 1 << 20])
@pytest.mark.parametrize("start", [b"x", b"\0", b'{"seq":\0', b" x", b" "])
def test_f26_long_bytes_that_can_be_no_line_are_damage(
    monkeypatch: pytest.MonkeyPatch, chunk: int, start: bytes
) -> None:
    monkeypatch.setattr(segments, "LINE_BYTES_MAX", 1000)
    lines = lines_of(log_of())
    tail = start + (b" " if start == b" " else b"x") * 3000

    gap = gap_in(read_all(file_of(lines) + tail + b"\n", chunk))

    assert (gap.length, gap.sha256, gap.readable) == (len(tail) + 1, digest(tail + b"\n"), 0)


# --- past damage


def kinds(found: list[Record | Gap]) -> list[object]:
    return [
        (each.event.seq, each.sound) if isinstance(each, Record) else (each.length, each.readable) for each in found
    ]


@pytest.mark.parametrize("chunk", CHUNKS)
def test_f18_reading_past_damage_yields_what_is_behind_it_as_not_sound(chunk: int) -> None:
    lines = lines_of(log_of(6))
    data = file_of(lines[:2]) + b"\0\0\n" + file_of(lines[3:5]) + b"junk\n" + file_of(lines[6:]) + b"torn"

    found = read_all(data, chunk, past_damage=True)

    assert kinds(found) == [
        (0, True), (1, True), (3, 3), (3, False), (4, False), (5, 1), (6, False), (4, 0),
    ]  # fmt: skip
    for each in found:
        piece = each.line if isinstance(each, Record) else each.raw
        assert data[each.position :].startswith(piece)
    assert [each.line_number for each in found if isinstance(each, Gap)] == [3, 6, 8]


def test_reading_past_damage_marks_a_break_without_bytes() -> None:
    lines = lines_of(log_of(4))

    found = read_all(file_of(lines[:2] + lines[3:]), past_damage=True)

    assert kinds(found) == [(0, True), (1, True), (0, 2), (3, False), (4, False)]


def test_reading_past_damage_steps_over_what_is_covered_there() -> None:
    lines, begun = covered(b'{"se')
    data = begun.replace(lines[1] + b"\n", b"?\n") + file_of(lines[4:])

    found = read_all(data, past_damage=True)

    assert kinds(found) == [(0, True), (2, 5), (2, False), (3, False), (4, False), (5, False), (6, False)]


def test_reading_past_damage_of_a_sound_log_is_reading() -> None:
    lines, begun = covered(b'{"se')
    data = begun + file_of(lines[4:])

    assert read_all(data, past_damage=True) == read_all(data)


# --- an owner at work


@pytest.mark.parametrize("chunk", CHUNKS)
def test_what_an_owner_is_still_writing_is_not_yet_there(chunk: int) -> None:
    lines = lines_of(log_of())
    for tail in (b"", b'{"seq":4', lines[-1]):
        data = file_of(lines) + tail
        assert sound_lines(found := list(frames(source_of(data, chunk), unfinished=lambda: True))) == lines
        assert len(found) == len(lines)


def test_a_first_line_that_is_still_being_written_is_no_damage() -> None:
    assert list(frames(source_of(b'{"seq":0'), unfinished=lambda: True)) == []


def test_a_gap_beside_an_owner_ends_at_the_last_newline() -> None:
    lines = lines_of(log_of())

    gap = gap_in(list(frames(source_of(file_of(lines) + b'{"se\n{"seq":4'), unfinished=lambda: True)))

    assert (gap.length, gap.raw) == (5, b'{"se\n')


# --- every byte is accounted for


PIECES = st.sampled_from([b"\n", b"\0", b"{", b"}", b'{"seq":', b"x", b"\xff", b" "]) | st.integers(0, 9)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=12), st.integers(1, 200))
@example([b" ", 1], 1)
def test_whatever_is_behind_the_first_line_every_byte_is_accounted_for(pieces: list[bytes | int], chunk: int) -> None:
    lines = lines_of(log_of(9))
    tail = b"".join(lines[piece] + b"\n" if isinstance(piece, int) else piece for piece in pieces)
    data = file_of(lines[:1]) + tail

    whole = read_all(data)

    assert read_all(data, chunk) == whole
    assert read_all(data, chunk, past_damage=True) == read_all(data, past_damage=True)
    position = 0
    for index, each in enumerate(whole):
        assert each.position == position
        if isinstance(each, Gap):
            assert index == len(whole) - 1
            assert each.sha256 == digest(data[position:])
            position += each.length
        else:
            # white space around a line is read over, and hashed with it
            assert each.line.strip() == lines[index]
            position += len(each.line) + 1
    assert position in (len(data), len(data) + 1)
