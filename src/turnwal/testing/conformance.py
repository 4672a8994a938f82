"""What every store must do, as checks that any store can be put through.

A check is a function that takes a *factory*: called, it gives a context manager whose value can open the same storage
again and again, as a new process would.

    @contextmanager
    def my_store():
        with TemporaryDirectory() as directory:
            yield SimpleNamespace(open=lambda: MyStore(directory))

    conformance.check(my_store)                     # raises `NotConforming` at the first failure
    failures = conformance.run(my_store)            # or all of them

    @pytest.mark.parametrize("check", conformance.checks, ids=lambda check: check.__name__)
    def test_my_store(check):                       # or one test each
        check(my_store)

Promises: a store that passes may be handed to a session. Each check uses a storage of its own.
Does not: pull the plug, or have a store fail. That an acknowledged line survives the machine, and that all or nothing
of a history is there where `put` failed with an unknown outcome, needs the store's own tests.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import NamedTuple, Protocol

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.errors import (
    InvalidName,
    OwnershipLost,
    Refused,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    TurnwalError,
)
from turnwal.core.limits import PENDING_BYTES_MAX, SESSION_ID_CHARS_MAX
from turnwal.core.log import Log
from turnwal.store.protocol import Claim, Gap, Presence, Record, Store


class Storage(Protocol):
    """A place where sessions are kept, beyond the life of one store object."""

    def open(self) -> Store:
        """Return a new store over this storage."""
        ...


Factory = Callable[[], AbstractContextManager[Storage]]
"""Gives a storage of its own at each call, empty, and cleans it up."""

Check = Callable[[Factory], None]
"""Returns if the store passes, raises otherwise."""


class NotConforming(AssertionError):
    """The store did what a store must not do, or did not do what it must."""


class Failure(NamedTuple):
    """A check that a store did not pass."""

    check: str
    reason: str


checks: list[Check] = []
"""All checks, in the order in which a new store best passes them."""


def run(factory: Factory) -> list[Failure]:
    """Return every check that the store does not pass, with the reason."""
    failures = []
    for check in checks:
        try:
            check(factory)
        except Exception as error:  # noqa: BLE001 - whatever a foreign store raises is a reason
            failures.append(Failure(check.__name__, f"{type(error).__name__}: {error}"))
    return failures


def check(factory: Factory) -> None:
    """Return if the store passes every check. Raises `NotConforming` at the first one that it does not pass."""
    for each in checks:
        try:
            each(factory)
        except Exception as error:
            raise NotConforming(f"{each.__name__}: {error}") from error


def _check(body: Callable[[Storage], None]) -> Check:
    def on_new_storage(factory: Factory) -> None:
        with factory() as storage:
            body(storage)

    on_new_storage.__name__ = body.__name__.removeprefix("_")
    on_new_storage.__doc__ = body.__doc__
    checks.append(on_new_storage)
    return on_new_storage


# --- what the checks are made of


def _log(session: str = "s", messages: int = 2) -> Log:
    log = Log()
    log.append("session_start", {"id": session, "format": 1})
    _grow(log, messages)
    return log


def _grow(log: Log, messages: int = 1) -> None:
    for _ in range(messages):
        log.append("user_message", {"parts": [{"type": "text", "content": f"message {len(log)}"}]})


def _lines(log: Log, start: int = 0) -> list[bytes]:
    return list(log.lines())[start:]


def _odd_lines() -> list[bytes]:
    """Lines that nobody would write like this, and that are lines all the same."""
    lines = _lines(_log())
    lone, wide = b"\\ud800 \\u2028 \\u00e9", "é🙂".encode()
    for text in (lone, wide, b"1.0", b"12345678901234567890123"):
        body = b'"' + text + b'"' if text in (lone, wide) else text
        lines.append(
            b'{"prev":"%s", "seq":%d,"type":"x.odd","data":{"b": %b,"a":1e2},"time":0}'
            % (digest(lines[-1]).encode(), len(lines), body)
        )
    return lines


def _long_log() -> Log:
    """More than any store need hold at once."""
    log = _log(messages=0)
    for index in range(PENDING_BYTES_MAX // _LONG + 2):
        log.append("user_message", {"parts": [{"type": "text", "content": f"{index} ".ljust(_LONG, "x")}]})
    _grow(log, 3)
    return log


_LONG = 512 * 1024


def _head(lines: Sequence[bytes]) -> Head:
    return Head(len(lines), digest(lines[-1])) if lines else EMPTY


@contextmanager
def _claimed(storage: Storage, session: str = "s", *, create: bool = True) -> Iterator[tuple[Store, Claim]]:
    with closing(storage.open()) as store:
        claim = store.claim(session, create=create)
        try:
            yield store, claim
        finally:
            claim.release()


def _stored(store: Store, session: str = "s") -> list[bytes]:
    lines = []
    for found in store.read(session):
        _require(isinstance(found, Record), f"a gap is read where lines were acknowledged: {found}")
        if isinstance(found, Record):
            _require(found.sound, f"line {found.event.seq} is read as not sound")
            lines.append(found.line)
    return lines


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise NotConforming(otherwise)


def _refused(what: str, error: type[TurnwalError] | tuple[type[TurnwalError], ...], act: Callable[[], object]) -> None:
    try:
        act()
    except error:
        return
    raise NotConforming(f"{what} was let in")


def _same(found: object, wanted: object, what: str) -> None:
    _require(found == wanted, f"{what}: {found!r:.300} instead of {wanted!r:.300}")


# --- lines


@_check
def _lines_come_back_byte_for_byte(storage: Storage) -> None:
    """A store returns the bytes it was given, not what it thinks they mean."""
    lines = _odd_lines()
    with _claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        _same(_stored(store), lines, "the lines read")


@_check
def _batches_follow_each_other(storage: Storage) -> None:
    """Each batch stands behind the one before, and positions grow."""
    log = _log(messages=0)
    with _claimed(storage) as (store, claim):
        claim.append(_lines(log), EMPTY)
        for size in (1, 3, 2):
            head, start = log.head, len(log)
            _grow(log, size)
            claim.append(_lines(log, start), head)
            _same(_stored(store), _lines(log), "the lines read")
        positions = [found.position for found in store.read("s")]
        _require(positions == sorted(set(positions)), f"positions do not grow: {positions}")


@_check
def _an_empty_batch_changes_nothing(storage: Storage) -> None:
    """Nothing to append is no failure."""
    log = _log()
    with _claimed(storage) as (store, claim):
        claim.append(_lines(log), EMPTY)
        claim.append([], log.head)
        _same(_stored(store), _lines(log), "the lines read")


@_check
def _a_big_line_is_kept(storage: Storage) -> None:
    """A line of a megabyte is a line, at any place."""
    log = _log()
    log.append("user_message", {"parts": [{"type": "text", "content": "long \n" * 200_000}]})
    _grow(log)
    with _claimed(storage) as (store, claim):
        claim.append(_lines(log), EMPTY)
        _same(_stored(store), _lines(log), "the lines read")
        newest = [record.line if record else None for record in store.newest("s")]
        _same(newest, _lines(log)[::-1], "the newest lines")


@_check
def _many_lines_are_kept(storage: Storage) -> None:
    """Two thousand lines in one batch, and one more behind them."""
    log = _log(messages=2_000)
    head, start = log.head, len(log)
    _grow(log)
    with _claimed(storage) as (store, claim):
        claim.append(_lines(log)[:start], EMPTY)
        claim.append(_lines(log, start), head)
        _same(_stored(store), _lines(log), "the lines read")


@_check
def _a_break_of_lost_lines_is_accepted(storage: Storage) -> None:
    """A `damage` event of kind `lost` numbers on above what may have existed; the one break there is."""
    lines = _lines(_log())
    data = b'{"after":2,"length":0,"sha256":"%s","kind":"lost","lost":[]}' % digest(b"").encode()
    lines.append(b'{"seq":9,"prev":"%s","time":0,"type":"damage","data":%b}' % (digest(lines[-1]).encode(), data))
    lines.append(b'{"seq":10,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(lines[-1]).encode())
    with _claimed(storage) as (store, claim):
        claim.append(lines[:3], EMPTY)
        claim.append(lines[3:], _head(lines[:3]))
        _same(_stored(store), lines, "the lines read")


# --- what may not be appended


def _refuses(storage: Storage, what: str, kept: list[bytes], wrong: list[bytes], after: Head) -> None:
    """A wrong batch is refused, nothing of it is written, and the owner may go on with a right one."""
    with _claimed(storage) as (store, claim):
        claim.append(kept, EMPTY)
        _refused(what, (Refused, OwnershipLost), lambda: claim.append(wrong, after))
        _same(_stored(store), kept, f"after {what} was refused, the lines read")
    with _claimed(storage) as (store, claim):
        _refused(
            f"{what}, as the first thing of an owner,", (Refused, OwnershipLost), lambda: claim.append(wrong, after)
        )
        _same(_stored(store), kept, f"after {what} was refused, the lines read")
        good = Log.read(kept)
        _grow(good)
        claim.append(_lines(good, len(kept)), _head(kept))
        _same(_stored(store), _lines(good), "the lines read after a refusal")


@_check
def _a_gap_in_seq_is_refused(storage: Storage) -> None:
    """Seq counts without gaps."""
    kept = _lines(_log())
    wrong = b'{"seq":4,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(kept[-1]).encode()
    _refuses(storage, "a gap in seq", kept, [wrong], _head(kept))


@_check
def _a_wrong_prev_is_refused(storage: Storage) -> None:
    """Each line names the hash of the one before."""
    kept = _lines(_log())
    wrong = b'{"seq":3,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(b"another").encode()
    _refuses(storage, "a wrong prev", kept, [wrong], _head(kept))


@_check
def _a_reused_seq_is_refused(storage: Storage) -> None:
    """A seq that is taken is taken, also when the line names the right hash."""
    kept = _lines(_log())
    wrong = b'{"seq":2,"prev":"%s","time":0,"type":"user_message","data":{}}' % digest(kept[-1]).encode()
    _refuses(storage, "a seq that is taken", kept, [wrong], _head(kept))


@_check
def _a_line_that_exists_is_never_replaced(storage: Storage) -> None:
    """A batch that builds on an older head, in itself sound, does not take the place of what stands there."""
    log = _log()
    kept = _lines(log)
    other = Log.read(kept[:2])
    other.append("user_message", {"parts": [{"type": "text", "content": "instead"}]})
    _refuses(storage, "a second line in the same place", kept, _lines(other, 2), _head(kept[:2]))


@_check
def _a_second_beginning_is_refused(storage: Storage) -> None:
    """A session begins once."""
    kept = _lines(_log())
    _refuses(storage, "a second line 0", kept, _lines(_log("other")), EMPTY)


@_check
def _a_batch_is_all_or_nothing(storage: Storage) -> None:
    """A batch whose second line is wrong leaves nothing of its first behind."""
    log = _log()
    kept = _lines(log)
    head = log.head
    _grow(log, 2)
    good, skipped = _lines(log, len(kept))
    _refuses(
        storage, "a batch with a wrong line in it", kept, [good, skipped.replace(b"message", b"massage"), good], head
    )


@_check
def _two_lines_in_one_are_refused(storage: Storage) -> None:
    """A line holds no newline: a store that lets one in holds another session than it was given."""
    log = _log()
    kept, head = _lines(log), log.head
    _grow(log, 2)
    _refuses(storage, "a line with a newline in it", kept, [b"\n".join(_lines(log, len(kept)))], head)


# --- whole histories


@_check
def _a_history_is_stored_byte_for_byte(storage: Storage) -> None:
    """`put` returns the head; the session is listed, nobody owns it, and it can be built on."""
    lines = _odd_lines()
    with closing(storage.open()) as store:
        head = store.put("s", iter(lines))
        _same(head, _head(lines), "the head of a stored history")
        _same(store.probe("s"), Presence(exists=True, empty=False, owner=None), "a stored history")
        _same(list(store.sessions()), ["s"], "the sessions listed")
        _same(_stored(store), lines, "the lines read")
        newest = [record.line if record else None for record in store.newest("s")]
        _same(newest, lines[::-1], "the newest lines")
    with _claimed(storage, create=False) as (store, claim):
        log = Log.read(lines)
        _grow(log)
        claim.append(_lines(log, len(lines)), head)
        _same(_stored(store), _lines(log), "the lines read behind a stored history")


@_check
def _a_long_history_is_stored(storage: Storage) -> None:
    """More bytes than may be pending, and more lines than anybody would hold."""
    for session, log in (("long", _long_log()), ("many", _log(messages=12_000))):
        with closing(storage.open()) as store:
            _same(store.put(session, log.lines()), log.head, "the head of a long history")
        with closing(storage.open()) as store:
            _require(_stored(store, session) == _lines(log), "a long history was stored with other lines")


@_check
def _a_history_takes_no_id_that_is_taken(storage: Storage) -> None:
    """Neither that of a session nor that of an empty one, nor one that is taken while the lines come in."""
    lines, other = _lines(_log()), _lines(_log("other", messages=4))
    with closing(storage.open()) as store, closing(storage.open()) as door:
        store.put("s", lines)
        store.claim("empty").release()
        owned = store.claim("owned")
        for session in ("s", "empty", "owned"):
            for each in (store, door):
                _refused(
                    f"a history under the id {session!r}, which is taken,",
                    SessionExists,
                    lambda each=each, session=session: each.put(session, other),  # type: ignore[misc]
                )
        owned.append(lines, EMPTY)
        _refused("a history that came second", SessionExists, lambda: store.put("t", _between(other, door, "t", lines)))
        for session, kept in (("s", lines), ("empty", []), ("owned", lines), ("t", lines)):
            _same(_stored(store, session), kept, f"the lines of {session!r}, whose id is taken,")


def _between(lines: Sequence[bytes], store: Store, session: str, others: Sequence[bytes]) -> Iterator[bytes]:
    """Lines, and in the middle of them somebody else stores another history under the same id."""
    yield lines[0]
    store.put(session, others)
    yield from lines[1:]


@_check
def _a_history_that_does_not_chain_leaves_nothing(storage: Storage) -> None:
    """Wherever it breaks, nothing is there afterwards, and a whole one can be stored."""
    lines, long = _lines(_log(messages=4)), _lines(_long_log())
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
    for log in (_log(messages=4), _long_log()):
        lines = _lines(log)
        with closing(storage.open()) as door:
            _leaves_nothing(storage, "a history that breaks off", _breaking_off(lines, door), _BrokenOffError)


class _BrokenOffError(TurnwalError):
    """What only the iterator of a check raises."""


def _breaking_off(lines: Sequence[bytes], door: Store) -> Iterator[bytes]:
    for line in lines:
        yield line
        _require(not door.probe("s").exists, "part of a history was to be seen while it was stored")
    raise _BrokenOffError("the lines break off")


def _leaves_nothing(storage: Storage, what: str, wrong: Iterable[bytes], error: type[TurnwalError]) -> None:
    with closing(storage.open()) as store:
        _refused(what, error, lambda: store.put("s", wrong))
    with closing(storage.open()) as store:
        _same(store.probe("s").exists, False, f"after {what}, whether there is something")  # noqa: FBT003
        _same("s" in store.sessions(), False, f"after {what}, whether it is listed")  # noqa: FBT003
        _refused(f"reading after {what}", SessionNotFound, lambda: list(store.read("s")))


@_check
def _a_history_can_be_stored_after_one_that_failed(storage: Storage) -> None:
    """What failed is no reason against the next try."""
    lines = _lines(_log(messages=4))
    with closing(storage.open()) as store, closing(storage.open()) as door:
        _refused("a history with a hole", Refused, lambda: store.put("s", [*lines[:2], *lines[3:]]))
        _refused("a history that breaks off", _BrokenOffError, lambda: store.put("s", _breaking_off(lines, door)))
        _same(store.put("s", lines), _head(lines), "the head after the second try")
        _same(_stored(door), lines, "the lines read after the second try")


# --- what was acknowledged


@_check
def _acknowledged_lines_are_there_after_reopening(storage: Storage) -> None:
    """What was acknowledged is there for whoever comes next, and can be built on."""
    log = _log()
    with _claimed(storage) as (_, claim):
        claim.append(_lines(log), EMPTY)
        head, start = log.head, len(log)
        _grow(log, 2)
        claim.append(_lines(log, start), head)
    with closing(storage.open()) as store:
        _same(_stored(store), _lines(log), "the lines read after reopening")
    with _claimed(storage, create=False) as (store, claim):
        head, start = log.head, len(log)
        _grow(log)
        claim.append(_lines(log, start), head)
        _same(_stored(store), _lines(log), "the lines read by the next owner")


@_check
def _a_reader_sees_what_was_acknowledged_while_it_is_owned(storage: Storage) -> None:
    """Reading needs no ownership, and shows each acknowledged line at once, through any door."""
    log = _log()
    with _claimed(storage) as (store, claim), closing(storage.open()) as other:
        _same(_stored(store), [], "the lines of a session that has not begun")
        claim.append(_lines(log), EMPTY)
        for door in (store, other):
            _same(_stored(door), _lines(log), "the lines read beside the owner")
            newest = [record.line if record else None for record in door.newest("s")]
            _same(newest, _lines(log)[::-1], "the newest lines read beside the owner")
        head, start = log.head, len(log)
        _grow(log)
        claim.append(_lines(log, start), head)
        _same(_stored(other), _lines(log), "the lines read beside the owner")


# --- reading


@_check
def _newest_is_read_backwards(storage: Storage) -> None:
    """`newest` yields what `read` yields, the other way round, with the same positions."""
    with _claimed(storage) as (store, claim):
        claim.append(_lines(_log(messages=300)), EMPTY)
        forwards = [(found.position, found.line) for found in store.read("s") if isinstance(found, Record)]
        newest = [(record.position, record.line) for record in store.newest("s") if record is not None]
        _same(newest, forwards[::-1], "the newest lines")


@_check
def _reading_begins_at_a_position(storage: Storage) -> None:
    """From any record on, given the head before it."""
    lines = _lines(_log(messages=5))
    with _claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        positions = [found.position for found in store.read("s")]
        for index in range(1, len(lines)):
            found = list(store.read("s", positions[index], after=_head(lines[:index])))
            same = [(each.position, each.line) for each in found if isinstance(each, Record)]
            _same(same, list(zip(positions[index:], lines[index:], strict=True)), f"the lines read from {index} on")


@_check
def _reading_checks_the_chain(storage: Storage) -> None:
    """What does not follow from the head that the reader has is no record."""
    lines = _lines(_log(messages=3))
    with _claimed(storage) as (store, claim):
        claim.append(lines, EMPTY)
        position = [found.position for found in store.read("s")][2]
        found = list(store.read("s", position, after=Head(2, digest(b"another"))))
        _require(
            len(found) == 1 and isinstance(found[0], Gap) and found[0].corrupt,
            f"lines that do not follow from the given head were read as {found!r:.300}",
        )
        past = list(store.read("s", position, after=Head(2, digest(b"another")), past_damage=True))
        unsound = [each.line for each in past if isinstance(each, Record) and not each.sound]
        _same(unsound, lines[2:], "the lines read past damage")


# --- names


@_check
def _absent_and_empty_are_two_answers(storage: Storage) -> None:
    """A session that is not there, one that never began, and one that did."""
    with closing(storage.open()) as store:
        _same(store.probe("s"), Presence(exists=False, empty=False, owner=None), "a session that is not there")
        for act in (lambda: list(store.read("s")), lambda: list(store.newest("s"))):
            _refused("reading a session that is not there", SessionNotFound, act)
        _refused(
            "claiming what is not there, and may not be made,", SessionNotFound, lambda: store.claim("s", create=False)
        )
        _same(list(store.sessions()), [], "the sessions of a new storage")
        claim = store.claim("s")
        claim.release()
        _same(store.probe("s"), Presence(exists=True, empty=True, owner=None), "a session that never began")
        _same((list(store.read("s")), list(store.newest("s"))), ([], []), "the lines of a session that never began")
        claim = store.claim("s", create=False)
        claim.append(_lines(_log()), EMPTY)
        claim.release()
        _same(store.probe("s"), Presence(exists=True, empty=False, owner=None), "a session that began")


_IDS = (
    "a", "A", "b/c", "b\\c", "..", ".", "../escape", "/etc/passwd", ".hidden", "-rf", "with space", "tab\tnewline\n",
    "nul\0", "é", "e\u0301", "🙂" * 30, "\ud800", "\udcff", "%41", "a.jsonl", "a~b", "x" * 300, "x" * 301, "X" * 300,
    "ß", "SS", "CON", "x" * SESSION_ID_CHARS_MAX,
)  # fmt: skip


@_check
def _any_text_is_an_id_of_its_own(storage: Storage) -> None:
    """No two ids share a session, whatever they contain, and all are listed."""
    with closing(storage.open()) as store:
        for session in _IDS:
            claim = store.claim(session)
            _same(claim.session, session, "the id of a claim")
            claim.append(_lines(_log(session)), EMPTY)
            claim.release()
    with closing(storage.open()) as store:
        for session in _IDS:
            _same(_stored(store, session), _lines(_log(session)), f"the lines of {session!r:.40}")
        listed = list(store.sessions())
        _same(sorted(listed), sorted(_IDS), "the sessions listed")


@_check
def _what_is_no_id_is_refused(storage: Storage) -> None:
    """Empty, too long, or no text."""
    with closing(storage.open()) as store:
        for session in ("", "x" * (SESSION_ID_CHARS_MAX + 1), 7, None, b"bytes"):
            for act in (
                store.claim,
                store.probe,
                lambda name: list(store.read(name)),
                lambda name: store.put(name, _lines(_log())),
            ):
                _refused(f"the id {session!r:.40}", InvalidName, lambda act=act, name=session: act(name))  # type: ignore[misc]
        _same(list(store.sessions()), [], "the sessions listed")


# --- owners


@_check
def _a_second_owner_is_refused(storage: Storage) -> None:
    """At once, with the first one's own description; other sessions are free."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        claim = store.claim("s", owner="the first of two")
        for door in (store, other):
            try:
                door.claim("s", owner="the second").release()
            except SessionHeld as error:
                _require("the first of two" in error.holder, f"the holder is described as {error.holder!r}")
            else:
                raise NotConforming("a second owner was let in")
            owner = door.probe("s").owner
            _require(owner is not None and "the first of two" in owner, f"the owner is described as {owner!r}")
        other.claim("t").release()
        claim.append(_lines(_log()), EMPTY)
        claim.release()
        _same(other.probe("s").owner, None, "the owner of a session that was given up")


