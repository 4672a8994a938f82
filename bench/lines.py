"""What the line itself costs: making, reading, checking."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.appending import DATA
from bench.rows import Row, best_us
from turnwal.core.chain import Head
from turnwal.core.line import make, read
from turnwal.core.log import draft


def measure(_: Path) -> Iterator[Row]:
    """The rows of this module."""
    event = draft("user_message", DATA, run="main", time=1, ignorable=False, head=Head(7, "0" * 64))
    line, _made = make(event)
    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode
    reference = best_us(lambda: decode(encode(event)), 20_000)
    yield Row(
        "make a line of 1 KB",
        best_us(lambda: make(event), 20_000),
        "encode + decode",
        reference,
        "(not limited)",
        holds=True,
    )
    reference = best_us(lambda: (hashlib.sha256(line).hexdigest(), decode(line)), 20_000)
    yield Row(
        "read a line of 1 KB",
        best_us(lambda: read(line), 20_000),
        "SHA-256 + decode",
        reference,
        "(not limited)",
        holds=True,
    )
