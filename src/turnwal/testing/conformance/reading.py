"""What was acknowledged is read: after reopening, beside the owner, backwards, from any position."""

from contextlib import closing
from typing import Final

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.store.protocol import Gap, Record
from turnwal.testing.conformance.kit import Check, Storage, check_in, require, same
from turnwal.testing.conformance.material import claimed, grow, head_of, lines_of, new_log, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


@_check
def _acknowledged_lines_are_there_after_reopening(storage: Storage) -> None:
    """What was acknowledged is there for whoever comes next, and can be built on."""
    log = new_log()
    with claimed(storage) as (_, claim):
        claim.append(lines_of(log), EMPTY)
        head, start = log.head, len(log)
        grow(log, 2)
        claim.append(lines_of(log, start), head)
    with closing(storage.open()) as store:
        same(stored(store), lines_of(log), "the lines read after reopening")
    with claimed(storage, create=False) as (store, claim):
        head, start = log.head, len(log)
        grow(log)
        claim.append(lines_of(log, start), head)
        same(stored(store), lines_of(log), "the lines read by the next owner")


@_check
def _a_reader_sees_what_was_acknowledged_while_it_is_owned(storage: Storage) -> None:
    """Reading needs no ownership, and shows each acknowledged line at once, through any door."""
    log = new_log()
    with claimed(storage) as (store, claim), closing(storage.open()) as other:
        same(stored(store), [], "the lines of a session that has not begun")
        claim.append(lines_of(log), EMPTY)
        for door in (store, other):
            same(stored(door), lines_of(log), "the lines read beside the owner")
            newest = [record.line if record else None for record in door.newest("s")]
            same(newest, lines_of(log)[::-1], "the newest lines read beside the owner")
        head, start = log.head, len(log)
        grow(log)
        claim.append(lines_of(log, start), head)
        same(stored(other), lines_of(log), "the lines read beside the owner")


@_check
def _newest_is_read_backwards(storage: Storage) -> None:
    """`newest` yields what `read` yields, the other way round, with the same positions."""
    with claimed(storage) as (store, claim):
        claim.append(lines_of(new_log(messages=300)), EMPTY)
        forwards = [(found.position, found.line) for found in store.read("s") if isinstance(found, Record)]
        newest = [(record.position, record.line) for record in store.newest("s") if record is not None]
        same(newest, forwards[::-1], "the newest lines")


@_check
def _reading_begins_at_a_position(storage: Storage) -> None:
    """From any record on, given the head before it."""
    lines = lines_of(new_log(messages=5))
    with claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        positions = [found.position for found in store.read("s")]
        for index in range(1, len(lines)):
            found = list(store.read("s", positions[index], after=head_of(lines[:index])))
            read = [(each.position, each.line) for each in found if isinstance(each, Record)]
            same(read, list(zip(positions[index:], lines[index:], strict=True)), f"the lines read from {index} on")


@_check
def _reading_checks_the_chain(storage: Storage) -> None:
    """What does not follow from the head that the reader has is no record."""
    lines = lines_of(new_log(messages=3))
    with claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        position = [found.position for found in store.read("s")][2]
        found = list(store.read("s", position, after=Head(2, digest(b"another"))))
        require(
            len(found) == 1 and isinstance(found[0], Gap) and found[0].corrupt,
            f"lines that do not follow from the given head were read as {found!r:.300}",
        )
        past = list(store.read("s", position, after=Head(2, digest(b"another")), past_damage=True))
        unsound = [each.line for each in past if isinstance(each, Record) and not each.sound]
        same(unsound, lines[2:], "the lines read past damage")
