"""A reply as it streams in: the provider's chunks pass through, and what they make together is recorded.

Promises:
- The message is recorded once, when the stream ends, or with what came so far when it raises, is closed, or is left
  and the step goes on without it. Whether it is complete is the provider's word: without its sign of an end it is not,
  and then its calls are never owed nor sent.
- With deltas, the text that is handed on is recorded in pieces as it comes, never with a barrier of its own.

Does not: hold the chunks back, or change them.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from turnwal.core.errors import InvalidEvent, OverLimit, SessionClosed
from turnwal.transcript.parsing import parse, shown
from turnwal.transcript.plain import plain

if TYPE_CHECKING:
    from turnwal.session.exchange import Exchange
    from turnwal.session.session import Session

Chunk = TypeVar("Chunk")

_DELTA_CHARS: Final = 300
"""How much text is joined to one delta: an event costs more than the text of one token."""


class Stream(Generic[Chunk]):
    """An iterator over the chunks, sync or async as they are, and a block that closes it."""

    def __init__(
        self,
        session: "Session",
        exchange: "Exchange",
        chunks: Iterable[Chunk] | AsyncIterable[Chunk],
        *,
        target: str | None,
        deltas: bool,
    ) -> None:
        """Prepare; nothing is read or written. Raises `InvalidEvent` for what is no stream."""
        if not hasattr(chunks, "__iter__") and not hasattr(chunks, "__aiter__"):
            raise InvalidEvent(
                f"a {type(chunks).__name__} is no stream",
                action="stream",
                subject="assistant_message",
                hint="pass what the provider's package returns for a stream; a whole reply is `step.assistant(reply)`",
            )
        self._session = session
        self._exchange = exchange
        self._chunks = chunks
        self._source: Any = None
        self._target = target
        self._came: list[Any] = []
        """What came, as data."""
        self._deltas = _Deltas(session, exchange) if deltas else None
        self._seq: int | None = None
        """The seq of the message, once it is to be recorded."""
        self._ended = False
        """Nothing more will come."""
        self._left = False
        """The step has gone on."""

    @property
    def run(self) -> str:
        """The run whose reply this is."""
        return self._exchange.turn.run_name

    def __iter__(self) -> Iterator[Chunk]:
        """The stream itself."""
        return self

    def __next__(self) -> Chunk:
        """The next chunk. Raises what the provider's stream raises, when what came so far is recorded."""
        self._check_going(StopIteration)
        try:
            if self._deltas is not None:
                self._session.make_room()
            if self._source is None:
                self._source = iter(cast("Iterable[Chunk]", self._chunks))
            chunk = next(self._source)
            self._take(chunk)
        except StopIteration:
            self._end()
            raise
        except BaseException:
            self._cut_off()
            raise
        return cast("Chunk", chunk)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """The stream itself."""
        return self

    async def __anext__(self) -> Chunk:
        """As `__next__`, for a stream that is asynchronous itself."""
        self._check_going(StopAsyncIteration)
        try:
            if self._deltas is not None:
                await self._make_room()
            if self._source is None:
                self._source = aiter(cast("AsyncIterable[Chunk]", self._chunks))
            chunk = await anext(self._source)
            self._take(chunk)
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException:
            self._cut_off()
            raise
        return cast("Chunk", chunk)

    def close(self) -> None:
        """Record what came, and close the provider's stream where that is done without waiting; idempotent."""
        self._end()
        if not hasattr(self._chunks, "__aiter__"):
            _call(self._chunks, "close")

    async def aclose(self) -> None:
        """As `close`, for a stream that is asynchronous itself."""
        self._end()
        waited = _call(self._chunks, "aclose", "close")
        if hasattr(waited, "__await__"):
            await waited

    def __enter__(self) -> Self:
        """The stream itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. What cannot be recorded does not hide the exception that ended the block."""
        if kind is None:
            self.close()
        else:
            with suppress(Exception):
                self.close()

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. What cannot be recorded does not hide the exception that ended the block."""
        if kind is None:
            await self.aclose()
        else:
            with suppress(Exception):
                await self.aclose()

    def note_whole(self) -> None:
        """Record what came if the provider has said that it is all."""
        if self._came and self._target is not None and parse(self._target, self._came).get("complete") is not False:
            self._record()

    def leave(self) -> None:
        """Record what came: the step goes on without the rest."""
        self._left = not self._ended
        self._record()

    # Inside

    def _check_going(self, end: type[StopIteration | StopAsyncIteration]) -> None:
        if self._ended:
            raise end
        if self._left:
            raise SessionClosed(
                "the step went on before the stream ended",
                action="stream",
                hint="read a stream to its end, then record another reply or end the step",
            )

    def _take(self, chunk: Chunk) -> None:
        if self._target is None:
            self._target = self._exchange.target_of(chunk)
        data = plain(chunk)
        self._came.append(data)
        if self._deltas is not None:
            for place, text in shown(self._target, data):
                self._deltas.add(place, text)

    def _end(self) -> None:
        self._ended = True
        self._record()

    def _cut_off(self) -> None:
        with suppress(Exception):  # the caller hears of what ended the stream
            self._end()

    def _record(self) -> None:
        """Append the message, once; where nothing came there is none."""
        if not self._came or self._target is None:
            return
        session = self._session
        with session.order:
            if self._seq is not None and session.next_seq > self._seq:
                return
            data = parse(self._target, self._came)
            self._seq = session.next_seq
            self._exchange.note(data)

    async def _make_room(self) -> None:
        try:
            self._session.make_room()
        except OverLimit:
            await self._session.aflush()


class _Deltas:
    """The text of a reply while it comes, recorded in pieces."""

    def __init__(self, session: "Session", exchange: "Exchange") -> None:
        self._session = session
        self._exchange = exchange
        self._places: list[object] = []
        """Where the provider has texts, in the order in which they began."""
        self._index = 0
        self._text: list[str] = []

    def add(self, place: object, text: str) -> None:
        """Take in text of one place of the reply."""
        if place not in self._places:
            self._places.append(place)
        index = self._places.index(place)
        if index != self._index:
            self._note()
            self._index = index
        self._text.append(text)
        if sum(map(len, self._text)) >= _DELTA_CHARS:
            self._note()

    def _note(self) -> None:
        text, self._text = "".join(self._text), []
        if text:
            data = {"step": self._exchange.number, "index": self._index, "text": text}
            self._session.note("assistant_delta", data, run=self._exchange.turn.run_name)


def _call(closable: object, *names: str) -> Any:
    """Call the first of these methods that there is."""
    for name in names:
        method = getattr(closable, name, None)
        if callable(method):
            return method()
    return None
