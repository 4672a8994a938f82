"""The conversation of one run: its surface with every call beside what answers it, before any provider's rules.

Promises:
- Each visible message once, in the order of the surface; what answers a call stands at the call, wherever it arrived
  (F09). Each call once, at the first message that asks for it (F07); each result once.
- A call without a visible result is answered here, by the text that recovery would write where it is owed, and as of
  unknown outcome where its turn has ended (F01, F12). Nothing of that is stored.
- Reading on costs what was read on: `messages` says from where on it changed.

Does not: know a provider.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from turnwal.core import keys, values
from turnwal.core.calls import Call
from turnwal.core.findings import Finding
from turnwal.core.line import Event
from turnwal.core.pairs import Pairs
from turnwal.core.recovery import answer
from turnwal.core.rules import UNKNOWN, Verdict, text_for_model
from turnwal.core.types import SURFACE
from turnwal.transcript.late import Late, is_failure, outcome_parts
from turnwal.transcript.message import Answer, Asked, Kind, Message
from turnwal.transcript.partial import Partial

Waiting = Literal["refuse", "placeholder"]
Outcomes = Literal["note", "replace"]

_KINDS: Final[Mapping[str, Kind]] = {
    "system_message": "system",
    "user_message": "user",
    "assistant_message": "assistant",
    "tool_outcome": "note",
}

WAITS: Final = "This call waits for an answer that has not come yet; it has not been answered."
"""What stands for the result of a waiting call, where a placeholder is asked for."""

_LOST: Final = text_for_model(Verdict(UNKNOWN, None, 9, ()), "verify_first", interrupted=False)


class Conversation:
    """What one run says to a model, growing with the log."""

    def __init__(self, run: str = "main", *, outcomes: Outcomes = "note", partial: bool = False) -> None:
        """Begin with nothing read.

        `outcomes` says whether a late outcome is a note, or replaces the earlier result. With `partial`, text that was
        shown and whose message never came is a message of its own.
        """
        self._pairs = Pairs(run)
        self._outcomes = outcomes
        self._partial = Partial(self._pairs.surface) if partial else None
        self._messages: list[tuple[Message, ...]] = []
        """By index on the surface: what is shown there; a result is shown by its call."""
        self._seqs: list[int] = []
        """The seq of each visible event, as far as `_messages` goes."""
        self._index: dict[int, int] = {}
        """The other way round."""
        self._dropped: dict[int, Finding] = {}
        """By index: why an event is not shown."""
        self._results: dict[int, int] = {}
        """By key: the seq of the newest event that answers the call. Its content may be large, and hidden by now."""
        self._late = Late()
        self._placed: dict[int, int] = {}
        """By key: the index of the message that shows the call."""
        self._open: dict[int, str] = {}
        """By key: the words that stand for the result of a shown call that may still get one."""
        self._unsent: dict[int, int] = {}
        """By key of a call of incomplete messages that was not handed over yet: the index of the first of them."""
        self._stale = 0
        self.models: dict[str, str] = {}
        """By provider: the model that wrote the newest message of it."""

    def feed(self, event: Event) -> None:
        """Take the next event of the log in."""
        changed = self._pairs.feed(event)
        if changed is not None:
            self._see(event)
            self._touch(changed)
        if self._partial is not None and event.run == self._pairs.run:
            self._touch(self._partial.feed(event, changed))

    def _see(self, event: Event) -> None:
        """Take what a visible event says of models and answers."""
        type = event.type
        if type == "assistant_message":
            provider, model = values.text_of(event.data, "provider"), values.text_of(event.data, "model")
            if provider is not None and model is not None:
                self.models[provider] = model
        elif type == "tool_result":
            for key in self._pairs.answers.get(event.seq, ()):
                self._results[key] = event.seq
                self._touch(self._placed.get(key))
        elif type == "tool_outcome" and self._outcomes == "replace":
            key = _key(event)
            if key in self._results and not values.is_synthetic(event.data):
                self._late.add(key, event.seq)
                self._touch(self._placed.get(key))

    def feed_all(self, events: Iterable[Event]) -> "Conversation":
        """Take events in, in order; returns the conversation itself."""
        feed = self.feed
        read = self._pairs.scan.feed if self._partial is None else feed
        for event in events:
            if event.type in SURFACE:
                feed(event)
            else:  # no model sees it: what it changes is in the scan alone
                read(event)
        return self

    @property
    def next_seq(self) -> int:
        """The seq of the first event that was not taken in."""
        return self._pairs.scan.last_seq + 1

    def messages(self) -> tuple[int, list[tuple[Message, ...]]]:
        """From which index on the messages changed since the last call, and all of them; the list is for reading.

        One entry for each visible event, empty for what is not shown by itself: a result, which its call shows, or
        what a finding names.
        """
        for key, words in self._open.items():
            if self._stand_in(key)[0] != words:
                self._touch(self._placed[key])
        for key, index in self._unsent.items():
            if self._was_handed_over(key):
                self._touch(index)
        self._miss()
        start, surface = min(self._stale, len(self._messages)), self._pairs.surface
        self._forget(start)
        events = surface[start:]
        seqs = [event.seq for event in events]
        self._seqs += seqs
        self._index.update(zip(seqs, range(start, len(self._seqs)), strict=True))
        for index, event in enumerate(events, start):
            message = self._message(index, event)
            shown = () if message is None else (message,)
            self._messages.append(shown if self._partial is None else (*shown, *self._partial.behind(index)))
        self._stale = len(self._messages)
        return start, self._messages

    def waiting(self) -> list[str]:
        """The keys of the shown calls that wait for an answer, in order."""
        return [keys.text(key) for key in sorted(self._open) if self._stand_in(key)[1]]

    def findings(self, index: int) -> list[Finding]:
        """What is not shown of the visible event at an index, or otherwise than it stands in the log, and why."""
        found = [self._dropped[index]] if index in self._dropped else []
        for message in self._messages[index]:
            found += message.findings
        return found

    def _touch(self, index: int | None) -> None:
        if index is not None and index < self._stale:
            self._stale = index

    def _miss(self) -> None:
        """Make the calls anew whose late outcome was shown and is hidden now."""
        told = {seq: key for seq in self._seqs[self._stale :] if (key := self._late.told_by(seq)) is not None}
        for event in self._pairs.surface[self._stale :] if told else ():
            told.pop(event.seq, None)
        for key in told.values():
            self._touch(self._placed.get(key))

    def _forget(self, start: int) -> None:
        for index in range(start, len(self._messages)):
            self._index.pop(self._seqs[index], None)
            self._dropped.pop(index, None)
            for message in self._messages[index]:
                for asked in message.calls.values():
                    del self._placed[asked.key]
                    self._open.pop(asked.key, None)
        for key in [key for key, index in self._unsent.items() if index >= start]:
            del self._unsent[key]
        del self._messages[start:]
        del self._seqs[start:]

    def _message(self, index: int, event: Event) -> Message | None:
        kind = _KINDS.get(event.type)
        if kind is None:
            self._note_result(index, event)
            return None
        if kind == "note" and (key := _key(event)) in self._placed and event.seq <= self._in_place(key):
            return None  # the call's answer says it, or what was learnt behind it
        parts = outcome_parts(event) if kind == "note" else _parts(event)
        if kind != "assistant":
            return Message(kind, event, parts)
        return self._assistant(index, event, parts)

    def _assistant(self, index: int, event: Event, parts: list[Mapping[str, Any]]) -> Message:
        complete = event.data.get("complete") is not False
        asks = self._pairs.asks.get(event.seq, {})
        calls: dict[int, Asked] = {}
        findings: list[Finding] = []
        if not complete:
            findings.append(
                Finding("incomplete_message", (event.seq,), "the message never completed; its text is sent")
            )
        for part_index, key in asks.items():
            if key in self._placed:
                first = self._pairs.surface[self._placed[key]].seq
                said = f"call {keys.text(key)} was asked for before; it is sent once"
                findings.append(Finding("duplicate_call", (first, event.seq), said))
                continue
            part = parts[part_index]
            if not complete and not self._was_handed_over(key):
                self._unsent.setdefault(key, index)  # the first of them shows the call once it is handed over
                continue
            self._placed[key] = index
            found, why = self._answer(key, event.seq)
            if why is not None:
                findings.append(why)
            calls[part_index] = Asked(
                key,
                part_index,
                values.id_of(part),
                values.name_of(part) or "",
                values.arguments_of(part) or "{}",
                part.get("format") == "text",
                found,
            )
        return Message("assistant", event, parts, calls, complete, tuple(findings))

    def _note_result(self, index: int, event: Event) -> None:
        """A result is shown by its call; note one that no visible call shows."""
        answered = self._pairs.answers.get(event.seq)
        if not answered:
            key = _key(event)
            if key in self._results:
                said = f"call {keys.text(key)} has a result already; the first is sent"
                self._dropped[index] = Finding("duplicate_result", (self._results[key], event.seq), said)
                return
            said = "it answers no call that could be answered there"
            self._dropped[index] = Finding("orphan_result", (event.seq,), said)
            return
        # a call may be asked for after its answer arrived, so the message that shows it need not be placed yet
        if not any(key in self._placed or keys.seq_of(key) in self._index for key in answered):
            said = f"no visible message asks for call {', '.join(map(keys.text, sorted(answered)))}"
            self._dropped[index] = Finding("orphan_result", (event.seq,), said)

    def _answer(self, key: int, seq: int) -> tuple[Answer, Finding | None]:
        result = self._visible(self._results.get(key))
        if result is not None:
            late = self._visible(self._in_place(key))
            if late is None:
                native = result.data.get("native")
                native = native if isinstance(native, dict) else None
                return Answer(result.seq, _parts(result), result.data.get("is_error") is True, native), None
            said = f"the outcome at seq {late.seq} stands in place of the result"
            found = Finding("outcome_in_place", (result.seq, late.seq), said)
            return Answer(late.seq, outcome_parts(late), is_failure(late)), found
        words, waits = self._stand_in(key)
        self._open[key] = words
        code = "waiting_call" if waits else "unanswered_call"
        said = f"call {keys.text(key)} has no result; it is answered in the transcript alone"
        return Answer(None, [{"type": "text", "content": words}], is_error=not waits), Finding(code, (seq,), said)

    def _in_place(self, key: int) -> int:
        """The seq of the outcome that stands in place of a visible result, -1 where none does."""
        return self._late.newest(key, self._index) if self._results.get(key) in self._index else -1

    def _visible(self, seq: int | None) -> Event | None:
        """The event of a seq, where the surface shows it."""
        index = None if seq is None else self._index.get(seq)
        return None if index is None else self._pairs.surface[index]

    def _stand_in(self, key: int) -> tuple[str, bool]:
        """The words that stand for a result that is not there, and whether the call waits for it."""
        call = self._call(key)
        if call is None or call.turn is None or call.stays:
            return (WAITS, True) if call is not None and call.stays else (_LOST, False)
        if call.turn.seq < 0 or not call.owed:
            return _LOST, False
        scan = self._pairs.scan
        repair = answer(scan, scan.run(self._pairs.run), call.turn, call, interrupted=True)
        text: str = repair.data["parts"][0]["content"]
        return text, False

    def _was_handed_over(self, key: int) -> bool:
        """Whether a call of an incomplete message was dispatched or answered all the same."""
        call = self._call(key)
        return key in self._results or (call is not None and call.dispatched is not None)

    def _call(self, key: int) -> Call | None:
        return self._pairs.scan.run(self._pairs.run).find(key)


def _parts(event: Event) -> list[Mapping[str, Any]]:
    parts = event.data.get("parts")
    return parts if isinstance(parts, list) else []


def _key(event: Event) -> int:
    key = keys.parse(event.data.get("call"))
    return -1 if key is None else key
