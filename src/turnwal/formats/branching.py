"""Answers put into a file of records that name the one they come behind, so that they stand on the way to what follows.

Promises: a record that came behind the one which an answer is put behind comes behind the answer; all others are
carried as they stand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turnwal.formats.diagnosis import OpenCall
from turnwal.formats.lenient import encoded, value_of


class Kept(NamedTuple):
    """A record with its bytes."""

    data: bytes
    value: dict[str, Any]
    key: str | None
    parent: str | None


Make = Callable[[Kept, OpenCall, str | None], tuple[str | None, dict[str, Any]]]
"""Makes the record that answers a call, from the record that it comes behind, the call, and the key of its parent;
gives the key of what it made with it.
"""


def with_answers(
    records: Iterable[Kept], behind: Mapping[int, list[OpenCall]], make: Make, parent_field: str
) -> Iterator[bytes]:
    """Yield the lines of a copy. `behind` says by the index of a record which calls are answered behind it."""
    moved: dict[str, str] = {}
    for index, kept in enumerate(records):
        if kept.parent is not None and kept.parent in moved:
            value = value_of(kept.data)
            value[parent_field] = moved[kept.parent]
            yield encoded(value)
        else:
            yield kept.data
        last = kept.key
        for call in behind.get(index, ()):
            last, made = make(kept, call, last)
            yield encoded(made)
        if kept.key is not None and last is not None and last != kept.key:
            moved[kept.key] = last
