"""Judges what several writers left in one session, from its lines and from what each was told.

A life is one claim of one writer. It marks `ACK life count hash` when an append returned, and `HELD life from until`
when it gives the session up, by a clock that all processes of the machine share. Every line says whose it is and the
how manieth.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from msgspec import UNSET

from tests.crash.reading import read_log
from turnwal.core.chain import Head, after
from turnwal.core.line import Event, make


def lines_behind(head: Head, life: str, number: int, count: int) -> tuple[list[bytes], Head]:
    """A batch of a life, whose next line is the so manieth, and the head after it."""
    lines: list[bytes] = []
    first = head.count
    for each in range(number, number + count):
        data = {"parts": [{"type": "text", "content": f"{life} {each}"}]}
        batch = first if lines else UNSET
        line, event = make(Event(seq=head.count, prev=head.hash, time=0, type="user_message", batch=batch, data=data))
        lines.append(line)
        head = after(line, event)
    return lines, head


def acknowledged(life: str, head: Head) -> str:
    """The mark of an append that returned."""
    return f"ACK {life} {head.count} {head.hash}"


def held(life: str, since_ns: int, until_ns: int) -> str:
    """The mark of a claim that is about to be given up."""
    return f"HELD {life} {since_ns} {until_ns}"


def handovers(lines: Sequence[bytes]) -> int:
    """How often the writer changes from one line to the next."""
    writers = [_text(event).split(".")[0] for event in read_log(b"\n".join(lines)).events]
    return sum(one != other for one, other in pairwise(writers))


def late_lines(lines: Sequence[bytes], successor: str) -> int:
    """How many lines of others stand behind the first of a successor."""
    writers = [_text(event).split(".")[0] for event in read_log(b"\n".join(lines)).events]
    behind = writers[writers.index(successor) :] if successor in writers else []
    return sum(writer != successor for writer in behind)


def problems(lines: Sequence[bytes], marked: Sequence[str]) -> Iterator[str]:
    """What is wrong with a history of lives, each as a sentence."""
    reading = read_log(b"".join(line + b"\n" for line in lines))
    yield from reading.problems
    if reading.tail:
        yield f"{len(reading.tail)} bytes at the end do not follow"
    owners, numbers = [], []
    for event in reading.events:
        life, number = _text(event).split()
        owners.append(life)
        numbers.append((life, int(number)))
    yield from _order(owners, numbers)
    spans = []
    for mark in marked:
        word, life, first, second = mark.split()
        if word == "HELD":
            spans.append((int(first), int(second), life))
        elif len(reading.hashes) < int(first):
            yield f"life {life} was told that {first} events are durable, {len(reading.hashes)} are there"
        elif (owners[int(first) - 1], reading.hashes[int(first) - 1]) != (life, second):
            yield f"event {int(first) - 1}, acknowledged to life {life}, is another one now"
    for (_, until, one), (since, _, other) in pairwise(sorted(spans)):
        if since < until:
            yield f"lives {one} and {other} owned the session at the same time"


def _text(event: Mapping[str, Any]) -> str:
    text: str = event["data"]["parts"][0]["content"]
    return text


def _order(owners: Sequence[str], numbers: Sequence[tuple[str, int]]) -> Iterator[str]:
    seen: set[str] = set()
    for life, _ in groupby(owners):
        if life in seen:
            yield f"life {life} writes again after its successor"
        seen.add(life)
    for life in seen:
        mine = [number for owner, number in numbers if owner == life]
        if mine != list(range(len(mine))):
            yield f"the lines of life {life} are not each there once, in order: {mine[:20]}"
