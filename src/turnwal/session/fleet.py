"""Recovering a fleet: every interrupted session of a store whose owner is gone, and what is to be told of each.

Promises:
- One bad session ends no run: whatever is wrong with it is told, and the next one follows.
- Any number of runs at once, on any number of machines, recover each session once. Whoever comes second finds nothing
  to do, and that is no failure.
- A session is recovered by one batch or not at all, so a run may be stopped or killed anywhere and begun again.
- Where the store has an index of open turns, sessions that it does not name cost nothing. Memory does not grow with
  the number of sessions, apart from the names of those that are held.

Does not: decide whether a lost call is made again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from turnwal.core.errors import (
    CallNotFound,
    Damaged,
    DamagedStart,
    HeadMismatch,
    InvalidName,
    OwnershipLost,
    SessionHeld,
    TurnwalError,
)
from turnwal.core.recovery import Plan, Repair
from turnwal.core.rules import UNKNOWN
from turnwal.session.fleet_report import LostCall, Recovery, named
from turnwal.session.lookup import Found, find, packed_key
from turnwal.store.plain import PlainFile
from turnwal.store.protocol import Store

if TYPE_CHECKING:
    from concurrent.futures import Future

    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions

_WORKERS: Final = 8
"""Sessions recovered at a time where each waits for a server: no more than a store keeps connections."""

_WINDOW: Final = 4
"""For each worker so many sessions are under way or wait to be told: a slow one holds up the telling, not the work."""

_POLL_S: Final = 0.1
_GRACE_S: Final = 2.0
"""How long after the first look a session that is held is looked at again. Another run may hold it for a moment, and
until it has said so, what is told of its holder is what the last one said."""

_RUN_GRACE_S: Final = 12.0
"""The same where another run says that it holds it: longer than a lease lasts, should that run be dead."""

RECOVERER: Final = "turnwal recovery"
"""What a run calls itself to those it keeps out. It decides how long others look again, and nothing else."""


class Member(NamedTuple):
    """One session of a fleet."""

    sessions: "Sessions"
    id: str
    name: str
    """What a person calls it: its id, or the path of a file whose id nobody knows."""


def members(sessions: "Sessions", *, interrupted: bool = False) -> Iterator[Member]:
    """Each session of a store, files whose id nobody knows included.

    With `interrupted`, a store that has an index of open turns yields what that names, and no more.
    """
    indexed: Callable[[], Iterator[str]] | None = getattr(sessions.store, "interrupted", None) if interrupted else None
    for id in sessions if indexed is None else indexed():
        yield Member(sessions, id, id)
    strays: Callable[[], Iterator[str]] | None = getattr(sessions.store, "strays", None)
    if strays is not None:
        for path in strays():
            file = PlainFile(path)
            yield Member(sessions.beside(file), file.session, path)


def recover_all(
    fleet: Iterable[Member],
    *,
    accept_loss: bool = False,
    wait: float = 0.0,
    owner: str = RECOVERER,
    workers: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Recovery]:
    """Recover what is interrupted, `workers` at a time, and yield what became of each, in the order they came.

    Those that are held are looked at again at the end, for `wait` seconds in all and for two seconds at least, and come
    last. Once `stop` says so no further one is begun. Raises what the iterable raises, after everything begun before
    was yielded.
    """

    def attempt(member: Member) -> Recovery | None:
        return None if stop() else _recover(member, accept_loss=accept_loss, owner=owner)

    held: dict[Member, tuple[Recovery, float]] = {}
    for member, recovery in _in_order(attempt, _until(stop, fleet), workers):
        if recovery.outcome == "alive":
            held[member] = recovery, time.monotonic()
        else:
            yield recovery
    ended = time.monotonic()
    while held and not stop():
        for member, again in _in_order(attempt, iter(list(held)), workers):
            if again.outcome == "alive":
                held[member] = again, held[member][1]
                continue
            del held[member]
            yield replace(again, outcome="elsewhere") if again.outcome == "nothing_to_do" else again
        now = time.monotonic()
        if all(now >= max(ended + wait, since + _grace(recovery)) for recovery, since in held.values()):
            break
        time.sleep(_POLL_S)
    for recovery, _ in held.values():
        yield recovery


def workers_for(store: Store) -> int:
    """How many sessions of a store to recover at a time.

    Several only where each waits for a network. Beside a disk of its own, what recovery costs is Python, and threads
    made it slower.
    """
    return _WORKERS if store.kind == "postgresql" else 1


def _recover(member: Member, *, accept_loss: bool, owner: str) -> Recovery:
    """Recover one session if it needs that; whatever goes wrong is in the answer."""
    name = member.name
    try:
        return _attempt(member, accept_loss=accept_loss, owner=owner)
    except SessionHeld as error:
        return Recovery(name, "alive", holder=error.holder)
    except OwnershipLost as error:
        return Recovery(name, "alive", holder=error.message)
    except (Damaged, DamagedStart, HeadMismatch) as error:
        return Recovery(name, "damaged", error=named(error, name))
    except TurnwalError as error:
        return Recovery(name, "failed", error=named(error, name))
    except Exception as error:  # noqa: BLE001 - one session that is odd in a way nobody foresaw must not end the run
        return Recovery(name, "failed", error=error)


def _attempt(member: Member, *, accept_loss: bool, owner: str) -> Recovery:
    """Look first, and own only what needs it: looking disturbs nobody."""
    sessions, id, name = member
    seen = sessions.glance(id)
    if seen.state == "open":
        # of an owner that has no turn open there is nothing to tell: nothing waits to be recovered
        return Recovery(name, "alive" if seen.turns else "nothing_to_do", holder=seen.owner or "")
    if seen.state in ("clean", "waiting", "empty"):
        return Recovery(name, "nothing_to_do")
    with sessions.session(id, create=False, accept_loss=accept_loss, owner=owner) as session:
        planned = session.recovered
        if planned is None:
            return Recovery(name, "nothing_to_do")
        turns = sum(repair.type == "turn_end" for repair in planned.repairs)
        calls = tuple(_lost_calls(sessions.store, session, planned))
        return Recovery(name, "recovered", str(session.head), turns, calls)


def _lost_calls(store: Store, session: "Session", planned: Plan) -> Iterator[LostCall]:
    for repair in planned.repairs:
        if repair.type == "tool_result":
            yield _answered(repair)
        elif repair.type == "tool_outcome":
            yield _left_open(_found(store, session, repair.data["call"]), repair)


def _answered(repair: Repair) -> LostCall:
    data, metadata = repair.data, repair.data["metadata"]
    child = metadata.get("child")
    return LostCall(
        call=data["call"],
        id=data["id"],
        name=data.get("name"),
        run=repair.run,
        risk=metadata["risk"],
        basis=metadata.get("basis"),
        retry=metadata["retry"],
        rule=repair.rule,
        because=repair.because,
        key=metadata.get("key"),
        child=child["session"] if isinstance(child, dict) and isinstance(child.get("session"), str) else None,
    )


def _found(store: Store, session: "Session", call: str) -> Found | None:
    """What the log says of a call; None where it does not say."""
    try:
        key, head = packed_key(call, session.id), session.head
        return find(store, session.id, [key], head).found(head).get(key)
    except (CallNotFound, Damaged, InvalidName):
        return None


def _left_open(found: Found | None, repair: Repair) -> LostCall:
    """A repeated dispatch; the call had its result before, which said how it may be repeated."""
    data = repair.data
    metadata = None if found is None or found.result is None else found.result.data.get("metadata")
    advice = metadata.get("retry") if isinstance(metadata, dict) else None
    return LostCall(
        call=data["call"],
        id=data["id"],
        name=None if found is None else found.name,
        run=repair.run,
        risk=UNKNOWN,
        basis=None,
        # "safe" was said of a dispatch that had not begun; this one had
        retry=advice if advice in ("same_arguments", "same_key") else "verify_first",
        rule=repair.rule,
        because=repair.because,
        attempt=data["attempt"],
        key=None if found is None else found.idempotency_key or None,
    )


def _in_order(
    work: Callable[[Member], Recovery | None], fleet: Iterator[Member], workers: int
) -> Iterator[tuple[Member, Recovery]]:
    """What becomes of each member, in their order, worked on by threads; what was left out is not in it."""
    if workers == 1:
        for member in fleet:
            alone = work(member)
            if alone is not None:
                yield member, alone
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only a fleet pays for it

    under_way: deque[tuple[Member, Future[Recovery | None]]] = deque()
    failure: Exception | None = None
    ended = False
    pool = ThreadPoolExecutor(workers, thread_name_prefix="turnwal-recovery")
    try:
        while under_way or not ended:
            if not ended and len(under_way) < workers * _WINDOW:
                try:
                    candidate = next(fleet, None)
                except Exception as error:  # noqa: BLE001 - raised again when everything begun was told
                    candidate, failure = None, error
                if candidate is None:
                    ended = True
                else:
                    under_way.append((candidate, pool.submit(work, candidate)))
                continue
            done, future = under_way.popleft()
            recovery = future.result()
            if recovery is not None:
                yield done, recovery
    finally:
        pool.shutdown(cancel_futures=True)
    if failure is not None:
        raise failure


def _until(stop: Callable[[], bool], fleet: Iterable[Member]) -> Iterator[Member]:
    for member in fleet:
        if stop():
            return
        yield member


def _grace(recovery: Recovery) -> float:
    return _RUN_GRACE_S if recovery.holder.startswith(RECOVERER) else _GRACE_S
