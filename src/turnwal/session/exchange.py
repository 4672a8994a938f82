"""What a step asks a model, and what the model replies.

Promises:
- A request is what the session renders: everything that it shows is durable before the caller has it (F14). The
  step's beginning saw to that; only what came since is waited for, and the header that is recorded of a request rides
  the next barrier, since the model never sees it.
- A reply is recorded as it came, and an interrupted one as far as it came.
"""

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from turnwal.core import values
from turnwal.core.calls import Step as OpenStep
from turnwal.core.errors import InvalidEvent, SessionClosed
from turnwal.core.types import SURFACE
from turnwal.session.call import Call
from turnwal.session.header import header
from turnwal.session.heeding import Heed, check_heed, heed_all
from turnwal.session.reply import note_reply
from turnwal.session.streaming import Stream
from turnwal.transcript.check import check as check_messages
from turnwal.transcript.comparing import Difference
from turnwal.transcript.conversation import Outcomes, Waiting
from turnwal.transcript.parsing import parse
from turnwal.transcript.recognising import target_of
from turnwal.transcript.requesting import request as make_request

if TYPE_CHECKING:
    from turnwal.session.session import Session
    from turnwal.session.turn import Turn

_PAUSES: Final = frozenset({"pause", "pause_turn"})
"""Stop reasons after which the provider wants the same request again (Anthropic: `pause_turn`)."""

_GIVEN_UP: Final = frozenset({"max_output_tokens", "content_filter", "failed", "cancelled", "error"})
"""Stop reasons of incomplete replies that the provider itself ended (OpenAI Responses, Mistral): it has said no more to
come, so asking again is for the application to decide."""


