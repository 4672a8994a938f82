"""Verifiers with a defect, which a campaign of edits has to catch."""

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from tests.corrupt.histories import History
from tests.corrupt.judging import Judge, Verdict, judge_of
from tests.corrupt.verifier import read

_SEQ: Final = re.compile(rb'^\{"seq":\d+,')


def skipping_the_last(folder: Path, history: History) -> Judge:
    """A verifier that never reads the last event, and so takes a head for met that is one before it."""
    judge = judge_of(folder, history)

    def lazy(content: bytes) -> Verdict:
        lines = content.splitlines(keepends=True)
        if lines[:-1] == history.lines[:-1]:
            return Verdict("intact")
        return judge(content)

    return lazy


def without_the_sequence(folder: Path, history: History) -> Judge:
    """A chain over lines without their seq: each is hashed as if it had none, and nobody counts."""
    del folder
    expected = _chain(history.content)

    def blind(content: bytes) -> Verdict:
        return Verdict("intact" if _chain(content) == expected else "damaged", looks="changed")

    return blind


def without_a_head(folder: Path, history: History) -> Judge:
    """A store that keeps no head, and calls every log intact whose chain holds."""
    judge = judge_of(folder, history)
    (folder / "s.head").unlink()

    def trusting(content: bytes) -> Verdict:
        verdict = judge(content)
        return verdict._replace(word="intact") if verdict.word == "tail_not_verifiable" else verdict

    return trusting


PLANTED: Final[dict[str, Callable[[Path, History], Judge]]] = {
    "a verifier that skips the last event": skipping_the_last,
    "a chain that leaves out the sequence": without_the_sequence,
    "no head, and intact all the same": without_a_head,
}


def _chain(content: bytes) -> bytes:
    """The head of what such a chain commits to."""
    reached = b""
    for line in content.split(b"\n"):
        if line:
            bare = _SEQ.sub(b"{", line) if read(line) else line
            reached = sha256(reached + re.sub(rb'"prev":"[0-9a-f]{64}"', b"", bare)).digest()
    return reached
