"""Disks and stores with a planted fault. A campaign that does not catch a planted defect proves nothing."""

import os
import queue
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from turnwal.core.chain import Head
from turnwal.store.disk import Disk
from turnwal.store.file import FileStore
from turnwal.store.fileclaim import FileClaim
from turnwal.store.protocol import Claim


class WrappedClaim:
    """A claim with something around its append."""

    def __init__(self, claim: FileClaim) -> None:
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


class EagerClaim(WrappedClaim):
    """Acknowledges a batch when it is queued; a thread writes it a moment later."""

    def __init__(self, claim: FileClaim) -> None:
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


class EagerStore(WrappedStore):
    """Acknowledges before it writes."""

    def wrap(self, claim: FileClaim) -> Claim:
        return EagerClaim(claim)


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
