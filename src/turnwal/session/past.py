"""Reading past damage: which of the lines that can still be read are taken for records, and at which seqs.

Promises: no line with a changed seq hides another. A seq is believed where the chain confirms it: the line before or
behind follows, or the line is the head. Of every other line it counts only as far as it fits between those.

Does not: read or judge; it sees what a store yields past damage. What it holds are lines that nothing confirms.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from turnwal.core.chain import Head, after, digest, follows
from turnwal.store.protocol import Gap, Record


def believed(items: Iterable[Record | Gap], durable: Head | None) -> Iterator[Record | Gap]:
    """The gaps, and the records in the ascending order of their seqs; `durable` is the head of all, where it is known.

    A line that nothing confirms is yielded behind the gaps around it.
    """
    mark = -1
    unconfirmed: list[Record] = []
    last: Record | None = None
    linked = False
    for item in chain(items, (None,)):
        if isinstance(item, Gap):
            yield item
        elif item is not None and item.sound:
            mark = item.event.seq
            yield item
        else:
            if last is not None:
                goes_on = item is not None and follows(item.event, after(last.line, last.event))
                if linked or goes_on or (durable is not None and digest(last.line) == durable.hash):
                    for record in (*_between(unconfirmed, mark, last.event.seq), *_between([last], mark, None)):
                        mark = record.event.seq
                        yield record
                    unconfirmed = []
                else:
                    unconfirmed.append(last)
                linked = goes_on
            last = item
    yield from _between(unconfirmed, mark, None if durable is None else durable.count)


def _between(records: Iterable[Record], mark: int, end: int | None) -> Iterator[Record]:
    """The records whose seqs ascend between two that are certain, both excluded."""
    for record in records:
        if record.event.seq > mark and (end is None or record.event.seq < end):
            mark = record.event.seq
            yield record
