"""Session files: every bit, every length, edits, damage in the middle, and the file of the kept head."""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.corrupt import edits, histories, verifier
from tests.corrupt.histories import ID, History
from tests.corrupt.judging import Judge, Seen, Verdict, judge_of, verdict_of
from turnwal.core.errors import Damaged
from turnwal.core.kept import slots_of
from turnwal.store.file import FileStore

SHM: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - files that are written over and over
EDITS_EACH: Final = 20
"""Edits of one history: making it costs more than judging them."""

_BROKEN: Final = frozenset({"damaged", "not_the_history", "damaged_start"})


@contextmanager
def folders(*names: str) -> Iterator[list[Path]]:
    """Empty folders."""
    with tempfile.TemporaryDirectory(prefix="turnwal-corrupt-", dir=SHM) as root:
        found = [Path(root) / name for name in names]
        for folder in found:
            folder.mkdir()
        yield found


def flips(seed: int, stride: int) -> Seen:
    """Flip every bit of a log, or every so many."""
    seen = Seen()
    with folders("made", "judged") as (made, judged):
        history = histories.plain(random.Random(f"flips {seed}"), made)
        judge = judge_of(judged, history)
        _begin(seen, judge, history)
        for bit in range(0, 8 * len(history.content), stride):
            _judge(seen, f"bit {bit}", judge, history.content, _flipped(history.content, bit))
    return seen


def cuts(seed: int, stride: int) -> Seen:
    """Cut a log at every byte, or every so many, with its head kept and without."""
    seen = Seen()
    with folders("made", "judged", "alone") as (made, judged, alone):
        history = histories.plain(random.Random(f"cuts {seed}"), made)
        judge = judge_of(judged, history)
        _begin(seen, judge, history)
        for length in range(0, len(history.content), stride):
            cut = history.content[:length]
            # the last newline is no content: whoever goes on puts it there
            _judge(seen, f"cut at {length}", judge, history.content.rstrip(b"\n"), cut)
            (alone / f"{ID}.jsonl").write_bytes(cut)
            if verdict_of(FileStore(alone)).word == "intact" and length:
                seen.violations.append(f"cut at {length}: called intact without a kept head")
    return seen


def sidecar(seed: int, stride: int) -> Seen:
    """Flip the bits of the file of the head, and cut it, beside a log that is whole and one whose end is missing.

    A whole log is never called another one; a log without its end is never called intact.
    """
    seen = Seen()
    with folders("made", "judged") as (made, judged):
        history = histories.plain(random.Random(f"sidecar {seed}"), made, lives=3)
        judge = judge_of(judged, history)
        _begin(seen, judge, history)
        kept = history.kept
        names = [start for start in (0, 4096) if kept[start : start + 8]]
        bits = [bit for start in names for bit in range(8 * start, 8 * (start + 120), stride)]
        changed = [(f"bit {bit}", _flipped(kept, bit)) for bit in bits if bit < 8 * len(kept)]
        changed += [(f"cut at {length}", kept[:length]) for length in range(0, len(kept), max(1, stride // 8))]
        for what, content in changed:
            (judged / f"{ID}.head").write_bytes(content)
            whole = judge(history.content)
            seen.changes += 1
            seen.told += whole.word == "not_the_history"
            seen.words[whole.word] += 1
            if whole.word == "not_the_history" and any(slots_of(content)):
                seen.violations.append(f"{what} of the head: a whole log is called another history")
            short = judge(b"".join(history.lines[:-1]))
            if short.word == "intact":
                seen.violations.append(f"{what} of the head: a log without its end is called intact")
    return seen


def edited(seed: int, count: int, judging: Callable[[Path, History], Judge] = judge_of) -> Seen:
    """Edit logs at random, and hold the verdict and the name of the edit against what was done."""
    seen = Seen()
    chance = random.Random(f"edits {seed}")
    while seen.changes < count:
        with folders("made", "other", "judged", "branch") as (made, other, judged, branch):
            history = histories.plain(chance, made, lives=chance.randint(2, 3))
            stranger = histories.plain(chance, other, lives=2)
            judge = judging(judged, history)
            _begin(seen, judge, history)
            for _ in range(min(EDITS_EACH, count - seen.changes)):
                edit = chance.choice(edits.MAKERS)(chance, history, stranger, branch)
                if edit.content == history.content:
                    continue
                verdict = judge(edit.content)
                seen.take(edit.kind, verdict, same=False)
                right = verdict.looks in edit.looks
                seen.named[f"{edit.kind}: {'right' if right else f'{verdict.looks} ({verdict.word})'}"] += 1
    return seen


def middle(seed: int) -> Seen:
    """Damage each line with lines behind it: nothing is cut, and the verdict says where, and how many stand behind."""
    seen = Seen()
    with folders("made", "judged") as (made, judged):
        history = histories.plain(random.Random(f"middle {seed}"), made, lives=2)
        judge = judge_of(judged, history)
        _begin(seen, judge, history)
        path = judged / f"{ID}.jsonl"
        for index in range(1, len(history.lines) - 1):
            lines = history.lines
            lines[index] = lines[index][:30] + b'"' + lines[index][31:]
            content = b"".join(lines)
            verdict = judge(content)
            seen.take(f"line {index}", verdict, same=False)
            expected = ("damaged", index, index + 1, len(lines) - index - 1)
            if (verdict.word, verdict.events, verdict.line, verdict.behind) != expected:
                seen.violations.append(f"line {index}: {verdict}, expected {expected}")
            try:
                with histories.sessions_in(judged).session(ID) as session:
                    session.append("user_message", {"parts": []})
                    seen.words["went on in a later turn"] += 1
            except Damaged:
                seen.words["refused to go on"] += 1
            (judged / f"{ID}.head").write_bytes(history.kept)
            if path.read_bytes()[: len(content)] != content:
                seen.violations.append(f"line {index}: bytes of the file were changed")
    return seen


def agreement(seed: int, count: int) -> Seen:
    """Have the verifier that shares no code judge random histories and edits of them, with a kept head and without."""
    seen = Seen()
    chance = random.Random(f"agreement {seed}")
    while seen.changes < count:
        with folders("made", "other", "judged", "branch") as (made, other, judged, branch):
            history = histories.any_history(chance, made)
            stranger = histories.plain(chance, other)
            judge = judge_of(judged, history)
            kept: str | None = history.head
            if chance.random() < 0.3:
                kept = None
                (judged / f"{ID}.head").unlink()
            contents = [history.content]
            for _ in range(9):
                maker = chance.choice(edits.MAKERS)
                contents.append(maker(chance, history, stranger, branch).content)
            for content in contents:
                _agree(seen, judge(content), verifier.verify(content, kept))
    return seen


def _agree(seen: Seen, ours: Verdict, theirs: tuple[str, int, str]) -> None:
    seen.changes += 1
    seen.told += ours.told
    word = "broken" if ours.word in _BROKEN else ours.word
    seen.words[word] += 1
    same = word == theirs[0]
    if ours.word not in ("damaged_start", "newer"):  # errors, which say no more than that
        same = same and (ours.events, ours.head) == theirs[1:]
    if not same:
        seen.violations.append(f"turnwal says {ours}, the other verifier {theirs}")


def _begin(seen: Seen, judge: Judge, history: History) -> None:
    verdict = judge(history.content)
    if verdict.word != "intact":
        seen.violations.append(f"a log that nobody changed is called {verdict.word}")


def _judge(seen: Seen, what: str, judge: Judge, good: bytes, content: bytes) -> None:
    seen.take(what, judge(content), same=content == good)


def _flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
