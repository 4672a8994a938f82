"""The door to storage: eight methods, each stating what its success and its failure mean.

A store keeps the lines of sessions, byte for byte, and says who may append. It checks that a batch builds on the head
that the store has, and that whoever appends is the owner, inside the operation that makes the batch durable. Whatever
passes `turnwal.testing.conformance` is a store.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from turnwal.core.chain import Head
from turnwal.core.line import Event


class Record(NamedTuple):
    """A readable line."""

    position: int
    """Where `read` finds it again: an offset, a row number; grows along the session."""
    line: bytes
    event: Event
    sound: bool = True
    """It follows from the records before it. False only when reading past damage."""


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that are no record and that no `damage` event of the log describes."""

    position: int
    after: int
    """Seq of the last sound record before them, -1 where there is none."""
    length: int
    sha256: str
    kind: str
    """`torn`, `nul` or `corrupt`, as in a `damage` event."""
    raw: bytes
    """The first bytes, up to `DAMAGE_RAW_BYTES_MAX`."""
    line_number: int
    """Number of the first bad line, from 1, where the reading began at the start; else 0."""
    reason: str
    """What is wrong with the first bad line, as half a sentence: "is not JSON"."""
    readable: int
    """How many readable records stand inside, which a torn write of the last batch cannot explain."""
    seqs: tuple[int, ...] = ()
    """The seqs of those, up to `LOST_SEQS_MAX`."""
    seq_max: int = -1
    """The greatest seq that may have existed: the greatest readable one, or the count of lines."""
    kept: Head | None = None
    """The kept head that the session is known to have had, and that the log before and behind these bytes has not in
    its past. The gap is at the end then, and may be of no bytes at all.
    """

    @property
    def corrupt(self) -> bool:
        """Whether something acknowledged may be lost here, so that nothing may be appended without a person's word."""
        return self.readable > 0 or self.kept is not None


class Kept(NamedTuple):
    """A head that is kept of a session apart from its lines."""

    head: Head
    certain: bool = True
    """Whether it is known to be the newest that was kept. Not so where its file can be read in part only."""


class Presence(NamedTuple):
    """What can be said of a session without reading it."""

    exists: bool
    empty: bool
    """It exists and holds no byte: it never began."""
    owner: str | None
    """The live owner's description of itself, or None when nobody owns the session now."""


class Claim(Protocol):
    """Ownership of one session. It ends with `release`, or with the process, and by nothing else."""

    @property
    def session(self) -> str:
        """The id of the session that is owned."""
        ...

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        """Make a batch of lines durable, all or nothing, in order, behind the line that `after` names.

        Returning means durable in the sense of the store's `durability`. Nothing was written when it raises
        `OwnershipLost` (this is not the owner any more, or the session's head is not `after`), `Refused` or `OverLimit`
        (the lines do not follow), `Damaged` (bytes behind `after` are no record, and the batch does not begin with the
        `damage` event of exactly these, of kind `lost` where readable records stand in them), `HeadMismatch` (the log
        has a kept head not in its past, and the batch does not begin with a `damage` event that names it),
        `DamagedStart` or `TooNew` (of the first line: such a session is never written to). Where a head is kept, it
        is the one behind the batch on return. Raises `StoreFailed` or `StoreFull` when the store could not: the outcome
        is unknown, and every later append raises `ClosedAfterFailure`. A failed sync is never retried.
        """
        ...

    def release(self) -> None:
        """Give the session up; idempotent, never raises for a session that was lost."""
        ...


class Store(Protocol):
    """Where sessions live."""

    @property
    def kind(self) -> str:
        """`memory`, `file`, …: what `session_start` records."""
        ...

    @property
    def durability(self) -> str:
        """What keeps an acknowledged event: the `process`, the `machine`'s disk, or more than one (`replicated`)."""
        ...

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> Claim:
        """Become the owner of a session, which is made when it is absent and `create` holds.

        What another owner left unsynced is durable again, same bytes, before this returns. Raises `SessionHeld` with
        the holder's own description, at once or after `wait` seconds; `SessionNotFound` when it is absent and may not
        be made; `InvalidName` for an id that is no text. `owner` describes the claimer to those it will refuse.
        """
        ...

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Store a whole history under a new id, byte for byte and all or nothing, and return its head.

        Returning means durable in the sense of the store's `durability`. Nobody owns the session then, and until then
        nobody sees anything of it. Nothing of it is visible when this raises `SessionExists` (the id is taken, be it
        by an empty session), `Refused` or `OverLimit` (the lines do not chain from nothing, or there is none),
        `TooNew` (a newer turnwal wrote a line that this one cannot place), `StoreFull`, or whatever the iterator
        raises, which passes through. When it raises `StoreFailed`, or an interrupt ends it, the outcome is unknown, as
        it is after the death of the process: under the id is all of it or nothing. The same call can be made again;
        where it raises `SessionExists` then, what is there is to be compared. The lines are taken one after another
        and never held all at once by a store that outlives the process. Raises `InvalidName` for an id that is no
        text.
        """
        ...

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on, and a `Gap` for bytes that are none and that no `damage` event covers.

        `after` is the head before the first of them; None at position 0. Reading needs no ownership and holds nobody
        up. While an owner is alive, bytes that are not yet a whole line are not yielded; the owner's own process sees
        exactly what it was told is durable. After a gap reading ends. A log that has a kept head not in its past ends
        with a gap that names it. With `past_damage` a gap is told piece by piece:
        a `Gap` wherever the chain breaks (of length 0 where no bytes stand between two lines; its `readable` counts
        the records behind it, its `after` is the readable line before it), and every readable line as a record that
        is not sound; an unreadable first line is a gap too then, behind seq -1. Raises `SessionNotFound`,
        `DamagedStart` when the first line is unreadable and `past_damage` was not asked for, `TooNew`, and `OverLimit`
        naming the offset of a line that is too long.
        """
        ...

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest, None for each that is not a readable event.

        The chain is not checked: `read` from a position does that. Raises `SessionNotFound`.
        """
        ...

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        ...

    def kept(self, session: str) -> Kept | None:
        """The head that is kept of a session apart from its lines, None where none is; never ahead of the log.

        Raises `HeadMismatch` where what is kept cannot be read. The session need not exist.
        """
        ...

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, in the order of their names in the store. One bad session stops nothing."""
        ...

    def close(self) -> None:
        """Release what the store holds open; claims of it are released too."""
        ...
