"""Sessions as files: one `.jsonl` file each, lines as they are, readable with the tools that everybody has.

Promises:
- One owner at a time, by the kernel's lock on the session file itself, so a path given by hand and the store exclude
  each other, and the lock ends with its holder, however that ends.
- Reading needs no ownership, writes nothing, and holds an owner up for a moment at most. While an owner is alive,
  bytes behind the last newline are not yet a line; the owner's own process reads exactly what was acknowledged.
- A new session is durable as a name before anything is appended to it, and nobody but its user may read it.

Does not: work on network file systems unless told to, where locks and syncs mean something else.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH100, PTH118, PTH120

import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from turnwal.core.chain import Head
from turnwal.core.errors import (
    HistoryError,
    InvalidName,
    OverLimit,
    SessionHeld,
    StoreError,
    StoreUnsupported,
)
from turnwal.core.limits import OWNER_RETRY_S
from turnwal.store import owner as owners
from turnwal.store.disk import Disk
from turnwal.store.fileclaim import FileClaim, Paths
from turnwal.store.fileput import put
from turnwal.store.fileview import FileView
from turnwal.store.frames import frames
from turnwal.store.heads import Heads, Option, outstanding
from turnwal.store.mounts import network_type
from turnwal.store.names import SUFFIX, file_stem, is_digest_name, not_found, session_of
from turnwal.store.protocol import Gap, Kept, Presence, Record
from turnwal.store.surely import surely

OWNER_SUFFIX: Final = ".owner"
_POLL_S: Final = 0.005


class FileStore:
    """Sessions in one directory, which is made with the first session."""

    kind = "file"
    durability = "machine"

    def __init__(
        self, root: str | os.PathLike[str], *, disk: Disk | None = None, network: bool = False, heads: Option = False
    ) -> None:
        """Name the directory; nothing is touched yet. `network` accepts a network file system, at the caller's risk.

        `heads` keeps the head of every session beside its log, or in a directory that it names.
        """
        self._root = os.path.abspath(os.fspath(root))
        self._disk = Disk() if disk is None else disk
        self._heads = Heads(self._disk, heads, lambda session: self._paths(session).log.removesuffix(SUFFIX))
        self._network = network
        self._local = False
        self._named = False
        self._claims: set[FileClaim] = set()

    def claim(self, session: str, *, create: bool = True, wait: float = 0.0, owner: str = "") -> FileClaim:
        """Become the owner of a session; see `Store.claim`.

        Raises `StoreUnsupported` on a network file system and for a symbolic link, `StoreFailed` or `StoreFull` when
        the disk refuses.
        """
        paths = self._paths(session)
        deadline = time.monotonic() + max(wait, OWNER_RETRY_S)
        if create:
            self._disk.make_directory(self._root)
        while True:
            claim = self._try_claim(session, paths, create=create, owner=owner)
            if claim is not None:
                try:
                    self._claims.difference_update([held for held in tuple(self._claims) if held.released])
                    self._claims.add(claim)
                except BaseException:
                    surely(claim.release)
                    raise
                return claim
            if time.monotonic() >= deadline:
                holder = self._holder(paths)
                raise SessionHeld(
                    f"held by {holder}",
                    holder=holder,
                    action="claim",
                    subject=session,
                    hint="wait for it to end, or pass `wait`; reading needs no ownership",
                )
            time.sleep(_POLL_S)

    def put(self, session: str, lines: Iterable[bytes]) -> Head:
        """Store a whole history under a new id, all or nothing; see `Store.put`.

        Raises `StoreUnsupported` on a network file system and on one without hard links. A process that dies in it
        leaves at most a file whose name begins with `.turnwal-part-`, which nothing reads.
        """
        path = self._paths(session).log
        self._disk.make_directory(self._root)
        self._check_place(path, "create")
        self._sync_names_above()
        head = put(self._disk, path, lines, session=session)
        self._heads.stored(session, head)
        return head

    def read(
        self, session: str, position: int = 0, *, after: Head | None = None, past_damage: bool = False
    ) -> Iterator[Record | Gap]:
        """Yield the records from a position on; see `Store.read`."""
        # before the log: an owner that goes on meanwhile makes it longer than the head, never shorter
        kept = self._heads.kept(session)
        with self._view(session) as view:
            yield from frames(
                view.chunks,
                position,
                after=after,
                past_damage=past_damage,
                kept=outstanding(kept, after, view.newest),
                unfinished=view.unfinished,
                subject=view.path,
            )

    def newest(self, session: str) -> Iterator[Record | None]:
        """Yield the lines from the newest to the oldest; see `Store.newest`."""
        with self._view(session) as view:
            yield from view.newest()

    def probe(self, session: str) -> Presence:
        """Say whether a session exists, is empty, and is owned now."""
        paths = self._paths(session)
        descriptor = self._disk.open(paths.log)
        if descriptor is None:
            return Presence(exists=False, empty=False, owner=None)
        with FileView(self._disk, descriptor, paths.log) as view:
            holder = self._holder(paths) if view.held() else None
            return Presence(exists=True, empty=view.empty(), owner=holder)

    def kept(self, session: str) -> Kept | None:
        """The head that is kept of a session; see `Store.kept`."""
        return self._heads.kept(session)

    def made(self) -> bool:
        """Whether the directory is there; the first session makes it."""
        return self._disk.status_of(self._root) is not None

    def sessions(self) -> Iterator[str]:
        """Yield the ids of all sessions, in the order of their file names; see `strays` for files without an id."""
        for stem in self._stems():
            session = self._session_of(stem)
            if session is not None:
                yield session

    def strays(self) -> Iterator[str]:
        """Yield the paths of session files whose id is unknown: not our name, or a long id and no readable start."""
        for stem in self._stems():
            if self._session_of(stem) is None:
                yield os.path.join(self._root, stem + SUFFIX)

    def close(self) -> None:
        """Release the claims that were taken through this store."""
        for claim in tuple(self._claims):
            claim.release()
        self._claims.clear()

    def _paths(self, session: str) -> Paths:
        stem = os.path.join(self._root, file_stem(session))
        return Paths(stem + SUFFIX, stem + OWNER_SUFFIX)

    def _try_claim(self, session: str, paths: Paths, *, create: bool, owner: str) -> FileClaim | None:
        """Open and lock the file; None when somebody else holds it, or it was replaced meanwhile."""
        claim: FileClaim | None = None
        try:
            with owners.claiming:
                descriptor = self._descriptor(session, paths.log, create=create)
                if descriptor is None:
                    return None
                try:
                    claim = self._lock(session, paths, descriptor, owner)
                except BaseException:
                    self._disk.close(descriptor)
                    raise
                if claim is None:
                    self._disk.close(descriptor)
                    return None
                owners.enter(claim.inode, claim)
            if not claim.size:
                self._sync_name(paths.log)
            elif claim.named_twice:
                self._disk.sync_directory(self._root)
            claim.adopt()
            self._disk.replace(paths.owner, owners.written(claim.description))
        except BaseException:
            # whatever ends it, even Ctrl-C, does not leave the session held by this process
            if claim is not None:
                surely(claim.release)
            raise
        return claim

    def _descriptor(self, session: str, path: str, *, create: bool) -> int | None:
        """Open the file, or make it; None when somebody else makes it at the same time."""
        descriptor = self._disk.open(path, write=True)
        if descriptor is None and not create:
            raise not_found(session, "claim", f"no such session; there is no {path}")
        return self._disk.create(path) if descriptor is None else descriptor

    def _lock(self, session: str, paths: Paths, descriptor: int, owner: str) -> FileClaim | None:
        self._check_place(paths.log, "claim")
        if not self._disk.lock(descriptor, paths.log):
            return None
        status = self._disk.status(descriptor, paths.log)
        named = self._disk.status_of(paths.log)
        if named is None or (named.st_dev, named.st_ino) != (status.st_dev, status.st_ino):
            return None
        return FileClaim(self._disk, descriptor, paths, session, owners.describe(owner), self._heads.file(session))

    def _sync_name(self, path: str) -> None:
        """Make the name of an empty session durable; whoever made it may have died before it was."""
        try:
            self._disk.sync_directory(os.path.dirname(path))
            self._sync_names_above()
        except StoreError:
            # a second sync of the same name would prove nothing, so the next owner makes a new one
            self._disk.discard(path)
            raise

    def _sync_names_above(self) -> None:
        """Make the names that lead to the directory durable, once; whoever made it may have died before they were."""
        if not self._named:
            self._disk.sync_above(self._root)
            self._named = True

    def _check_place(self, path: str, action: str) -> None:
        if self._network or self._local:
            return
        kind = network_type(os.path.dirname(path))
        if kind is not None:
            raise StoreUnsupported(
                f"it is on a network file system ({kind}), where a lock may not hold and a sync may not reach the disk",
                action=action,
                subject=path,
                hint="keep sessions on a local disk, or pass network=True if you know better",
            )
        self._local = True

    def _holder(self, paths: Paths) -> str:
        return owners.told(self._disk.glance(paths.owner, owners.DESCRIPTION_BYTES_MAX))

    def _view(self, session: str) -> FileView:
        path = self._paths(session).log
        descriptor = self._disk.open(path)
        if descriptor is None:
            raise not_found(session, "read", f"no such session; there is no {path}")
        return FileView(self._disk, descriptor, path)

    def _stems(self) -> list[str]:
        return sorted(name.removesuffix(SUFFIX) for name in self._disk.names(self._root) if name.endswith(SUFFIX))

    def _session_of(self, stem: str) -> str | None:
        if not is_digest_name(stem):
            return session_of(stem)
        path = os.path.join(self._root, stem + SUFFIX)
        return self._named_inside(path, lambda session: _fits(session, stem))

    def _named_inside(self, path: str, fits: Callable[[str], bool]) -> str | None:
        """The first id that fits, of those the session gives itself: in its first line, or where it was forked."""
        try:
            descriptor = self._disk.open(path)
        except StoreError:
            return None
        if descriptor is None:
            return None
        with FileView(self._disk, descriptor, path) as view:
            return next(filter(fits, _ids(view)), None)


def _ids(view: FileView) -> Iterator[str]:
    """The ids that a session gives itself, in order; the events that name none are passed over unread."""
    try:
        for found in frames(view.chunks, unfinished=view.unfinished, subject=view.path):
            if isinstance(found, Gap):
                return
            if found.event.type in ("session_start", "session_fork") and isinstance(found.event.data.get("id"), str):
                yield found.event.data["id"]
    except (HistoryError, OverLimit, StoreError):
        return


def _fits(session: str, stem: str) -> bool:
    try:
        return file_stem(session) == stem
    except InvalidName:
        return False
