"""Weighing what a foreign session proves: pairs calls with answers over the whole session and judges what is left.

Promises:
- Calls are paired over all records, never along one path of a tree.
- Risk comes from the table of recovery. *Not started* is said only where the writer guarantees dispatch records; what
  the table would only infer counts as unknown here.
- An answer that the tool invented is no outcome. One that a repair of ours wrote says so truthfully and is one.

Memory is bounded by the calls: a few bytes for an answered one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from turnwal.core.calls import Call, Turn
from turnwal.core.rules import RULES, Risk, judge
from turnwal.core.state import State
from turnwal.core.values import arguments_of, asking_parts, id_of, is_synthetic, name_of
from turnwal.formats.diagnosis import Diagnosis, OnResume, OpenCall, Verdict
from turnwal.formats.format import Found
from turnwal.formats.items import TURNWAL, About, Blind, Evidence, Fault, Item, Other, Said, Sign

FAULTS_MAX: Final = 100
"""Faults of one session that are kept; the last place says how many more there are."""

_STRENGTH: Final[dict[Evidence, int]] = {"requested": 0, "dispatched": 1, "ran": 2}
_HARMLESS: Final = frozenset({"duplicate", "raw_newline", "fused"})
"""Faults that lose nothing: all that was written can be read."""


def is_invented(said: Said) -> bool:
    """Whether a result was made up by the tool; one that a repair of ours wrote says what is known, and is one."""
    return (
        said.type == "tool_result"
        and "metadata" in said.data
        and is_synthetic(said.data)
        and said.data["metadata"].get("by") != TURNWAL
    )


class Pending(Protocol):
    """A call without an answer."""

    @property
    def name(self) -> str | None:
        """The tool, where it is known."""
        ...

    @property
    def run(self) -> str:
        """The run that asked."""
        ...

    @property
    def place(self) -> str:
        """The record that asked."""
        ...


def answered_of(calls: Sequence[Pending], run: str, name: str | None) -> int:
    """Which of several unanswered calls of one id a result answers.

    One of its run and its tool before others, and of those the oldest in the newest record: the calls of older records
    were given up when that one asked.
    """

    def fits(call: Pending) -> tuple[bool, bool]:
        return call.run == run, call.name == name

    newest = max(range(len(calls)), key=lambda index: (*fits(calls[index]), index))
    kind = (*fits(calls[newest]), calls[newest].place)
    return next(index for index, call in enumerate(calls) if (*fits(call), call.place) == kind)


class _Asked(Struct, eq=False):
    """A call without an answer of its own."""

    id: str
    name: str | None
    arguments: str | None
    free_text: bool
    run: str
    evidence: Evidence
    place: str
    index: int
    """Which call of the session it is."""
    whole: bool
    """The message that asks for it completed."""
    because: list[str] = []
    """The records that show more than the request."""


def weigh(found: Found, items: Iterable[Item]) -> Diagnosis:
    """Return the diagnosis of a session whose reader yields these items."""
    weigher = _Weigher()
    for item in items:
        weigher.feed(item)
    return weigher.diagnosis(found)


def _is_equal(call: _Asked, name: str | None, arguments: str | None) -> bool:
    return call.name == name and call.arguments == arguments


class _Weigher:
    """Where weighing is."""

    def __init__(self) -> None:
        self._about = About()
        self._calls = 0
        self._answered: dict[str, int] = {}
        """How many calls of each id have their result."""
        self._open: dict[str, list[_Asked]] = {}
        """The unanswered calls of each id, oldest first."""
        self._invented: dict[str, _Asked] = {}
        self._blind: Blind | None = None
        self._faults: list[Fault] = []
        self._faults_more = 0
        self._lost = False
        self._unknown: Counter[str] = Counter()

    def feed(self, item: Item) -> None:
        """Take the next item."""
        if isinstance(item, Said):
            if item.type == "assistant_message":
                self._ask(item)
            elif item.type == "tool_result":
                self._answer(item)
        elif isinstance(item, Sign):
            self._sign(item)
        elif isinstance(item, Fault):
            self._fault(item)
        elif isinstance(item, Other):
            self._unknown[item.name] += 1
        elif isinstance(item, Blind):
            self._blind = item
        else:
            old = self._about
            self._about = About(item.version or old.version, item.session or old.session, item.durable or old.durable)

    def _ask(self, said: Said) -> None:
        whole = said.data.get("complete") is not False
        for _, part in asking_parts(said.data):
            self._ask_one(said, part, whole=whole)

    def _ask_one(self, said: Said, part: Any, *, whole: bool) -> None:
        id, name, arguments = id_of(part), name_of(part), arguments_of(part)
        same = self._open.get(id)
        if same and whole and any(not call.whole and _is_equal(call, name, arguments) for call in same):
            return  # the message that did not complete, once more
        free = part.get("format") == "text"
        call = _Asked(id, name, arguments, free, said.run, "requested", said.place, self._calls, whole)
        self._calls += 1
        if same is None:
            self._open[id] = [call]
        else:
            same.append(call)

    def _answer(self, said: Said) -> None:
        id = id_of(said.data)
        waiting = self._open.get(id)
        invented = is_invented(said)
        if not waiting:
            self._answer_again(id, said, invented=invented)
            return
        name = name_of(said.data)
        call = waiting.pop(answered_of(waiting, said.run, name))
        if not waiting:
            del self._open[id]
        if not invented:
            self._answered[id] = self._answered.get(id, 0) + 1
            return
        call.evidence = "answered_synthetic"
        call.because.append(f"{said.place}: an answer that {said.data['metadata'].get('by', 'the tool')} invented")
        self._invented[id] = call

    def _answer_again(self, id: str, said: Said, *, invented: bool) -> None:
        """Take a result for which no call is open."""
        if id in self._invented:
            if not invented:  # what really came of it, recorded after the invention
                del self._invented[id]
                self._answered[id] = self._answered.get(id, 0) + 1
        elif id in self._answered:
            if not invented:
                self._fault(Fault("duplicate", said.place, f"a second result of call {id}"))
        else:
            self._fault(Fault("orphan_result", said.place, f"a result of call {id}, which nothing asks for"))

    def _sign(self, sign: Sign) -> None:
        calls = self._open.get(sign.id)
        if not calls:
            return
        call = calls[-1]
        call.because.append(f"{sign.place}: {sign.what}")
        if sign.evidence == "waiting":
            if call.evidence == "requested":
                call.evidence = "waiting"
        elif sign.evidence != "requested" and (
            call.evidence == "waiting" or _STRENGTH[sign.evidence] > _STRENGTH[call.evidence]
        ):
            call.evidence = sign.evidence

    def _fault(self, fault: Fault) -> None:
        if fault.kind not in _HARMLESS:
            self._lost = True
        if len(self._faults) < FAULTS_MAX:
            self._faults.append(fault)
        else:
            self._faults_more += 1

    def diagnosis(self, found: Found) -> Diagnosis:
        """What can be said at the end."""
        left = [call for calls in self._open.values() for call in calls]
        left += self._invented.values()
        left.sort(key=lambda call: call.index)
        opened = tuple(self._judged(call) for call in left)
        if self._faults_more:
            self._faults.append(Fault(self._faults[-1].kind, "further", f"{self._faults_more:,} more"))
        verdict = self._verdict(opened)
        resume: OnResume = found.format.on_resume if _is_in_the_way(verdict, opened) else "continues"
        return Diagnosis(
            path=found.where,
            format=found.format.name,
            verdict=verdict,
            version=self._about.version,
            session=self._about.session or found.session,
            calls=self._calls,
            answered=sum(self._answered.values()),
            open=opened,
            damage=tuple(self._faults),
            on_resume=resume,
            unknown=dict(self._unknown),
            problem=self._blind.what if self._blind is not None else "",
        )

    def _verdict(self, opened: tuple[OpenCall, ...]) -> Verdict:
        if any(fault.kind == "too_new" for fault in self._faults):
            return "too_new"
        if any(call.evidence != "waiting" for call in opened):
            return "interrupted"
        if opened:
            return "waiting"
        if self._lost:
            return "damaged"
        return "clean" if self._blind is None else "blind"

    def _judged(self, asked: _Asked) -> OpenCall:
        """The call with its risk, by the rules of recovery over what the records show."""
        if asked.evidence == "waiting":
            return _told(asked, None, ())
        turn = Turn(seq=0, number=None, dispatch="durable" if self._about.durable else "none")
        call = Call(key=0, id=asked.id, name=asked.name, arguments=asked.arguments, free_text=asked.free_text)
        call.asked, call.asked_at = True, 1
        if asked.evidence != "requested":
            call.dispatched = 2
        state = State()
        if self._lost and any(fault.kind not in (*_HARMLESS, "torn") for fault in self._faults):
            state.lost_after = state.lost_seq = 3
        verdict = judge(state, turn, call, strict=True)
        sentence = next(rule.sentence for rule in RULES if rule.number == verdict.rule)
        return _told(asked, verdict.risk, (sentence,))


def _is_in_the_way(verdict: Verdict, opened: tuple[OpenCall, ...]) -> bool:
    """Whether the tool meets anything when it resumes; it takes an answer that it invented itself for one."""
    if verdict == "interrupted":
        return any(call.evidence not in ("waiting", "answered_synthetic") for call in opened)
    return verdict == "too_new"


def _told(asked: _Asked, risk: Risk | None, rule: tuple[str, ...]) -> OpenCall:
    request = f"{asked.place}: asked for{'' if asked.whole else ' by a message that never completed'}"
    return OpenCall(
        id=asked.id,
        name=asked.name,
        evidence=asked.evidence,
        risk=risk,
        because=(request, *asked.because, *rule),
        place=asked.place,
        arguments=asked.arguments,
        run=asked.run,
    )
