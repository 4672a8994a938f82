"""Where the answers of a repair belong in a file of records: behind the message that asked, in the order of its calls.

Promises:
- An answer comes behind the last record of the message that asked for it, among the answers that are there already,
  so that all answers of one message stand in the order of its calls.
- Only messages with an open call are kept, so memory is bounded by what is open.

Does not: know a format, or write.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from turnwal.formats.diagnosis import Diagnosis, OpenCall


class Row(NamedTuple):
    """What a record has to do with calls."""

    place: str
    key: str | None = None
    """What groups the records of one message: its id; None where they just follow each other."""
    asks: Sequence[str] = ()
    """The ids of the calls that it asks for, in order."""
    answers: Sequence[str] = ()
    """The ids of the calls that it answers."""
    ends: bool = False
    """It stands between two messages of the model, so that calls behind it belong to the next."""


@dataclass(slots=True)
class _Batch:
    """The calls of one message."""

    key: str | None
    last: int
    """The last record that belongs to the message itself."""
    ids: list[str] = field(default_factory=list)
    open: dict[int, OpenCall] = field(default_factory=dict)
    """By position among the calls."""
    answered: list[tuple[int, int]] = field(default_factory=list)
    """Index and position of the answers that are there, in the order of the file."""


def to_answer(diagnosis: Diagnosis) -> list[OpenCall]:
    """The open calls that have no answer at all and do not wait."""
    return [call for call in diagnosis.open if call.evidence in ("requested", "dispatched", "ran")]


def invented(diagnosis: Diagnosis) -> dict[str, OpenCall]:
    """By id: the open calls whose answer their tool invented."""
    return {call.id: call for call in diagnosis.open if call.evidence == "answered_synthetic"}


def slots(rows: Iterable[Row], calls: Sequence[OpenCall]) -> dict[int, list[OpenCall]]:
    """By the index of a row: the calls whose answers come right behind it, in order."""
    by_place: dict[tuple[str, str], list[OpenCall]] = {}
    for call in calls:
        by_place.setdefault((call.place, call.id), []).append(call)
    left = Counter({place: len(found) for place, found in by_place.items()})
    batches: list[_Batch] = []
    current: _Batch | None = None
    for index, row in enumerate(rows):
        if row.asks:
            if current is None or current.key != row.key:
                current = _Batch(row.key, index)
            _ask(current, row, by_place, left)
            if current.open and (not batches or batches[-1] is not current):
                batches.append(current)
            current.last = index
        elif row.key is not None and current is not None and current.key == row.key:
            current.last = index
        elif row.answers:
            _answer(batches, index, row)
            current = None
        elif row.ends:
            current = None
    return _placed(batches)


def _ask(
    batch: _Batch, row: Row, by_place: dict[tuple[str, str], list[OpenCall]], left: Counter[tuple[str, str]]
) -> None:
    asked = Counter(row.asks)
    for id in row.asks:
        place = (row.place, id)
        # of calls with one id in one record, the first ones are those that have their results
        if left[place] and asked[id] <= left[place]:
            batch.open[len(batch.ids)] = by_place[place][-left[place]]
            left[place] -= 1
        asked[id] -= 1
        batch.ids.append(id)


def _answer(batches: list[_Batch], index: int, row: Row) -> None:
    for id in row.answers:
        for batch in reversed(batches):
            taken = {position for _, position in batch.answered}
            found = [
                position
                for position, asked in enumerate(batch.ids)
                if asked == id and position not in batch.open and position not in taken
            ]
            if found:
                batch.answered.append((index, found[0]))
                break


def _placed(batches: list[_Batch]) -> dict[int, list[OpenCall]]:
    found: dict[int, list[OpenCall]] = {}
    for batch in batches:
        for position in sorted(batch.open):
            behind = batch.last
            for index, answered in batch.answered:
                if answered > position:
                    break
                behind = index
            found.setdefault(behind, []).append(batch.open[position])
    return found
