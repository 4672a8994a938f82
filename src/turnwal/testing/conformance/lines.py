"""Lines come back byte for byte, in order."""

from typing import Final

from turnwal.core.chain import EMPTY, digest
from turnwal.testing.conformance.kit import Check, Storage, check_in, require, same
from turnwal.testing.conformance.material import claimed, grow, head_of, lines_of, new_log, odd_lines, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


@_check
def _lines_come_back_byte_for_byte(storage: Storage) -> None:
    """A store returns the bytes it was given, not what it thinks they mean."""
    lines = odd_lines()
    with claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        same(stored(store), lines, "the lines read")


@_check
def _batches_follow_each_other(storage: Storage) -> None:
    """Each batch stands behind the one before, and positions grow."""
    log = new_log(messages=0)
    with claimed(storage) as (store, claim):
        claim.append(lines_of(log), EMPTY)
        for size in (1, 3, 2):
            head, start = log.head, len(log)
            grow(log, size)
            claim.append(lines_of(log, start), head)
            same(stored(store), lines_of(log), "the lines read")
        positions = [found.position for found in store.read("s")]
        require(positions == sorted(set(positions)), f"positions do not grow: {positions}")


@_check
def _an_empty_batch_changes_nothing(storage: Storage) -> None:
    """Nothing to append is no failure."""
    log = new_log()
    with claimed(storage) as (store, claim):
        claim.append(lines_of(log), EMPTY)
        claim.append([], log.head)
        same(stored(store), lines_of(log), "the lines read")


@_check
def _a_big_line_is_kept(storage: Storage) -> None:
    """A line of a megabyte is a line, at any place."""
    log = new_log()
    log.append("user_message", {"parts": [{"type": "text", "content": "long \n" * 200_000}]})
    grow(log)
    with claimed(storage) as (store, claim):
        claim.append(lines_of(log), EMPTY)
        same(stored(store), lines_of(log), "the lines read")
        newest = [record.line if record else None for record in store.newest("s")]
        same(newest, lines_of(log)[::-1], "the newest lines")


@_check
def _many_lines_are_kept(storage: Storage) -> None:
    """Two thousand lines in one batch, and one more behind them."""
    log = new_log(messages=2_000)
    head, start = log.head, len(log)
    grow(log)
    with claimed(storage) as (store, claim):
        claim.append(lines_of(log)[:start], EMPTY)
        claim.append(lines_of(log, start), head)
        same(stored(store), lines_of(log), "the lines read")


@_check
def _a_break_of_lost_lines_is_accepted(storage: Storage) -> None:
    """A `damage` event of kind `lost` numbers on above what may have existed; the one break there is."""
    lines = lines_of(new_log())
    data = b'{"after":2,"length":0,"sha256":"%s","kind":"lost","lost":[]}' % digest(b"").encode()
    lines.append(b'{"seq":9,"prev":"%s","time":0,"type":"damage","data":%b}' % (digest(lines[-1]).encode(), data))
    lines.append(b'{"seq":10,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(lines[-1]).encode())
    with claimed(storage) as (store, claim):
        claim.append(lines[:3], EMPTY)
        claim.append(lines[3:], head_of(lines[:3]))
        same(stored(store), lines, "the lines read")
