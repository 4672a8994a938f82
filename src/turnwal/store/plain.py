"""One session file under any name, named by its path.

Promises: the same lock and the same code as the store of its directory, so the two exclude each other.
Does not: hold more than the one session.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH119, PTH120

import os
from collections.abc import Iterator
from typing import Final

from turnwal.core.errors import SessionNotFound
from turnwal.store.disk import Disk
from turnwal.store.file import OWNER_SUFFIX, FileStore
from turnwal.store.fileclaim import Paths
from turnwal.store.heads import Option
from turnwal.store.names import SUFFIX, session_of

_NAME_IF_NONE: Final = "session"


class PlainFile(FileStore):
    """The store that holds the session of one file, and nothing else. A symbolic link stands for what it leads to."""

    def __init__(
        self, path: str | os.PathLike[str], *, disk: Disk | None = None, network: bool = False, heads: Option = False
    ) -> None:
        """Name the file; nothing is touched yet."""
        self._path = os.path.realpath(os.fspath(path))
        super().__init__(os.path.dirname(self._path), disk=disk, network=network, heads=heads)
        name = os.path.basename(self._path)
        stem = name.removesuffix(SUFFIX)
        self.session: Final = (session_of(stem) if stem != name else None) or stem or _NAME_IF_NONE
        """The id by which this store knows its session: what the file name spells, else the name itself."""

    def sessions(self) -> Iterator[str]:
        """Yield the one id, if the file is there."""
        if self._disk.status_of(self._path) is not None:
            yield self.session

    def strays(self) -> Iterator[str]:
        """Yield nothing: the file has an id by its path."""
        return iter(())

    def _paths(self, session: str) -> Paths:
        if session != self.session:
            raise SessionNotFound(
                f"this store holds the one session {self.session!r}",
                action="open",
                subject=session,
                hint="open the directory to reach other sessions",
            )
        return Paths(self._path, self._path.removesuffix(SUFFIX) + OWNER_SUFFIX)
