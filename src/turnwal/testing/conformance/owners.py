"""One owner at a time, and none that outstays."""

import os
import threading
import time
import warnings
from contextlib import closing
from typing import Final

from turnwal.core.chain import EMPTY
from turnwal.core.errors import OwnershipLost, SessionHeld
from turnwal.store.protocol import Claim, Store
from turnwal.testing.conformance.kit import Check, NotConforming, Storage, check_in, refused, require, same
from turnwal.testing.conformance.material import claimed, grow, lines_of, new_log, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


@_check
def _a_second_owner_is_refused(storage: Storage) -> None:
    """At once, with the first one's own description; other sessions are free."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        claim = store.claim("s", owner="the first of two")
        for door in (store, other):
            try:
                door.claim("s", owner="the second").release()
            except SessionHeld as error:
                require("the first of two" in error.holder, f"the holder is described as {error.holder!r}")
            else:
                raise NotConforming("a second owner was let in")
            owner = door.probe("s").owner
            require(owner is not None and "the first of two" in owner, f"the owner is described as {owner!r}")
        other.claim("t").release()
        claim.append(lines_of(new_log()), EMPTY)
        claim.release()
        same(other.probe("s").owner, None, "the owner of a session that was given up")


@_check
def _a_released_session_can_be_claimed(storage: Storage) -> None:
    """Releasing twice is releasing once, and does not release what somebody else claimed since."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        first = store.claim("s")
        first.release()
        first.release()
        second = other.claim("s")
        first.release()
        refused("an owner beside one whose predecessor released twice", SessionHeld, lambda: store.claim("s"))
        second.release()


@_check
def _closing_a_store_releases_its_claims(storage: Storage) -> None:
    """And a closed door holds nobody up."""
    store = storage.open()
    held = store.claim("s")
    store.close()
    store.close()
    with claimed(storage):
        refused("an append through a closed door", OwnershipLost, lambda: held.append(lines_of(new_log()), EMPTY))


@_check
def _a_stale_owner_is_refused(storage: Storage) -> None:
    """An owner that is one no more is refused however late it wakes, also where its head still fits."""
    log = new_log()
    with closing(storage.open()) as store, closing(storage.open()) as other:
        stale = store.claim("s")
        stale.append(lines_of(log), EMPTY)
        stale.release()
        head, start = log.head, len(log)
        grow(log)
        refused("an owner that gave the session up", OwnershipLost, lambda: stale.append(lines_of(log, start), head))
        fresh = other.claim("s")
        refused("an owner beside its successor", OwnershipLost, lambda: stale.append(lines_of(log, start), head))
        fresh.append(lines_of(log, start), head)
        refused("an owner behind its successor", OwnershipLost, lambda: stale.append(lines_of(log, start), head))
        same(stored(other), lines_of(log), "the lines read")
        fresh.release()


@_check
def _waiting_ends_when_the_owner_does(storage: Storage) -> None:
    """`wait` is how long a claim may take; it is granted as soon as the holder ends."""
    with closing(storage.open()) as store, closing(storage.open()) as other:
        claim = store.claim("s")
        started = time.monotonic()
        refused("an owner that waited in vain", SessionHeld, lambda: other.claim("s", wait=0.3))
        require(time.monotonic() - started >= 0.3, "a claim gave up before the time it was given")  # noqa: PLR2004
        timer = threading.Timer(0.2, claim.release)
        timer.start()
        other.claim("s", wait=30).release()
        timer.join()


@_check
def _of_many_claims_at_once_one_is_granted(storage: Storage) -> None:
    """Threads with a store of their own each, started together."""
    doors = [storage.open() for _ in range(8)]
    start, done = threading.Barrier(len(doors)), threading.Barrier(len(doors))
    granted: list[Claim] = []

    def contend(door: Store) -> None:
        start.wait()
        try:
            granted.append(door.claim("s"))
        except SessionHeld:
            pass
        finally:
            done.wait()

    threads = [threading.Thread(target=contend, args=(door,)) for door in doors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for door in doors:
        door.close()
    same(len(granted), 1, "the owners of one session")


@_check
def _a_forked_child_is_refused(storage: Storage) -> None:
    """A claim belongs to the process that made it; the child's copy is dead, and the parent's lives."""
    if not hasattr(os, "fork"):
        return
    log = new_log()
    with claimed(storage) as (store, claim):
        claim.append(lines_of(log), EMPTY)
        head, start = log.head, len(log)
        grow(log)
        with warnings.catch_warnings():
            # newer Pythons warn of threads that the child lacks; this child needs none
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            status = 1
            try:
                claim.append(lines_of(log, start), head)
            except OwnershipLost:
                claim.release()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        same(os.waitstatus_to_exitcode(status), 0, "the exit of a forked child that was to be refused")
        claim.append(lines_of(log, start), head)
        same(stored(store), lines_of(log), "the lines read")
