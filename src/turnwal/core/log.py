"""A log in memory: an append-only, hash-chained sequence of events.

Promises:
- An append that raises changed nothing.
- `lines()` are the bytes that every store would keep for this history.
- It checks validity, not pairing: a log may hold oddities. A session's verbs refuse to make them.

Does not: read a clock. Without a time, an event repeats the time of the one before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

from msgspec import UNSET

from turnwal.core.chain import EMPTY, Head, admit, after
from turnwal.core.errors import Damaged, InvalidEvent, InvalidName
from turnwal.core.limits import RUN_CHARS_MAX, TIME_MS_MAX
from turnwal.core.line import Event, Unreadable, make
from turnwal.core.replacing import check_replace
from turnwal.core.surface import Surface
from turnwal.core.types import IGNORABLE, TYPES, check_data


class Log:
    """Events from seq 0 on. May begin with anything; a stored session always begins with `session_start`."""

    def __init__(self) -> None:
        """Begin with no event."""
        self._events: list[Event] = []
        self._lines: list[bytes] = []
        self._head = EMPTY
        self._surfaces: dict[str, tuple[int, Surface]] = {}

    @classmethod
    def read(cls, lines: Iterable[bytes]) -> Self:
        """Return the log of these lines. Raises `Damaged` at the first one that does not follow from those before."""
        log = cls()
        for number, line in enumerate(lines):
            try:
                event = admit(line, log._head)
            except Unreadable as error:
                message = f"line {number} {error.reason}"
                raise Damaged(
                    message, action="read", subject="log", hint="`turnwal verify` shows what can be read"
                ) from None
            log._take(event, line)
        return log

    def append(
        self, type: str, data: Mapping[str, Any], *, run: str = "main", time: int | None = None, ignorable: bool = False
    ) -> Event:
        """Append one event and return it as a reader would get it.

        `time` is Unix milliseconds; without it the last event's is repeated. Raises `InvalidEvent` or `OverLimit`,
        and then nothing has changed.
        """
        if time is None:
            time = self._events[-1].time if self._events else 0
        event = draft(type, data, run=run, time=time, ignorable=ignorable, head=self._head)
        if event.data.get("replace") is not None and type in TYPES:
            check_replace(self._events, type, event.data, run)
        line, made = make(event)
        self._take(made, line)
        return made

    def _take(self, event: Event, line: bytes) -> None:
        self._head = after(line, event)
        self._events.append(event)
        self._lines.append(line)

    @property
    def events(self) -> Sequence[Event]:
        """All events, in order."""
        return tuple(self._events)

    def since(self, seq: int) -> Sequence[Event]:
        """The events from `seq` on. Costs what it returns."""
        start = max(seq, 0)
        if self._events and self._events[-1].seq != len(self._events) - 1:
            start = next((index for index, event in enumerate(self._events) if event.seq >= seq), len(self._events))
        return tuple(self._events[start:])

    @property
    def head(self) -> Head:
        """Event count and hash of the last line."""
        return self._head

    def lines(self) -> Iterator[bytes]:
        """The bytes of each line, without its newline."""
        return iter(tuple(self._lines))

    def surface(self, run: str = "main") -> Sequence[Event]:
        """The events of a run that a model sees, in the order it sees them."""
        seen, surface = self._surfaces.get(run, (0, Surface()))
        for event in self._events[seen:]:
            if event.run == run:
                surface.add(event)
        self._surfaces[run] = (len(self._events), surface)
        return tuple(surface)

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._events)

    def __bool__(self) -> bool:
        """Always true: an empty log is a log."""
        return True

    def __iter__(self) -> Iterator[Event]:
        """The events there are now, in order."""
        return iter(tuple(self._events))


def draft(
    type: str, data: Mapping[str, Any], *, run: str, time: int, ignorable: bool, head: Head, batch: int | None = None
) -> Event:
    """The event that would come after `head`, checked but not yet copied. Raises `InvalidEvent` or `InvalidName`."""
    # the usual, by exact classes; what differs is looked at more closely
    if type.__class__ is not str or data.__class__ is not dict or time.__class__ is not int or abs(time) > TIME_MS_MAX:
        _check_envelope(type, data, time)
    if run != "main":
        check_run(run)
    check_data(type, data)
    if type in TYPES:
        if ignorable and type not in IGNORABLE:
            message = "a core type says itself whether it may be skipped"
            raise InvalidEvent(message, action="append", subject=type, hint="leave `ignorable` out")
        ignorable = type in IGNORABLE
    return Event(
        seq=head.count,
        prev=head.hash,
        time=time,
        type=type,
        run=run,
        batch=UNSET if batch is None else batch,
        ignorable=bool(ignorable),
        data=cast("dict[str, Any]", data),
    )


def _check_envelope(type: object, data: object, time: object) -> None:
    if not isinstance(type, str):
        message = f"the type is a {type.__class__.__name__}, not text"
        raise InvalidEvent(message, action="append", hint="the event types are listed in docs/format.md")
    if not isinstance(data, dict):
        message = f"data is a {data.__class__.__name__}, not a dict"
        raise InvalidEvent(message, action="append", subject=type, hint="pass a dict with text keys")
    if not isinstance(time, int) or isinstance(time, bool) or abs(time) > TIME_MS_MAX:
        message = f"the time {time!r:.40} is not an integer of Unix milliseconds"
        raise InvalidEvent(message, action="append", subject=type, hint="pass int(seconds * 1000)")


def check_run(run: object) -> None:
    """Return if `run` names a run; raise `InvalidName` otherwise."""
    if isinstance(run, str) and 0 < len(run) <= RUN_CHARS_MAX:
        return
    message = f"{run!r:.80} is no name of a run"
    raise InvalidName(message, action="append", hint=f"a run is text of 1 to {RUN_CHARS_MAX} characters")
