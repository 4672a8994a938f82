"""Where frames begin and end, and what can be read of them."""

import os
import random
from pathlib import Path

import zstandard

from turnwal.formats import zstd, zstd_frames
from turnwal.formats.zstd_frames import Frame, frames


def _written(path: Path, *pieces: bytes) -> tuple[Path, list[int]]:
    """The pieces one behind the other, and where each ends."""
    path.write_bytes(b"".join(pieces))
    return path, [sum(map(len, pieces[: count + 1])) for count in range(len(pieces))]


def _pieces() -> list[bytes]:
    """Frames of every kind: checked, unchecked, of unknown size, of one block and of many, of runs, and empty."""
    checked = zstandard.ZstdCompressor(write_checksum=True)
    bare = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False)
    streamed = zstandard.ZstdCompressor(level=1).compressobj()
    many = os.urandom(300_000)
    return [
        checked.compress(b"one"),
        bare.compress(b"two" * 1_000),
        streamed.compress(many) + streamed.flush(),
        checked.compress(b"\0" * 500_000),
        checked.compress(b""),
    ]


def test_whole_frames_of_every_kind_are_found(tmp_path: Path) -> None:
    pieces = _pieces()
    path, ends = _written(tmp_path / "a", *pieces)

    assert list(frames(path)) == [
        Frame(end - len(piece), end, "whole") for piece, end in zip(pieces, ends, strict=True)
    ]
    for piece, frame in zip(pieces, frames(path), strict=True):
        with zstd.opened(path, frame.start, frame.end) as file:
            assert file.read() == zstandard.ZstdDecompressor().decompressobj().decompress(piece)


def test_a_frame_without_data_is_stepped_over(tmp_path: Path) -> None:
    skippable = b"\x51\x2a\x4d\x18" + (7).to_bytes(4, "little") + b"ignored"
    first, second = _pieces()[:2]
    path, ends = _written(tmp_path / "a", first, skippable, second)

    assert list(frames(path)) == [Frame(0, len(first), "whole"), Frame(ends[1], ends[2], "whole")]
    assert zstd_frames.head(path, 6) == b"onetwo"


def test_a_file_that_ends_anywhere_inside_a_frame_is_torn_there(tmp_path: Path) -> None:
    first, second = _pieces()[:2]
    for cut in range(1, len(second)):
        path, _ = _written(tmp_path / "a", first, second[:cut])

        assert list(frames(path)) == [
            Frame(0, len(first), "whole"),
            Frame(len(first), len(first) + cut, "torn"),
        ], cut


def test_bytes_that_are_no_frame_are_told_up_to_the_next_one(tmp_path: Path) -> None:
    first, second = _pieces()[:2]
    junk = b"\x28\xb5\x2f" + random.Random(1).randbytes(40).replace(b"\x28", b"-") + b"\x28\xb5"
    path, ends = _written(tmp_path / "a", first, junk, second)

    assert list(frames(path)) == [
        Frame(0, ends[0], "whole"),
        Frame(ends[0], ends[1], "corrupt"),
        Frame(ends[1], ends[2], "whole"),
    ]
    assert zstd_frames.head(path, 1_000) == b"one" + (b"two" * 1_000)[:997]
