"""Rendering: the request that a provider accepts, made of what the log holds, and the same bytes every time.

Promises:
- Every call is answered, every result has its call, in the order and the form that the target asks for, whatever befell
  the session; what is changed on the way out is said, with the seqs, and never stored.
- Rendering again after more events makes only what they touch.

Does not: send anything, or choose what a model should see: that is the surface.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

from turnwal.core.errors import Refused
from turnwal.core.findings import Finding
from turnwal.core.line import Event
from turnwal.core.log import Log
from turnwal.transcript.conversation import Conversation, Outcomes, Waiting
from turnwal.transcript.ids import Ids
from turnwal.transcript.kept import Kept
from turnwal.transcript.message import Message
from turnwal.transcript.target import Notes, Target, Wire, family
from turnwal.transcript.targets import package_of
from turnwal.transcript.words import scrubbed, text_of

CODES: Final = {
    "arguments_wrapped": "arguments that are no JSON object are sent inside one",
    "bridge_added": "a message that is in no log stands where the target wants one",
    "duplicate_call": "a call that was asked for before is sent once",
    "duplicate_result": "a call that has a result got another; the first is sent",
    "empty_message": "a message in which nothing can be sent is left out",
    "id_rewritten": "a call id that is taken, empty or not allowed is another one here",
    "incomplete_message": "a message that never completed is sent as its text",
    "name_rewritten": "a tool's name that the target does not allow is another one here",
    "orphan_result": "a result whose call is not sent is left out",
    "outcome_in_place": "an outcome that was learnt later stands in place of the result",
    "part_left_out": "a part that the target has no form for, or not from this model, is left out",
    "part_replaced": "words stand for a part that the target cannot take there",
    "partial_message": "text that was shown, and whose message never came, is sent",
    "reasoning_left_out": "reasoning of another provider or model, or without its signature, is left out",
    "signature_bypassed": "a call whose signature is lost carries the value that its provider documents for that",
    "surrogate_replaced": "half a character, which no request can hold, is U+FFFD here",
    "system_in_place": "system text behind the beginning is sent as user text",
    "unanswered_call": "a call without a result is answered here alone",
    "unknown_part": "a part of a type that this version does not know is left out",
    "waiting_call": "a call that waits for its answer is answered here by a placeholder",
}
"""Every code of a change, with what it means."""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A request's messages, ready to send."""

    messages: list[Wire]
    system: str | None
    """The system text, for a target that wants it beside the messages; None where there is none."""
    findings: tuple[Finding, ...]
    """What is not as it stands in the log, and why."""