class Exchange:
    """The verbs of a step that speak with a model."""

    def __init__(self, session: "Session", turn: "Turn") -> None:
        """Prepare; nothing is written."""
        self.turn = turn
        self._session = session
        self.number = 0
        """Counts the steps of the turn, from 1."""
        self._asked: tuple[str, str] | None = None
        """Target and model of the newest request."""
        self._calls: list[Call] = []
        self._stream: Stream[Any] | None = None

    @property
    def state(self) -> OpenStep | None:
        """The step as the log has it, or None when it is not open there."""
        raise NotImplementedError

    # Asking

    def request(
        self,
        target: str,
        *,
        model: str,
        tools: Sequence[Any] | None = None,
        check: Heed = "off",
        waiting: Waiting = "refuse",
        outcomes: Outcomes = "note",
        partial: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        """Return the keyword arguments of one call of the provider's own client, and record a `request_header`.

        `tools` are the provider's own; `settings` go to the client as they are. `waiting`, `outcomes` and `partial` are
        those of `session.render`. With `check` the request is looked at as `turnwal.check` does: `warn` is a
        `TranscriptWarning`, `strict` a refusal. Raises `Refused` for that, for calls that wait, and for a setting that
        the rendering itself gives; nothing is recorded then.
        """
        options = {"waiting": waiting, "outcomes": outcomes, "partial": partial}
        self._session.make_room()
        made = self._note_request(target, model, tools, check, options, settings)
        if self._input_is_pending():
            self._session.flush()
        return made

    async def arequest(
        self,
        target: str,
        *,
        model: str,
        tools: Sequence[Any] | None = None,
        check: Heed = "off",
        waiting: Waiting = "refuse",
        outcomes: Outcomes = "note",
        partial: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        """As `request`, without stopping the event loop."""
        options = {"waiting": waiting, "outcomes": outcomes, "partial": partial}
        self._session.make_room()
        made = self._note_request(target, model, tools, check, options, settings)
        if self._input_is_pending():
            await self._session.aflush()
        return made

    def compare(self, target: str, messages: object, *, check: Heed = "warn", **options: Any) -> list[Difference]:
        """Compare what is about to be sent with what the session renders for the step's run; see `session.compare`."""
        return self._session.compare(target, messages, self.turn.run_name, check=check, **options)

    def _note_request(
        self,
        target: str,
        model: str,
        tools: Sequence[Any] | None,
        check: Heed,
        options: Mapping[str, Any],
        settings: dict[str, Any],
    ) -> dict[str, Any]:
        check_heed(check)
        session, run = self._session, self.turn.run_name
        self.settle()
        with session.order:
            self._check_open("ask")
            rendering = session.render(target, run, model=model, **options)
            made = make_request(target, rendering, model=model, tools=tools, settings=settings)
            if check != "off":
                problems = check_messages(target, rendering.messages, system=rendering.system)
                heed_all(
                    check,
                    [f"{problem.code} at {problem.position}: {problem.message}" for problem in problems],
                    action="request",
                    subject=target,
                    hint="please report it: turnwal renders only what the provider takes",
                )
            data = header(target, model, settings, tools, session.tools_told)
            session.note("request_header", data, run=run)
            if "tools" in data:
                session.tools_told.add(data["tools_digest"])
            self._asked = (target, model)
        return made

    def _input_is_pending(self) -> bool:
        """Whether the model would be shown what is not yet durable."""
        run = self.turn.run_name
        return any(event.type in SURFACE and event.run == run for event in self._session.pending())

    # Replying

    @property
    def calls(self) -> list[Call]:
        """The calls that the newest reply of the step asks for and that were not answered when it was recorded.

        While a reply streams in there are none; where the provider has said its end, the rest need not be read.
        """
        if self._stream is not None:
            self._stream.note_whole()
        return list(self._calls)

    def assistant(self, reply: object, *, target: str | None = None) -> list[Call]:
        """Append a reply and return the calls that it asks for and that are not yet answered.

        `reply` is the object of the provider's own package or its JSON as a dict (`target` names the provider where
        that does not say; Mistral's does not), or parts of your own, `{"parts": […], …}`.

        Never waits; the barrier before the first dispatch makes the message durable. A call equal to an earlier one of
        the step is that call (F07). Without a call, and unless the reply was cut off or is a pause, the turn is done.
        """
        self.settle()
        if target is None and isinstance(reply, dict) and "parts" in reply:
            return self.note(_own_data(reply))
        named = self.target_of(reply) if target is None else target
        return self.note(parse(named, reply))

    def stream(
        self, chunks: Iterable[Any] | AsyncIterable[Any], *, target: str | None = None, deltas: bool = False
    ) -> Stream[Any]:
        """Return an iterator over the chunks of a reply as they come, which records the message when they end.

        `chunks` is what the provider's own package returns for a stream, to be read with `for` or `async for`; `calls`
        has the calls then. A stream that raises, is closed or is left before its end is recorded as far as it came.
        With `deltas` the text is recorded while it comes, without a barrier, so that what another barrier made durable
        survives the process.
        """
        self.settle()
        with self._session.order:
            self._check_open("stream")
        self._calls = []
        self._stream = Stream(self._session, self, chunks, target=target, deltas=deltas)
        self._session.streams.append(self._stream)
        return self._stream

    def settle(self) -> None:
        """Record a stream that was left before its end, as far as it came."""
        stream, self._stream = self._stream, None
        if stream is None or stream not in self._session.streams:
            return
        try:
            stream.leave()
        finally:
            self._session.streams.remove(stream)

    # Inside

    def target_of(self, reply: object) -> str:
        """The target that made a reply, or a piece of one. Raises `InvalidEvent` where that cannot be told."""
        found = target_of(reply)
        # the replies of Mistral's API look like those of OpenAI's chat
        return "mistral" if found == "openai-chat" and self._asked and self._asked[0] == "mistral" else found

    def note(self, data: dict[str, Any]) -> list[Call]:
        """Append a reply; returns the calls that it asks for and that are not yet answered."""
        if self._asked is not None and self._asked[0] == data.get("provider"):
            asked_for = self._asked[1]
            # Bedrock's replies do not say who wrote them; of an alias, a deployment or a gateway they give another name
            if data.setdefault("model", asked_for) != asked_for:
                data["asked"] = asked_for
        with self._session.order:
            self._check_open("record")
            _, asked = note_reply(self._session, data, run=self.turn.run_name)
            complete, stop = data.get("complete") is not False, data.get("stop")
            if stop in _GIVEN_UP if not complete else not asked and stop not in _PAUSES:
                self.turn.stop()
            due = [call for call in asked if not call.answered and not call.dispatched] if complete else []
            self._calls = due
        return list(due)

    def _check_open(self, action: str) -> None:
        if self.state is None:
            raise SessionClosed("the step is not open", action=action, hint="`turn.step()` opens the next one")


def _own_data(message: dict[str, Any]) -> dict[str, Any]:
    """A reply in parts as the log keeps it: arguments as text, everything else as it came."""
    if not isinstance(message["parts"], list):
        raise InvalidEvent(
            "a reply is an object with a list of parts",
            action="append",
            subject="assistant_message",
            hint='pass {"parts": [{"type": "text", "content": …}, …]}',
        )
    parts = [dict(part) if isinstance(part, Mapping) else part for part in message["parts"]]
    for part in parts:
        if isinstance(part, dict) and part.get("type") == "tool_call" and part.get("format") != "text":
            part["arguments"] = values.arguments_of(part) or "{}"
    return {**message, "parts": parts}
