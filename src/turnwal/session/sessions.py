"""What `open_store` returns: the sessions of one store, to write, to look at, to fork and to move."""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from turnwal.core.chain import Head
from turnwal.core.errors import Refused
from turnwal.core.fork import check_boundary, fork_data
from turnwal.core.log import Log
from turnwal.session.inspection import Glance, Inspection, glance
from turnwal.session.session import Session
from turnwal.session.settings import Settings, system_clock
from turnwal.session.transfer import fork_into, lines_of, take_in
from turnwal.store.protocol import Store
from turnwal.store.urls import open_store as open_door

if TYPE_CHECKING:
    from turnwal.session.copying import Copy
    from turnwal.session.fleet_report import Recovery
    from turnwal.session.settings import Watch


def open_store(url: str | os.PathLike[str], **options: Any) -> "Sessions":
    """Return the sessions of a store: `memory:`, a directory path or `file:PATH`.

    Nothing is made before a session is. Raises `InvalidStoreUrl` for a URL that names no store.
    """
    return Sessions(open_door(url, **options))


class Sessions:
    """The sessions of a store. `with` closes it."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], int] = system_clock,
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
        watch: "Watch | None" = None,
    ) -> None:
        """Stand in front of a store; tests hand in a clock, a source of ids, and what looks on as tools run."""
        self.store = store
        """The door itself."""
        self._clock = clock
        self._nonce = nonce
        self._watch = watch

    def session(  # noqa: PLR0913 - each is one documented choice, given by name
        self,
        id: str,
        *,
        recover: bool | str = True,
        create: bool = True,
        wait: float = 0.0,
        owner: str = "",
        accept_loss: bool = False,
        dispatch: str = "durable",
        redact: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        after: Session | None = None,
        **start: Any,
    ) -> Session:
        """Return a session to open with `with`, `async with` or `open()`; nothing is touched before.

        A new one is made unless `create` is false. `recover="refuse"` raises `Interrupted` instead of recovering.
        `wait` is how many seconds to wait for another owner. `redact` gets the data of every event before its line is
        made and returns what to record (F37). `agent`, `cwd`, `tags` and `parent` are kept in `session_start`.
        """
        unknown = set(start) - {"agent", "cwd", "tags", "parent"}
        if unknown:
            raise TypeError(f"session() got unexpected keyword arguments: {', '.join(sorted(unknown))}")
        if recover not in (True, "refuse"):
            raise Refused(f"recover={recover!r} is unknown", action="open", subject=id, hint='say True or "refuse"')
        if dispatch not in ("durable", "none"):
            raise Refused(
                f"dispatch={dispatch!r} is unknown", action="open", subject=id, hint='say "durable" or "none"'
            )
        settings = Settings(
            recover=recover,
            create=create,
            wait=wait,
            owner=owner,
            accept_loss=accept_loss,
            dispatch=dispatch,
            redact=redact,
            clock=self._clock,
            nonce=self._nonce,
            writer=writer(),
            start=start,
            after=after,
            watch=self._watch,
        )
        return Session(self.store, id, settings)

    def inspect(self, id: str, *, strict: bool = False) -> Inspection:
        """The balanced view of a session, as recovery would leave it; writes nothing and owns nothing."""
        return Inspection(self.store, id, strict=strict)

    def glance(self, id: str) -> Glance:
        """What state a session is in; costs what is open."""
        return glance(self.store, id)

    def __iter__(self) -> Iterator[str]:
        """The ids of all sessions."""
        return self.store.sessions()

    def fork(self, session: str, at: int, id: str, *, into: "Sessions | None" = None) -> Head:
        """Fork a session after its first `at` events under a new id; returns the fork's head (F34)."""
        target = self if into is None else into
        return fork_into(self.store, session, at, target.store, id, nonce=self._nonce(), time=self._clock())

    def export(self, id: str, *, copied: bool = False) -> Iterator[bytes]:
        """Yield a session's lines, without newlines, byte for byte; see `transfer.lines_of`."""
        return lines_of(self.store, id, copied_at=self._clock() if copied else None)

    def take_in(self, id: str, lines: Iterable[bytes]) -> Head:
        """Store lines under a new id, byte for byte; returns the head."""
        return take_in(self.store, id, lines)

    def made_of(self, id: str, lines: Callable[[str, int], Iterable[bytes]]) -> Head:
        """Store the lines that are made with a new nonce and the time now under a new id; returns the head."""
        return take_in(self.store, id, lines(self._nonce(), self._clock()))

    def beside(self, store: Store) -> "Sessions":
        """The sessions of another store, with the clock and the source of ids of this one."""
        return Sessions(store, clock=self._clock, nonce=self._nonce, watch=self._watch)

    def recover_all(self, *, workers: int | None = None, **options: Any) -> "Iterator[Recovery]":
        """Recover every interrupted session whose owner is gone; yields what became of each, as it goes.

        `workers` sessions at a time, else as many as pay. `accept_loss`, `wait`, `owner` and `stop` are those of
        `fleet.recover_all`, which says more.
        """
        from turnwal.session import fleet  # noqa: PLC0415 - only a fleet pays for it

        several = fleet.workers_for(self.store) if workers is None else workers
        return fleet.recover_all(fleet.members(self, interrupted=True), workers=several, **options)

    def copy_all(
        self,
        into: "Sessions",
        ids: Iterable[str] | None = None,
        *,
        copied: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> "Iterator[Copy]":
        """Copy all sessions, or those of `ids`, into another store, byte for byte; yields what became of each.

        What is there already is left alone, so the same call can be made again. With `copied` a session with open work
        is copied while its owner goes on. See `copying.copy_all`.
        """
        from turnwal.session import copying  # noqa: PLC0415 - only a copy pays for it

        return copying.copy_all(self.store, into.store, ids, copied_at=self._clock() if copied else None, stop=stop)

    def close(self) -> None:
        """Release what the store holds open."""
        self.store.close()

    def __enter__(self) -> Self:
        """Begin a block that closes the store."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the store."""
        self.close()


def fork(session: "Session | Log", at: int, id: str = "") -> "Session | Log":
    """Fork a history after its first `at` events.

    Of a `Log`, returns a new log. Of a `Session`, stores the fork beside it under `id` and returns it, to be opened.
    Raises `Refused` for a boundary inside an open turn, naming the turn, or past the end (F34).
    """
    if isinstance(session, Log):
        check_boundary(session, at)
        forked = type(session).read(list(session.lines())[:at])
        parent = session.events[0].data.get("id", "") if session.events[0].type == "session_start" else ""
        forked.append("session_fork", fork_data(id=id, nonce=secrets.token_hex(16), parent=parent, head=forked.head))
        return forked
    return session.fork(at, id)


def writer() -> dict[str, Any]:
    """Who writes: this library and its version."""
    from turnwal import __version__  # noqa: PLC0415 - the package imports this module

    return {"name": "turnwal", "version": __version__}