class Renderer:
    """Renders one run for one target, again and again as the log grows."""

    def __init__(self, target: Target, conversation: Conversation) -> None:
        """Begin with nothing made."""
        self.conversation = conversation
        self._target = target
        self._model_is_given = target.model is not None
        self._ids = Ids(target.ids)
        self._pieces = Kept(target)
        self._taken: list[list[str]] = []
        self._findings: dict[int, list[Finding]] = {}
        """By index, in order: what there is to find of a visible event."""
        self._leading = 0
        """How many visible events at the beginning are system text."""

    def render(self, *, waiting: Waiting = "refuse") -> Rendering:
        """Return the request. Raises `Refused` where calls wait, unless a placeholder is asked for."""
        start, shown = self.conversation.messages()
        self._forget(min(start, self._model_changed()))
        waits = self.conversation.waiting() if waiting == "refuse" else []
        if waits:
            raise Refused(
                f"calls wait for an answer: {', '.join(waits)}",
                action="render",
                subject=self._target.name,
                hint='answer them first, or pass waiting="placeholder"',
            )
        system = self._beginning(shown)
        for index in range(len(self._pieces), len(shown)):
            self._make(index, shown[index])
        notes = Notes()
        messages = self._target.finish(self._pieces.messages(), notes)
        findings = [finding for found in self._findings.values() for finding in found]
        return Rendering(messages, system, (*findings, *notes.findings))

    def _model_changed(self) -> int:
        """From which index on the messages are to be made anew because another model is asked now."""
        newest = self.conversation.models.get(self._target.name)
        if self._model_is_given or newest is None or newest == self._target.model:
            return len(self._pieces)
        before, self._target.model = self._target.model, newest
        return len(self._pieces) if before is not None and family(before) == family(newest) else 0

    def _forget(self, start: int) -> None:
        for taken in self._taken[start:]:
            self._ids.give_back(taken)
        self._pieces.forget(start)
        while self._findings and next(reversed(self._findings)) >= start:
            self._findings.popitem()
        del self._taken[start:]
        self._leading = min(self._leading, start)

    def _beginning(self, shown: list[tuple[Message, ...]]) -> str | None:
        """The text of the leading system messages, for a target that wants it apart."""
        if not self._target.separate_system:
            return None
        while self._leading < len(shown) and all(map(self._is_apart, shown[self._leading])):
            self._leading += 1
        texts = [text_of(message.parts) for found in shown[: self._leading] for message in found]
        return "\n\n".join(text for text in texts if text.strip()) or None

    def _is_apart(self, message: Message) -> bool:
        """Whether a leading message is system text that stands apart, and none that came among the messages."""
        return message.kind == "system" and message.native(self._target.name) is None

    def _make(self, index: int, shown: tuple[Message, ...]) -> None:
        made: list[Wire] = []
        taken: list[str] = []
        findings = self.conversation.findings(index)
        if shown and index >= self._leading:
            notes = Notes(findings)
            self._ids.taken = taken
            for message in shown:
                made += self._target.make(message, self._ids, notes)
            clean: list[Wire] = scrubbed(made)
            if clean is not made:
                notes.add("surrogate_replaced", "half a character is U+FFFD here", *(message.seq for message in shown))
                made = clean
            findings = notes.findings
        self._pieces.append(made)
        self._taken.append(taken)
        if findings:
            self._findings[index] = findings


_kept: Final["WeakKeyDictionary[Log, dict[tuple[object, ...], Renderer]]"] = WeakKeyDictionary()
"""The renderers of logs in memory, by what they were asked for; each knows how far it has read."""
_mutex: Final = Lock()


def render(
    source: Iterable[Event],
    target: str,
    run: str = "main",
    *,
    model: str | None = None,
    waiting: Waiting = "refuse",
    outcomes: Outcomes = "note",
    partial: bool = False,
) -> Rendering:
    """Return the request-ready messages of a run for a target, with what was changed on the way out.

    `source` is a `Log`, a session, an inspection or any iterable of events from the first on; for a `Log`, rendering
    again costs what came since. Blocks that only their own model may read go back verbatim where `model` is the one
    that wrote them (without it: the newest that wrote for this target). A call that waits is refused, or answered by a
    `placeholder`. A late outcome is a `note` at its place, or with `replace` stands for the earlier result. `partial`
    sends text that was shown and whose message never came. Raises `InvalidName` for an unknown target, and `Refused`
    where calls wait.
    """
    if not isinstance(source, Log):
        renderer = renderer_of(target, run, model=model, outcomes=outcomes, partial=partial)
        renderer.conversation.feed_all(source)
        return renderer.render(waiting=waiting)
    with _mutex:
        found = _kept.setdefault(source, {})
        options = (target, run, model, outcomes, partial)
        kept = found.get(options)
        if kept is None:
            kept = found[options] = renderer_of(target, run, model=model, outcomes=outcomes, partial=partial)
        kept.conversation.feed_all(source.since(kept.conversation.next_seq))
        return kept.render(waiting=waiting)


def renderer_of(
    target: str, run: str = "main", *, model: str | None = None, outcomes: Outcomes = "note", partial: bool = False
) -> Renderer:
    """A renderer that has read nothing yet. Raises `InvalidName` for an unknown target."""
    made: Target = import_module(f"{package_of(target)}.render").TARGET(model)
    return Renderer(made, Conversation(run, outcomes=outcomes, partial=partial))
