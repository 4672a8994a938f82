"""The store that lives in memory: for tests, and for sessions that need not outlive the process.

Promises:
- It refuses what every store refuses: a batch that does not build on the head, a second owner, an owner that was fenced
  off, a forked child.
- A reader sees whole batches, in the same bytes and at the same positions as in a file.

Does not: survive the process, or see damage: lines are kept whole.
"""

import threading
import time
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from turnwal.core.chain import EMPTY, Head
from turnwal.core.errors import SessionHeld
from turnwal.core.line import Unreadable, read
from turnwal.store.batch import check_batch, check_head, check_history, taken
from turnwal.store.claiming import Standing
from turnwal.store.frames import frames
from turnwal.store.names import check_id, not_found
from turnwal.store.owner import describe, told
from turnwal.store.protocol import Gap, Kept, Presence, Record
from turnwal.store.surely import surely

_LOOK_S: Final = 0.05
"""How often whoever waits for a session looks whether its owner is still there."""


class _Shelf:
    """One session: its lines, where each begins, who owns it, and how often it changed hands."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.offsets: list[int] = []
        self.state = (0, 0, EMPTY)
        """How many lines are stored, of how many bytes, and their head: one value, so that no instant parts them."""
        self.ownership: tuple[int, str, weakref.ref[MemoryClaim] | None] = (0, "", None)
        """How often it changed hands, who came last, and the claim: one value, as above.

        A claim that nobody has any more, as after an interrupt on its way to whoever asked for it, owns nothing.
        """

    @property
    def epoch(self) -> int:
        """How often it changed hands."""
        return self.ownership[0]

    @property
    def owner(self) -> str | None:
        """Who owns it now."""
        _, who, held = self.ownership
        claim = None if held is None else held()
        return who if claim is not None and not claim.released else None

    @property
    def count(self) -> int:
        """How many lines are stored."""
        return self.state[0]

    @property
    def size(self) -> int:
        """How many bytes they are."""
        return self.state[1]

    @property
    def head(self) -> Head:
        """The head of the last."""
        return self.state[2]

    def take(self, lines: Sequence[bytes], head: Head) -> None:
        """Take a batch. An interrupt in between leaves what the next batch takes the place of: the size tells."""
        del self.lines[self.count :], self.offsets[self.count :]
        position = self.size
        for line in lines:
            self.offsets.append(position)
            position += len(line) + 1
        self.lines.extend(lines)
        self.state = (len(self.lines), position, head)

    def chunks(self, position: int) -> Iterator[bytes]:
        index = bisect_right(self.offsets, position, hi=self.count) - 1
        while 0 <= index < self.count:
            yield (self.lines[index] + b"\n")[max(position - self.offsets[index], 0) :]
            index += 1


class _Memory:
    """What all doors to the same sessions share."""

    def __init__(self) -> None:
        self.shelves: dict[str, _Shelf] = {}
        self.lock = threading.RLock()
        """Entered by itself: unlike the condition it is no Python that an interrupt could come into."""
        self.changed = threading.Condition(self.lock)


class MemoryClaim:
    """Ownership of a session in memory, fenced by an epoch."""

    def __init__(self, memory: _Memory, session: str, epoch: int) -> None:
        """Stand for an epoch, which the caller lets begin."""
        self._memory = memory
        self._standing = Standing(session)
        self._epoch = epoch

    @property
    def session(self) -> str:
        """The id of the session that is owned."""
        return self._standing.session

    @property
    def released(self) -> bool:
        """Whether the session was given up."""
        return self._standing.released

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        """Keep a batch of lines, all or nothing; see `Claim.append`."""
        standing = self._standing
        standing.check_process()
        with self._memory.lock:
            standing.check()
            shelf = self._memory.shelves[standing.session]
            if shelf.epoch != self._epoch:
                raise standing.loss("this claim was fenced off")
            check_head(after, shelf.head, session=standing.session)
            head = check_batch(lines, after, session=standing.session)
            shelf.take([bytes(line) for line in lines], head)

    def release(self) -> None:
        """Give the session up; idempotent."""
        if self._standing.inherited:
            return
        with self._memory.lock:
            self._standing.released = True
            self._memory.changed.notify_all()


class MemoryStore:
    """Sessions in the memory of this process."""

    kind = "memory"
    durability = "process"

    def __init__(self, beside: "MemoryStore | None" = None) -> None:
        """Begin with no session, or open a second door to the sessions of another memory store."""
        self._memory: _Memory = _Memory() if beside is None else beside._memory  # noqa: SLF001
        # no set of weak references: its callbacks would swallow an interrupt that comes while a claim dies
        self._claims: list[weakref.ref[MemoryClaim]] = []

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> MemoryClaim:
        """Become the owner of a session; see `Store.claim`."""
        check_id(session)
        deadline = time.monotonic() + wait
        claim: MemoryClaim | None = None
        try:
            with self._memory.lock:
                if not create:
                    self._shelf(session, "claim")
                shelf = self._memory.shelves.setdefault(session, _Shelf())
                self._wait_for(shelf, session, deadline)
                claim = MemoryClaim(self._memory, session, shelf.epoch + 1)
                self._claims = [held for held in self._claims if (known := held()) is not None and not known.released]
                self._claims.append(weakref.ref(claim))
                shelf.ownership = (shelf.epoch + 1, told(describe(owner)), weakref.ref(claim))
        except BaseException:
            if claim is not None:  # an interrupt keeps it alive for as long as somebody has the exception
                surely(claim.release)
            raise
        return claim

    def _wait_for(self, shelf: _Shelf, session: str, deadline: float) -> None:
        while (holder := shelf.owner) is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise SessionHeld(
                    f"held by {holder}",
                    holder=holder,
                    action="claim",
                    subject=session,
                    hint="wait for it to end, or pass `wait`",
                )
            # a claim that is dropped says nothing
            self._memory.changed.wait(min(left, _LOOK_S))

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Keep a whole history under a new id, all or nothing; see `Store.put`."""
        check_id(session)
        if session in self._memory.shelves:
            raise taken(session)
        shelf = _Shelf()
        for piece, head in check_history(lines, session=session):
            shelf.take([bytes(line) for line in piece], head)
        with self._memory.lock:
            if session in self._memory.shelves:
                raise taken(session)
            self._memory.shelves[session] = shelf
        return shelf.head

    def steal(self, session: str) -> None:
        """Fence the present owner off, as if its lease had ended while it still runs: what tests need."""
        with self._memory.lock:
            shelf = self._shelf(session, "steal")
            shelf.ownership = (shelf.epoch + 1, "", None)
            self._memory.changed.notify_all()

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        shelf = self._shelf(session, "read")
        yield from frames(shelf.chunks, position, after=after, past_damage=past_damage, subject=session)

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        shelf = self._shelf(session, "read")
        for index in range(shelf.count - 1, -1, -1):
            try:
                yield Record(shelf.offsets[index], shelf.lines[index], read(shelf.lines[index]))
            except Unreadable:
                yield None

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        check_id(session)
        shelf = self._memory.shelves.get(session)
        if shelf is None:
            return Presence(exists=False, empty=False, owner=None)
        return Presence(exists=True, empty=not shelf.count, owner=shelf.owner)

    def kept(self, session: str) -> Kept | None:
        """Return None: what is gone with the process needs no head beside it."""
        check_id(session)
        return None

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, sorted."""
        with self._memory.lock:
            names = sorted(self._memory.shelves)
        yield from names

    def close(self) -> None:
        """Release the claims taken through this door; the sessions stay for others."""
        for held in self._claims:
            claim = held()
            if claim is not None:
                claim.release()
        self._claims.clear()

    def _shelf(self, session: str, action: str) -> _Shelf:
        check_id(session)
        shelf = self._memory.shelves.get(session)
        if shelf is None:
            raise not_found(session, action)
        return shelf
