"""A fixed piece of work on a disk that fails, and what it says of what it heard.

It is the work of the kills: turns of all kinds, a copy, the session opened anew. Where it is refused, it tries to go
on with the handle it has, which a failed write must have closed, and says whether it could.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

from tests.crash.calls import Fixed
from tests.crash.marks import Marks
from tests.crash.places import Place
from turnwal.core.errors import TurnwalError
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions
from turnwal.store.protocol import Store

KINDS: Final = ("serial", "by_halves", "sub_run", "by_hand")
AGAIN: Final = "x.again"


class Faulty(Fixed):
    """The work, on a store whose disk fails."""

    def __init__(self, place: Place, session: str, make: Callable[[], Store], kinds: Sequence[str] = KINDS) -> None:
        super().__init__(place, session, kinds)
        self._make = make
        self.heard = Marks(place.root / f"{session}.heard")

    def go(self) -> None:
        """Do the work as far as it goes."""
        try:
            with closing(Sessions(self._make())) as sessions:
                with sessions.session(self.id) as session:
                    self._turns(session)
                self._copy(sessions)
            with closing(Sessions(self._make())) as sessions, sessions.session(self.id) as session:
                self._turns(session, self.kinds[:1])
        except TurnwalError as error:
            self._hear(error)

    def _copy(self, sessions: Sessions) -> None:
        sessions.take_in(f"{self.id}-copy", sessions.export(self.id))

    def _turns(self, session: Session, kinds: Sequence[str] | None = None) -> None:
        try:
            for kind in kinds or self.kinds:
                getattr(self, kind)(session)
        except TurnwalError as error:
            self._hear(error, again=self._goes_on(session))
            raise

    def _goes_on(self, session: Session) -> bool:
        """Whether more is acknowledged on the handle that has just failed."""
        try:
            session.append(AGAIN, {})
            session.flush()
        except TurnwalError:
            return False
        return True

    def _hear(self, error: TurnwalError, **more: Any) -> None:
        self.heard.write(json.dumps({"code": error.code, "said": str(error), **more}))
