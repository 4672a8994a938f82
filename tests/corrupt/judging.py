"""What a verifier says of changed bytes, and whether that is right."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.corrupt.histories import ID, History, Quick
from turnwal.core.errors import DamagedStart, HeadMismatch, OverLimit, TooNew, TurnwalError
from turnwal.session.verifying import verify
from turnwal.store.file import FileStore
from turnwal.store.protocol import Store


class Verdict(NamedTuple):
    """One word, how many events hold, their head, and what the break looks like."""

    word: str
    events: int = 0
    head: str = ""
    looks: str = ""
    behind: int = 0
    """Readable records behind the damage."""
    line: int = 0
    """The first bad line, from 1."""

    @property
    def told(self) -> bool:
        """Whether it says that something is wrong."""
        return self.word not in ("intact", "tail_not_verifiable")


Judge = Callable[[bytes], Verdict]
"""Says what it thinks of the bytes of a log."""


class Seen:
    """Counts of a campaign."""

    def __init__(self) -> None:
        self.changes = 0
        self.told = 0
        self.harmless = 0
        self.words: Counter[str] = Counter()
        self.named: Counter[str] = Counter()
        self.violations: list[str] = []

    def take(self, what: str, verdict: Verdict, *, same: bool) -> None:
        """Hold one verdict against the truth: told, unless the content is the same."""
        self.changes += 1
        self.words[verdict.word] += 1
        self.told += verdict.told
        self.harmless += not verdict.told and same
        if not verdict.told and not same:
            self.violations.append(f"{what}: the content changed, and the verdict is {verdict.word}")


def judge_of(folder: Path, history: History) -> Judge:
    """`turnwal verify`, with the kept head beside the log."""
    (folder / f"{ID}.head").write_bytes(history.kept)
    store = FileStore(folder, disk=Quick())
    path = folder / f"{ID}.jsonl"

    def judge(content: bytes) -> Verdict:
        path.write_bytes(content)
        return verdict_of(store)

    return judge


def verdict_of(store: Store, session: str = ID) -> Verdict:
    """What turnwal says of a stored session; an error on purpose is a verdict, any other ends the campaign."""
    try:
        report = verify(store, session)
    except TooNew:
        return Verdict("newer")
    except DamagedStart:
        return Verdict("damaged_start")
    except HeadMismatch:
        return Verdict("not_the_history")
    except OverLimit:
        return Verdict("over_limit")
    except TurnwalError as error:
        return Verdict(error.code)
    gap = report.gap
    word = "newer" if report.newer and report.sound else report.verdict
    return Verdict(
        word,
        report.events,
        str(report.head),
        report.looks or "",
        0 if gap is None else gap.readable,
        0 if gap is None else gap.line_number,
    )