@_check
def _a_released_session_can_be_claimed(storage: Storage) -> None:
    """Releasing twice is releasing once, and does not release what somebody else claimed since."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        first = store.claim("s")
        first.release()
        first.release()
        second = other.claim("s")
        first.release()
        _refused("an owner beside one whose predecessor released twice", SessionHeld, lambda: store.claim("s"))
        second.release()


@_check
def _closing_a_store_releases_its_claims(storage: Storage) -> None:
    """And a closed door holds nobody up."""
    store = storage.open()
    held = store.claim("s")
    store.close()
    store.close()
    with _claimed(storage):
        _refused("an append through a closed door", OwnershipLost, lambda: held.append(_lines(_log()), EMPTY))


@_check
def _a_stale_owner_is_refused(storage: Storage) -> None:
    """An owner that is one no more is refused however late it wakes, also where its head still fits."""
    log = _log()
    with closing(storage.open()) as store, closing(storage.open()) as other:
        stale = store.claim("s")
        stale.append(_lines(log), EMPTY)
        stale.release()
        head, start = log.head, len(log)
        _grow(log)
        _refused("an owner that gave the session up", OwnershipLost, lambda: stale.append(_lines(log, start), head))
        fresh = other.claim("s")
        _refused("an owner beside its successor", OwnershipLost, lambda: stale.append(_lines(log, start), head))
        fresh.append(_lines(log, start), head)
        _refused("an owner behind its successor", OwnershipLost, lambda: stale.append(_lines(log, start), head))
        _same(_stored(other), _lines(log), "the lines read")
        fresh.release()


@_check
def _waiting_ends_when_the_owner_does(storage: Storage) -> None:
    """`wait` is how long a claim may take; it is granted as soon as the holder ends."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        claim = store.claim("s")
        started = time.monotonic()
        _refused("an owner that waited in vain", SessionHeld, lambda: other.claim("s", wait=0.3))
        _require(time.monotonic() - started >= 0.3, "a claim gave up before the time it was given")  # noqa: PLR2004
        timer = threading.Timer(0.2, claim.release)
        timer.start()
        other.claim("s", wait=30).release()
        timer.join()


