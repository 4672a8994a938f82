"""Reading a session that is open for writing: its events, what a model sees, and what becomes durable."""

from collections.abc import Iterator

from turnwal.core.chain import Head
from turnwal.core.line import Event
from turnwal.core.surface import Surface
from turnwal.session.opening import damaged
from turnwal.session.past import believed
from turnwal.session.settings import Settings
from turnwal.session.subscription import Subscription
from turnwal.session.writing import Writing
from turnwal.store.protocol import Record, Store


class Reading(Writing):
    """The verbs that look."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare; nothing is read until it is asked for."""
        super().__init__(store, id, settings)
        self._surfaces: dict[str, Surface] | None = None

    def events(self, since: int = 0) -> Iterator[Event]:
        """Yield the events from a seq on, read from the store; what is pending is made durable first.

        Raises `Damaged` where stored bytes are lost, unless the session was opened with `accept_loss`.
        """
        if not self.closed:
            self.flush()
        yield from (event for event in self._stored() if event.seq >= since)

    def __iter__(self) -> Iterator[Event]:
        """All events in order."""
        return self.events()

    def surface(self, run: str = "main") -> list[Event]:
        """The events of a run that a model sees, in the order it sees them. Raises `Damaged` where some are lost."""
        with self.order:
            if self._surfaces is None:
                surfaces: dict[str, Surface] = {}
                for event in self._recorded():
                    surfaces.setdefault(event.run, Surface()).add(event)
                self._surfaces = surfaces
            return list(self._surfaces.get(run, ()))

    def subscribe(self, since: int | None = None) -> Subscription:
        """Return an iterator, sync and async, over every event from now on, or from a seq on, once it is durable.

        Iterating raises `Damaged` where `events` does.
        """
        start = self._live.durable.count if since is None else since
        return Subscription(self._live, self._store, self.id, start, accept_loss=self._settings.accept_loss)

    def _feed_surfaces(self, event: Event) -> None:
        if self._surfaces is not None:
            self._surfaces.setdefault(event.run, Surface()).add(event)

    def _stored(self, position: int = 0, after: Head | None = None) -> Iterator[Event]:
        """The stored events from a position on. Raises `Damaged` where bytes of what is durable are lost.

        Where the loss is accepted, every readable event is yielded, in the order of their seqs.
        """
        # what another thread is writing meanwhile is not there yet, and is no damage
        durable = None if self._journal is None else self._journal.durable
        lossy = self._settings.accept_loss
        seq = -1 if after is None else after.count - 1
        items = self._store.read(self.id, position, after=after, past_damage=lossy)
        for item in believed(items, durable) if lossy else items:
            if isinstance(item, Record):
                if item.event.seq > seq:
                    seq = item.event.seq
                    yield item.event
            elif not lossy and (item.corrupt if durable is None else item.after + 1 < durable.count):
                raise damaged(self.id, item, action="read")

    def _recorded(self, position: int = 0, after: Head | None = None) -> Iterator[Event]:
        """The events from a position on, durable or not.

        Hold `order`. Waits for no barrier, which another thread may be in: what that makes durable meanwhile is read
        once, wherever it is met first.
        """
        seq = -1 if after is None else after.count - 1
        for event in self._stored(position, after):
            seq = event.seq
            yield event
        yield from (event for event in self._live.newest() if event.seq > seq)
