"""Edits of a log: what is changed, and the words that name it right."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from tests.corrupt.histories import History, branched
from tests.corrupt.verifier import read


class Edit(NamedTuple):
    """A changed log."""

    kind: str
    content: bytes
    looks: frozenset[str]
    """What a reader may rightly say of it."""


Maker = Callable[[random.Random, History, History, Path], Edit]
"""Makes an edit of a history, given another session and a folder to work in."""

_CHANGED: Final = frozenset({"changed", "renumbered", "another_history"})


def _line(chance: random.Random, history: History) -> int:
    """Any line but the first: without that there is no session left to judge."""
    return chance.randrange(1, len(history.lines))


def drop(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    lines = history.lines
    at = _line(chance, history)
    count = min(chance.randint(1, 3), len(lines) - at)
    looks = "end_missing" if at + count == len(lines) else "missing"
    return Edit("drop", b"".join(lines[:at] + lines[at + count :]), frozenset({looks}))


def duplicate(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    lines = history.lines
    at = _line(chance, history)
    return Edit(
        "duplicate",
        b"".join([*lines[: (to := chance.randint(at, len(lines) - 1) + 1)], lines[at], *lines[to:]]),
        frozenset({"repeated"}),
    )


def swap(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    lines = history.lines
    one, two = sorted(chance.sample(range(1, len(lines)), 2))
    lines[one], lines[two] = lines[two], lines[one]
    return Edit("swap", b"".join(lines), frozenset({"reordered"}))


def insert(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    """A line that was made up: with the right seq, and with or without the right prev."""
    lines = history.lines
    at = _line(chance, history)
    made = lines[at].replace(b'"time":', b'"time":1', 1)
    prev = made.find(b'"prev":"') + len(b'"prev":"')
    if chance.random() < 0.5:
        made = made[:prev] + b"0123456789" + made[prev + 10 :]
    return Edit("insert", b"".join([*lines[:at], made, *lines[at:]]), frozenset({"inserted"}))


def foreign(chance: random.Random, history: History, other: History, _: Path) -> Edit:
    """A line of another session, beside the one of the same place or instead of it."""
    lines = history.lines
    at = min(_line(chance, history), len(other.lines) - 1)
    if chance.random() < 0.5:
        looks = "inserted"
        lines.insert(at, other.lines[at])
    else:
        looks = "changed"
        lines[at] = other.lines[at]
    return Edit("copy from another session", b"".join(lines), frozenset({looks, "another_history"}))


def renumber(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    """One line, or every line from one on."""
    lines = history.lines
    at = _line(chance, history)
    by = chance.choice([-1, 1, 2, 10])
    for index in range(at, len(lines) if chance.random() < 0.5 else at + 1):
        event = read(lines[index])
        if event is not None:
            lines[index] = lines[index].replace(b'"seq":%d' % event["seq"], b'"seq":%d' % (event["seq"] + by), 1)
    return Edit("renumber", b"".join(lines), frozenset({"renumbered"}))


def zero(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    """A page of NULs, aligned, behind the first line."""
    size = chance.choice([64, 256, 512])
    first = len(history.lines[0])
    at = chance.randrange(first, len(history.content)) // size * size
    at = max(at, first)
    length = min(size, len(history.content) - at)
    content = history.content[:at] + b"\0" * length + history.content[at + length :]
    return Edit("zero a page", content, frozenset({"unreadable"}))


def burst(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    """Two or four bytes of anything."""
    size = chance.choice([2, 4])
    at = chance.randrange(len(history.lines[0]), len(history.content) - size)
    content = bytearray(history.content)
    while bytes(content) == history.content:
        content[at : at + size] = chance.randbytes(size)
    return Edit("burst", bytes(content), looks_of(history, bytes(content)))


def rollback(chance: random.Random, history: History, _: History, __: Path) -> Edit:
    """An earlier copy: of the end of a life where there was one, else of any line."""
    copies = [copy for copy in history.copies if copy != history.content and history.content.startswith(copy)]
    copy = chance.choice(copies) if copies else b"".join(history.lines[: _line(chance, history)])
    return Edit("rollback", copy, frozenset({"end_missing"}))


def splice(chance: random.Random, history: History, _: History, folder: Path) -> Edit:
    """The beginning of one branch with the end of another."""
    at = _line(chance, history)
    other = branched(chance, folder, history, at).splitlines(keepends=True)
    cut = chance.randint(at, max(at, min(len(other), len(history.lines)) - 1))
    looks = {"another_history", "end_missing", "changed"}
    return Edit("splice", b"".join(history.lines[:cut] + other[cut:]), frozenset(looks))


def looks_of(history: History, content: bytes) -> frozenset[str]:
    """What changed bytes look like: whether each line can still be read decides."""
    before, after = history.content.split(b"\n"), content.split(b"\n")
    touched = [line for line in after if line not in before]
    if len(before) != len(after) or any(read(line) is None for line in touched):
        return frozenset({"unreadable"})
    return _CHANGED


MAKERS: Final[tuple[Maker, ...]] = (
    drop, duplicate, swap, insert, foreign, renumber, zero, burst, rollback, splice,
)  # fmt: skip