@_check
def _of_many_claims_at_once_one_is_granted(storage: Storage) -> None:
    """Threads with a store of their own each, started together."""
    doors = [storage.open() for _ in range(8)]
    start, done = threading.Barrier(len(doors)), threading.Barrier(len(doors))
    granted: list[Claim] = []

    def contend(door: Store) -> None:
        start.wait()
        try:
            granted.append(door.claim("s"))
        except SessionHeld:
            pass
        finally:
            done.wait()

    threads = [threading.Thread(target=contend, args=(door,)) for door in doors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for door in doors:
        door.close()
    _same(len(granted), 1, "the owners of one session")


@_check
def _a_forked_child_is_refused(storage: Storage) -> None:
    """A claim belongs to the process that made it; the child's copy is dead, and the parent's lives."""
    if not hasattr(os, "fork"):
        return
    log = _log()
    with _claimed(storage) as (store, claim):
        claim.append(_lines(log), EMPTY)
        head, start = log.head, len(log)
        _grow(log)
        with warnings.catch_warnings():
            # newer Pythons warn of threads that the child lacks; this child needs none
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = 1
            try:
                claim.append(_lines(log, start), head)
            except OwnershipLost:
                claim.release()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        _same(os.waitstatus_to_exitcode(status), 0, "the exit of a forked child that was to be refused")
        claim.append(_lines(log, start), head)
        _same(_stored(store), _lines(log), "the lines read")
