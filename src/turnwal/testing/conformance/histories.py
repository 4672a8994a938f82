"""Whole histories: byte for byte, or nothing of them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final

from turnwal.core.chain import EMPTY
from turnwal.core.errors import Refused, SessionExists, SessionNotFound, TurnwalError
from turnwal.core.log import Log
from turnwal.store.protocol import Presence, Store
from turnwal.testing.conformance.kit import Check, Storage, check_in, refused, require, same
from turnwal.testing.conformance.material import claimed, grow, head_of, lines_of, long_log, new_log, odd_lines, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


@_check
def _a_history_is_stored_byte_for_byte(storage: Storage) -> None:
    """`put` returns the head; the session is listed, nobody owns it, and it can be built on."""
    lines = odd_lines()
    with closing(storage.open()) as store:
        head = store.put("s", iter(lines))
        same(head, head_of(lines), "the head of a stored history")
        same(store.probe("s"), Presence(exists=True, empty=False, owner=None), "a stored history")
        same(list(store.sessions()), ["s"], "the sessions listed")
        same(stored(store), lines, "the lines read")
        newest = [record.line if record else None for record in store.newest("s")]
        same(newest, lines[::-1], "the newest lines")
    with claimed(storage, create=False) as (store, claim):
        log = Log.read(lines)
        grow(log)
        claim.append(lines_of(log, len(lines)), head)
        same(stored(store), lines_of(log), "the lines read behind a stored history")


@_check
def _a_long_history_is_stored(storage: Storage) -> None:
    """More bytes than may be pending, and more lines than anybody would hold."""
    for session, log in (("long", long_log()), ("many", new_log(messages=12_000))):
        with closing(storage.open()) as store:
            same(store.put(session, log.lines()), log.head, "the head of a long history")
        with closing(storage.open()) as store:
            require(stored(store, session) == lines_of(log), "a long history was stored with other lines")


@_check
def _a_history_takes_no_id_that_is_taken(storage: Storage) -> None:
    """Neither that of a session nor that of an empty one, nor one that is taken while the lines come in."""
    lines, other = lines_of(new_log()), lines_of(new_log("other", messages=4))
    with closing(storage.open()) as store, closing(storage.open()) as door:
        store.put("s", lines)
        store.claim("empty").release()
        owned = store.claim("owned")
        for session in ("s", "empty", "owned"):
            for each in (store, door):
                refused(
                    f"a history under the id {session!r}, which is taken,",
                    SessionExists,
                    lambda each=each, session=session: each.put(session, other),  # type: ignore[misc]
                )
        owned.append(lines, EMPTY)
        refused("a history that came second", SessionExists, lambda: store.put("t", _between(other, door, "t", lines)))
        for session, kept in (("s", lines), ("empty", []), ("owned", lines), ("t", lines)):
            same(stored(store, session), kept, f"the lines of {session!r}, whose id is taken,")


def _between(lines: Sequence[bytes], store: Store, session: str, others: Sequence[bytes]) -> Iterator[bytes]:
    """Lines, and in the middle of them somebody else stores another history under the same id."""
    yield lines[0]
    store.put(session, others)
    yield from lines[1:]


@_check
def _a_history_that_does_not_chain_leaves_nothing(storage: Storage) -> None:
    """Wherever it breaks, nothing is there afterwards, and a whole one can be stored."""
    lines, long = lines_of(new_log(messages=4)), lines_of(long_log())
    broken = {
        "no line": [],
        "a beginning that is cut off": lines[1:],
        "a line that is left out": lines[:2] + lines[3:],
        "a line that stands twice": [*lines[:3], lines[2], *lines[3:]],
        "a changed line": [*lines[:2], lines[2].replace(b"message", b"massage"), *lines[3:]],
        "bytes that are no line": [*lines[:2], b"{", *lines[2:]],
        "two lines in one": [lines[0], b"\n".join(lines[1:3]), *lines[3:]],
        "a break at the end of a long history": [*long[:-2], long[-1]],
    }
    for what, wrong in broken.items():
        _leaves_nothing(storage, what, wrong, Refused)


@_check
def _a_history_that_breaks_off_leaves_nothing(storage: Storage) -> None:
    """What the iterator raises passes through, and nobody has seen anything of it at any moment."""
    for log in (new_log(messages=4), long_log()):
        lines = lines_of(log)
        with closing(storage.open()) as door:
            _leaves_nothing(storage, "a history that breaks off", _breaking_off(lines, door), _BrokenOffError)


class _BrokenOffError(TurnwalError):
    """What only the iterator of a check raises."""


def _breaking_off(lines: Sequence[bytes], door: Store) -> Iterator[bytes]:
    for line in lines:
        yield line
        require(not door.probe("s").exists, "part of a history was to be seen while it was stored")
    raise _BrokenOffError("the lines break off")


def _leaves_nothing(storage: Storage, what: str, wrong: Iterable[bytes], error: type[TurnwalError]) -> None:
    with closing(storage.open()) as store:
        refused(what, error, lambda: store.put("s", wrong))
    with closing(storage.open()) as store:
        same(store.probe("s").exists, False, f"after {what}, whether there is something")  # noqa: FBT003
        same("s" in store.sessions(), False, f"after {what}, whether it is listed")  # noqa: FBT003
        refused(f"reading after {what}", SessionNotFound, lambda: list(store.read("s")))


@_check
def _a_history_can_be_stored_after_one_that_failed(storage: Storage) -> None:
    """What failed is no reason against the next try."""
    lines = lines_of(new_log(messages=4))
    with closing(storage.open()) as store, closing(storage.open()) as door:
        refused("a history with a hole", Refused, lambda: store.put("s", [*lines[:2], *lines[3:]]))
        refused("a history that breaks off", _BrokenOffError, lambda: store.put("s", _breaking_off(lines, door)))
        same(store.put("s", lines), head_of(lines), "the head after the second try")
        same(stored(door), lines, "the lines read after the second try")
