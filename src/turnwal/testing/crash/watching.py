"""Sessions that pass a point around each durable write and inside each tool's body, and leave marks there.

Bodies are those that turnwal runs: `step.run`, `call.run`, `call.retry` and their asynchronous twins. A body that an
adapter runs itself, between `call.dispatch` and `call.result`, has a point before and behind it, where these two write.
"""

import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, cast

from turnwal.core.chain import Head, digest
from turnwal.session.handle import Handle
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.session.tools import Ready
from turnwal.store.protocol import Claim, Store
from turnwal.testing.crash.marks import Marks, What
from turnwal.testing.crash.points import Points
from turnwal.testing.fakes import START, FakeClock, FakeIds

WAIT_S: Final = 30.0
"""How long a session is waited for at least: a store may need a while to see that its last owner is dead."""

_HOUR_MS: Final = 3_600_000


class WatchedSessions(Sessions):
    """The sessions that an agent under test is given."""

    def __init__(self, store: Store, life: int, points: Points, marks: Marks, effects: Callable[[], object]) -> None:
        """Stand in front of a store; `life` counts from 0, so that no two lives give the same time and nonce."""
        super().__init__(
            cast("Store", _PointedStore(store, points, marks)),
            clock=FakeClock(START + life * _HOUR_MS),
            nonce=FakeIds(life),
            watch=Bodies(points, marks, effects).around,
        )

    def session(self, id: str, *, wait: float = 0.0, **options: Any) -> Session:
        """As `Sessions.session`, but patient."""
        return super().session(id, wait=max(wait, WAIT_S), **options)


class Bodies:
    """Runs tools with a point before and behind their effect."""

    def __init__(self, points: Points, marks: Marks, effects: Callable[[], object]) -> None:
        """`effects` says what the world shows."""
        self.points = points
        self.marks = marks
        self._effects = effects
        self._acting = 0
        """Bodies that run now and may change the world."""
        self._acts = 0
        """How many of them ever began."""
        self._mutex = threading.Lock()

    def around(self, call: Handle, ready: Ready) -> Callable[..., Any]:
        """The tool, watched."""

        def body(**arguments: Any) -> Any:
            watched = _Body(self, call, ready)
            watched.enter()
            try:
                value = ready.function(**arguments)
            except BaseException:
                watched.leave("raise")
                raise
            if inspect.isawaitable(value):
                return watched.awaited(value)
            watched.leave("leave")
            return value

        return body

    def look(self, *, read_only: bool) -> tuple[int, object] | None:
        """What the world shows before a body that should not change it, None where others may be changing it."""
        with self._mutex:
            acts, free = self._acts, not self._acting
            if not read_only:
                self._acts += 1
                self._acting += 1
        return (acts, self._effects()) if read_only and free else None

    def changed(self, before: tuple[int, object] | None, *, read_only: bool) -> bool:
        """Whether the world is another one behind a body that should not change it, and nobody else did that."""
        changed = before is not None and before[1] != self._effects()
        # counted behind the look at the world, in which another may have begun to act
        with self._mutex:
            if not read_only:
                self._acting -= 1
            return changed and before is not None and before[0] == self._acts


class _Body:
    """One body that runs."""

    def __init__(self, bodies: Bodies, call: Handle, ready: Ready) -> None:
        self._bodies = bodies
        self._call = call
        self._ready = ready
        self._name = ""
        self._before: tuple[int, object] | None = None

    def enter(self) -> None:
        # a function may serve several tools, so the point bears the name that the call has
        self._name = self._bodies.points.enter(self._call.name or "tool")
        self._before = self._bodies.look(read_only=self._ready.hints.read_only)
        self._mark("enter")

    def leave(self, how: What) -> None:
        if self._bodies.changed(self._before, read_only=self._ready.hints.read_only):
            self._mark("changed")
        self._mark(how)
        self._bodies.points.leave(self._name)

    async def awaited(self, value: Awaitable[Any]) -> Any:
        try:
            value = await value
        except BaseException:
            self.leave("raise")
            raise
        self.leave("leave")
        return value

    def _mark(self, what: What) -> None:
        hints = self._ready.hints
        self._bodies.marks.write(
            what,
            self._call.session_id,
            call=self._call.call_key,
            key=self._call.key,
            tool=self._call.name or "",
            arguments=self._call.arguments or "{}",
            read_only=hints.read_only,
            idempotent=hints.declared.get("idempotent", False),
            keyed=hints.keyed is not None,
        )


class _PointedClaim:
    """A claim with a point before and behind each write, and the mark of an acknowledgement behind the latter."""

    def __init__(self, claim: Claim, points: Points, marks: Marks) -> None:
        self._claim = claim
        self._points = points
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._claim, name)

    def append(self, lines: Sequence[bytes], after: Head) -> None:
        name = self._points.enter("write")
        self._claim.append(lines, after)
        if lines:
            count = after.count + len(lines)
            self._marks.write("ack", self._claim.session, count=count, hash=digest(lines[-1]))
        self._points.leave(name)


class _PointedStore:
    """A store whose claims have points; all else is its own."""

    def __init__(self, store: Store, points: Points, marks: Marks) -> None:
        self._store = store
        self._points = points
        self._marks = marks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, session: str, **options: Any) -> Claim:
        return cast("Claim", _PointedClaim(self._store.claim(session, **options), self._points, self._marks))
