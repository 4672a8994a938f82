"""Stores that break one promise each, and the check of the suite that finds it."""

import json
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from turnwal.core.chain import EMPTY, Head, digest
from turnwal.core.errors import SessionExists, SessionHeld, TurnwalError
from turnwal.core.line import read
from turnwal.store.memory import MemoryClaim, MemoryStore, _Shelf
from turnwal.store.protocol import Presence, Record, Store
from turnwal.testing import conformance
from turnwal.testing.conformance import Factory, Storage


class SabotagedClaim(MemoryClaim):
    """A claim that does as told by `append` of the store it came from, and knows the shelf behind it."""

    @property
    def shelf(self) -> _Shelf:
        return self._memory.shelves[self.session]

    @property
    def owns(self) -> bool:
        return self.shelf.owner is not None and self.shelf.epoch == self._epoch

    def keep(self, lines: Sequence[bytes]) -> None:
        """Keep lines without looking."""
        last = read(lines[-1].split(b"\n")[-1])
        self.shelf.take(list(lines), Head(last.seq + 1, digest(lines[-1])))


class Saboteur(MemoryStore):
    claim_type: type[SabotagedClaim] = SabotagedClaim

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        sound = super().claim(session, create=create, wait=wait, owner=owner)
        shelf = self._memory.shelves[session]
        epoch, who, _ = shelf.ownership
        claim = self.claim_type(self._memory, session, epoch)
        shelf.ownership = (epoch, who, weakref.ref(claim))
        self._claims[-1] = weakref.ref(claim)
        sound.release()
        return claim


def chains(lines: Sequence[bytes], after: Head, *, seq: bool = True, prev: bool = True) -> bool:
    """Whether lines follow, in the respects that are asked for."""
    count, hashed = after.count, after.hash
    for line in lines:
        event = read(line)
        if (seq and event.seq != count) or (prev and event.prev != hashed):
            return False
        count, hashed = event.seq + 1, digest(line)
    return True


