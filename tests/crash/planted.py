"""Disks and stores with a planted fault. A campaign that does not catch a planted defect proves nothing."""

import os
import queue
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import cast
from unittest import mock

from turnwal.core.chain import Head
from turnwal.store import sqlite_file
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.fileclaim import FileClaim
from turnwal.store.protocol import Claim, Gap, Kept, Presence, Record, Store


class WrappedClaim:
    """A claim with something around its append."""

    def __init__(self, claim: Claim) -> None:
        self._claim = claim

    @property
    def session(self) -> str:
        return self._claim.session

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._claim.append(lines, after)

    def release(self) -> None:
        self._claim.release()


class WrappedStore(FileStore):
    """A file store that hands out wrapped claims."""

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> FileClaim:
        claim = super().claim(session, create=create, wait=wait, owner=owner)
        return cast("FileClaim", self.wrap(claim))  # it has what a session uses

    def wrap(self, claim: FileClaim) -> Claim:
        return WrappedClaim(claim)


class Around:
    """Any store, with something around the appends of its claims."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def kind(self) -> str:
        return self._store.kind

    @property
    def durability(self) -> str:
        return self._store.durability

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> Claim:
        return self.wrap(self._store.claim(session, create=create, wait=wait, owner=owner))

    def wrap(self, claim: Claim) -> Claim:
        return WrappedClaim(claim)

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        return self._store.put(session, lines)

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        return self._store.read(session, position, after=after, past_damage=past_damage)

    def newest(self, session: str) -> Iterator[Record | None]:
        return self._store.newest(session)

    def probe(self, session: str) -> Presence:
        return self._store.probe(session)

    def kept(self, session: str) -> Kept | None:
        return self._store.kept(session)

    def sessions(self) -> Iterator[str]:
        return self._store.sessions()

    def close(self) -> None:
        self._store.close()


class TearingDisk(Disk):
    """Dies in the middle of one write: what a kill does to a write of many pages, at any length of the write."""

    def __init__(self, writes: int, share: float) -> None:
        """Let so many writes pass, then write a share of the next one."""
        self._writes = writes
        self._share = share

    def write(self, descriptor: int, data: bytes, path: str) -> None:
        self._writes -= 1
        if self._writes < 0:
            super().write(descriptor, data[: int(len(data) * self._share)], path)
            os.kill(os.getpid(), signal.SIGKILL)
        super().write(descriptor, data, path)


class UnsyncedDisk(Disk):
    """Never syncs. A kill takes nothing from it, since the kernel lives on; a power cut would."""

    def sync(self, descriptor: int, path: str) -> None:
        """Nothing."""

    def sync_directory(self, path: str) -> None:
        """Nothing."""


@contextmanager
def unsynced_sqlite() -> Iterator[None]:
    """SQLite files that are opened in the block, here and in forks, are never synced."""
    with mock.patch.dict(sqlite_file._PRAGMAS, synchronous=0):
        yield


class EagerClaim(WrappedClaim):
    """Acknowledges a batch when it is queued; a thread writes it a moment later."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self._queue: queue.SimpleQueue[tuple[Sequence[bytes], Head] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._queue.put((lines, after))

    def release(self) -> None:
        self._queue.put(None)
        self._writer.join()
        super().release()

    def _write(self) -> None:
        while (batch := self._queue.get()) is not None:
            self._claim.append(*batch)


class EagerStore(Around):
    """Acknowledges before it writes."""

    def wrap(self, claim: Claim) -> Claim:
        return EagerClaim(claim)


class LateClaim(WrappedClaim):
    """Acknowledges a batch and writes it with the next one."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self._kept: tuple[Sequence[bytes], Head] | None = None

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        self._write()
        self._kept = (lines, after)

    def release(self) -> None:
        self._write()
        super().release()

    def _write(self) -> None:
        if self._kept is not None:
            self._claim.append(*self._kept)
            self._kept = None


class LateStore(Around):
    """Acknowledges one batch ahead of what it has written."""

    def wrap(self, claim: Claim) -> Claim:
        return LateClaim(claim)


class PiecemealClaim(WrappedClaim):
    """Writes a batch one line after another, so that a death leaves a part of it."""

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        for line in lines:
            self._claim.append([line], after)
            after = Head(after.count + 1, sha256(line).hexdigest())


class PiecemealStore(Around):
    """Keeps no batch whole."""

    def wrap(self, claim: Claim) -> Claim:
        return PiecemealClaim(claim)


class CuttingStore(WrappedStore):
    """Cuts a torn tail off when it is opened, as so many tools do."""

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> FileClaim:
        self._cut(session)
        return super().claim(session, create=create, wait=wait, owner=owner)

    def _cut(self, session: str) -> None:
        path = Path(self._paths(session).log)
        if not path.exists():
            return
        with path.open("ab+") as file:
            file.seek(0)
            data = file.read()
            file.truncate(data.rfind(b"\n") + 1)
