"""Whether a claim may append: what every store's claim says of itself before it touches the store.

Promises: a forked child, a claim that was released and one that lost its session are refused with `OwnershipLost`; one
whose last append came to no known end is refused with `ClosedAfterFailure`. The same words whatever the store.

Does not: know who else owns the session. The store checks that where it writes.
"""

import os

from turnwal.core.errors import ClosedAfterFailure, OwnershipLost


class Standing:
    """What a claim knows of itself. Set `in_doubt` before the first byte is written, and clear it when all is known."""

    __slots__ = ("_lost", "_pid", "in_doubt", "released", "session")

    def __init__(self, session: str) -> None:
        """Begin as the owner of a session, in this process."""
        self.session = session
        self.released = False
        self.in_doubt = False
        self._lost: tuple[str, str] | None = None
        self._pid = os.getpid()

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child, which has a copy of its parent's claim and owns nothing."""
        return self._pid != os.getpid()

    def check_process(self) -> None:
        """Return in the process that made the claim; raise `OwnershipLost` in a forked child."""
        if self._pid != os.getpid():
            raise self.loss("this process was forked from the owner", "open the session in the child by itself")

    def check(self) -> None:
        """Return if the claim may append; raise `OwnershipLost` or `ClosedAfterFailure` otherwise."""
        self.check_process()
        if self.released:
            raise self.loss("the claim was released", "claim the session again")
        if self._lost is not None:
            raise self.loss(*self._lost)
        if self.in_doubt:
            raise ClosedAfterFailure(
                "an earlier append failed and its outcome is unknown",
                action="append",
                subject=self.session,
                hint="open the session anew; recovery describes what is there",
            )

    def lose(self, reason: str, hint: str = "open the session anew") -> OwnershipLost:
        """Have lost the session from now on; return the error that says so."""
        self._lost = (reason, hint)
        return self.loss(reason, hint)

    def loss(self, reason: str, hint: str = "open the session anew") -> OwnershipLost:
        """The error for a claim that is no ownership any more."""
        return OwnershipLost(reason, action="append", subject=self.session, hint=hint)
