"""Reading past damage: which of the lines that can still be read are taken for records, and at which seqs.

Promises: no line with a changed seq hides another. A seq is believed where the chain confirms it: the line before or
behind follows, or the line is the last one that has the hash of the head. Of every other line it counts only as far as
it fits between those.

Does not: read or judge; it sees what a store yields past damage. What it holds are lines that nothing confirms. Two or
more lines that follow each other and stand a second time in an older place are taken for records there, and hide what
is between.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from turnwal.core.chain import Head, after, digest, follows
from turnwal.store.protocol import Gap, Record


def believed(items: Iterable[Record | Gap], durable: Head | None) -> Iterator[Record | Gap]:
    """The gaps, and the records in the ascending order of their seqs; `durable` is the head of all, where it is known.

    What nothing confirms, and the gaps behind it, wait for the next line that is certain.
    """
    mark = -1
    unconfirmed: list[Record | Gap] = []
    last: Record | None = None
    linked = False
    for item in chain(items, (None,)):
        if last is not None:
            goes_on = isinstance(item, Record) and follows(item.event, after(last.line, last.event))
            if linked or goes_on:
                yield from _between(unconfirmed, mark, last.event.seq)
                unconfirmed = []
                if last.event.seq > mark:
                    mark = last.event.seq
                    yield last
            else:
                unconfirmed.append(last)
            last, linked = None, goes_on
        if isinstance(item, Record) and not item.sound:
            last = item
        elif item is not None and unconfirmed:
            unconfirmed.append(item)
        elif item is not None:
            mark = item.event.seq if isinstance(item, Record) else mark
            yield item
    yield from _at_the_end(unconfirmed, mark, durable)


def _at_the_end(items: list[Record | Gap], mark: int, durable: Head | None) -> Iterator[Record | Gap]:
    """What waits where nothing more comes: the newest line is certain, though the one before it be lost."""
    if durable is None:
        yield from _between(items, mark, None)
        return
    # a copy of the newest line may stand where an older one was, so only the last one is the head
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if isinstance(item, Record) and item.event.seq > mark and digest(item.line) == durable.hash:
            yield from _between(items[:at], mark, item.event.seq)
            yield item
            items, mark = items[at + 1 :], item.event.seq
            break
    yield from _between(items, mark, durable.count)


def _between(items: Iterable[Record | Gap], mark: int, end: int | None) -> Iterator[Record | Gap]:
    """The gaps, and the records whose seqs ascend between two that are certain, both excluded."""
    for item in items:
        if isinstance(item, Gap):
            yield item
        elif item.event.seq > mark and (end is None or item.event.seq < end):
            mark = item.event.seq
            yield item