class GapLetIn(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        if after == self.shelf.head and lines and chains(lines, after, seq=False) and read(lines[0]).seq > after.count:
            self.keep(lines)
        else:
            super().append(lines, after)


class WrongPrevLetIn(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        if self.owns and after == self.shelf.head and len(lines) == 1 and chains(lines, after, prev=False):
            self.keep(lines)
        else:
            super().append(lines, after)


class ReusedSeqLetIn(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        if self.owns and after == self.shelf.head and len(lines) == 1 and read(lines[0]).seq < after.count:
            self.keep(lines)
        else:
            super().append(lines, after)


class SilentOverwrite(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        shelf = self.shelf
        if self.owns and 0 < after.count < shelf.head.count and chains(lines, after):
            kept, whole = shelf.lines[: after.count], _Shelf()
            whole.take([*kept, *lines], Head(after.count + len(lines), digest(lines[-1])))
            shelf.lines, shelf.offsets, shelf.state = whole.lines, whole.offsets, whole.state
        else:
            super().append(lines, after)


class DroppedOnReopen(Saboteur):
    """Keeps what is appended in the object alone, once the session has begun."""

    def __init__(self, beside: MemoryStore | None = None) -> None:
        super().__init__(beside)
        for shelf in self._memory.shelves.values():
            if shelf.owner is None and len(shelf.lines) > 1:
                kept, last = shelf.lines[:-1], _Shelf()
                last.take(kept, Head(len(kept), digest(kept[-1])))
                shelf.lines, shelf.offsets, shelf.state = last.lines, last.offsets, last.state


class HalfABatch(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        head = after
        for line in lines:
            super().append([line], head)
            head = self.shelf.head


class StaleOwnerLetIn(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._epoch = self.shelf.epoch
        released, self._standing.released = self._standing.released, False
        try:
            super().append(lines, after)
        finally:
            self._standing.released = released


class Reencoded(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        super().append(lines, after)
        self.shelf.lines[:] = [json.dumps(json.loads(line)).encode() for line in self.shelf.lines]


class SecondOwnerLetIn(Saboteur):
    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        try:
            return super().claim(session, create=create, wait=wait, owner=owner)
        except SessionHeld:
            self.steal(session)
            return super().claim(session, create=create, owner=owner)


class NamelessHolder(Saboteur):
    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        return super().claim(session, create=create, wait=wait, owner=owner[:0])


class Impatient(Saboteur):
    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        return super().claim(session, create=create, wait=wait / 3, owner=owner)


class ReleasesForOthers(SabotagedClaim):
    def release(self) -> None:
        super().release()
        self.shelf.ownership = (self.shelf.epoch, "", None)


class CaseBlind(Saboteur):
    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        return super().claim(session.lower(), create=create, wait=wait, owner=owner)


class UncheckedReading(Saboteur):
    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record]:
        shelf = self._shelf(session, "read")
        del after, past_damage
        for offset, line in zip(shelf.offsets, shelf.lines, strict=True):
            if offset >= position:
                yield Record(offset, line, read(line))


class NewestForwards(Saboteur):
    def newest(self, session: str) -> Iterator[Record | None]:
        return iter(list(super().newest(session))[::-1])


class AbsentIsEmpty(Saboteur):
    def probe(self, session: str) -> Presence:
        return super().probe(session)._replace(exists=True)


class ChildLetIn(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._standing._pid = os.getpid()
        super().append(lines, after)


class TruncatesLongLines(SabotagedClaim):
    def append(self, lines: Sequence[bytes], after: Head) -> None:
        super().append(lines, after)
        self.shelf.lines[:] = [line[:500_000] for line in self.shelf.lines]


class HalfAPut(Saboteur):
    """Appends the lines of a history one by one to a new session."""

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        if self.probe(session).exists:
            return super().put(session, lines)
        claim = self.claim(session)
        try:
            head = EMPTY
            for line in lines:
                claim.append([line], head)
                head = Head(head.count + 1, digest(line))
            return head
        finally:
            claim.release()


class HalfALongPut(Saboteur):
    """Stores a history in pieces, each of them whole."""

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        head, piece, claim = EMPTY, [], None
        for line in lines:
            piece.append(line)
            if len(piece) == 10:
                claim = claim or self.claim(session)
                claim.append(piece, head)
                head, piece = Head(head.count + len(piece), digest(line)), []
        if claim is None:
            return super().put(session, piece)
        claim.append(piece, head)
        claim.release()
        return Head(head.count + len(piece), digest(piece[-1]))


class PutCleansUpBehindItself(HalfAPut):
    """Leaves nothing, and yet half a history was there to be seen."""

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        there = self.probe(session).exists
        try:
            return super().put(session, lines)
        except BaseException:
            if not there:
                self._claims.clear()
                self._memory.shelves.pop(session, None)
            raise


class PutOverAnEmptySession(Saboteur):
    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        presence = self.probe(session)
        if presence.empty and presence.owner is None:
            del self._memory.shelves[session]
        return super().put(session, lines)


class PutOverASession(Saboteur):
    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        try:
            return super().put(session, lines)
        except SessionExists:
            del self._memory.shelves[session]
            return super().put(session, lines)


class PutUnchecked(Saboteur):
    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        kept = list(lines)
        try:
            return super().put(session, kept)
        except SessionExists:
            raise
        except TurnwalError:
            shelf = self._memory.shelves[session] = _Shelf()
            shelf.take(kept, Head(len(kept), digest(kept[-1])) if kept else EMPTY)
            return shelf.head


class PutReencoded(Saboteur):
    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        head = super().put(session, lines)
        shelf = self._shelf(session, "put")
        shelf.lines[:] = [json.dumps(json.loads(line)).encode() for line in shelf.lines]
        return head


class ClosesNothing(Saboteur):
    def close(self) -> None:
        """Leave every claim as it is."""


class FirstPieceOnly(Saboteur):
    """Stores what it can hold, and says that it stored all."""

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        head = super().put(session, lines)
        shelf = self._shelf(session, "put")
        kept = shelf.lines[:10_000]
        shelf.state = (len(kept), sum(len(line) + 1 for line in kept), shelf.head)
        return head


SABOTEURS: list[tuple[type[MemoryStore] | type[SabotagedClaim], str]] = [
    (GapLetIn, "a_gap_in_seq_is_refused"),
    (WrongPrevLetIn, "a_wrong_prev_is_refused"),
    (ReusedSeqLetIn, "a_reused_seq_is_refused"),
    (SilentOverwrite, "a_line_that_exists_is_never_replaced"),
    (DroppedOnReopen, "acknowledged_lines_are_there_after_reopening"),
    (HalfABatch, "a_batch_is_all_or_nothing"),
    (ClosesNothing, "closing_a_store_releases_its_claims"),
    (StaleOwnerLetIn, "a_stale_owner_is_refused"),
    (Reencoded, "lines_come_back_byte_for_byte"),
    (SecondOwnerLetIn, "a_second_owner_is_refused"),
    (NamelessHolder, "a_second_owner_is_refused"),
    (Impatient, "waiting_ends_when_the_owner_does"),
    (ReleasesForOthers, "a_released_session_can_be_claimed"),
    (CaseBlind, "any_text_is_an_id_of_its_own"),
    (UncheckedReading, "reading_checks_the_chain"),
    (NewestForwards, "newest_is_read_backwards"),
    (AbsentIsEmpty, "absent_and_empty_are_two_answers"),
    (ChildLetIn, "a_forked_child_is_refused"),
    (TruncatesLongLines, "a_big_line_is_kept"),
    (HalfAPut, "a_history_that_does_not_chain_leaves_nothing"),
    (HalfAPut, "a_history_can_be_stored_after_one_that_failed"),
    (HalfALongPut, "a_history_that_does_not_chain_leaves_nothing"),
    (PutCleansUpBehindItself, "a_history_that_breaks_off_leaves_nothing"),
    (PutOverAnEmptySession, "a_history_takes_no_id_that_is_taken"),
    (PutOverASession, "a_history_takes_no_id_that_is_taken"),
    (PutUnchecked, "a_history_that_does_not_chain_leaves_nothing"),
    (PutReencoded, "a_history_is_stored_byte_for_byte"),
    (FirstPieceOnly, "a_long_history_is_stored"),
]


CHECKS = {check.__name__: check for check in conformance.checks}


def factory_of(sabotaged: type[MemoryStore] | type[SabotagedClaim]) -> Factory:
    class Place:
        def __init__(self) -> None:
            self._first = MemoryStore()

        def open(self) -> Store:
            if issubclass(sabotaged, MemoryStore):
                return sabotaged(beside=self._first)
            store = Saboteur(beside=self._first)
            store.claim_type = sabotaged
            return store

    @contextmanager
    def place() -> Iterator[Storage]:
        yield Place()

    return place


@pytest.mark.parametrize(("sabotaged", "finder"), SABOTEURS, ids=[each.__name__ for each, _ in SABOTEURS])
def test_a_broken_store_is_rejected_by_the_check_made_for_it(
    sabotaged: type[MemoryStore] | type[SabotagedClaim], finder: str
) -> None:
    CHECKS[finder](factory_of(Saboteur))

    with pytest.raises((conformance.NotConforming, TurnwalError)):
        CHECKS[finder](factory_of(sabotaged))


def test_the_suite_names_the_check_that_failed() -> None:
    failures = conformance.run(factory_of(NewestForwards))

    assert "newest_is_read_backwards" in {failure.check for failure in failures}
    with pytest.raises(conformance.NotConforming, match="newest"):
        conformance.check(factory_of(NewestForwards))


def test_every_check_has_a_name_and_a_sentence_of_its_own() -> None:
    assert len(CHECKS) == len(conformance.checks)
    assert all(check.__doc__ for check in conformance.checks)
