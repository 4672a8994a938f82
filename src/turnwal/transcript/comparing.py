"""Comparing: what an application is about to send, beside what the surface says it should.

Promises: a bounded description of how the two differ, told from what messages say, not from their form: it makes no
difference whether a user's texts are one message or several, or whether a bridge stands between two roles.
Leading system text is exempt, since many applications keep it outside the session. Nothing is changed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib import import_module
from typing import Any, Final

from turnwal.core.errors import InvalidEvent
from turnwal.core.values import id_of, parse_arguments
from turnwal.transcript.plain import plain
from turnwal.transcript.targets import package_of
from turnwal.transcript.words import BRIDGE

CODES: Final = {
    "extra": "a message is sent that the session does not have there",
    "missing": "a message of the session is not sent",
    "order": "a message is sent at another place than the session has it",
    "orphaned_tool_result": "a result is sent whose call is not sent before it",
}
"""Every code of a difference, with what it means."""

DIFFERENCES_MAX: Final = 20
"""How many differences are told; what is behind them is seldom another mistake."""

_TEXT_CHARS_MAX: Final = 80

_HINT: Final = "pass the messages as a request has them"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: its code, the position in what is sent (for `missing`: in what should be), and a sentence.

    Positions count messages and results one by one, from 0, behind leading system text.
    """

    code: str
    position: int
    message: str


@dataclass(frozen=True, slots=True)
class _Said:
    """What one message says, whatever form a provider gives it."""

    kind: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    asks: tuple[str, ...] = ()
    """The ids of its calls."""
    answers: str | None = None
    """The id of the call that a result answers."""


def compare(target: str, sent: object, expected: Sequence[Any]) -> list[Difference]:
    """Return how a list of messages differs from the one that a session renders, the first `DIFFERENCES_MAX`.

    Raises `InvalidName` for an unknown target and `InvalidEvent` for what is no list of its messages.
    """
    given, should = _said(target, sent), _said(target, expected)
    found: list[Difference] = []
    matcher = SequenceMatcher(None, [_token(said) for said in should], [_token(said) for said in given], autojunk=False)
    missing: list[tuple[int, _Said]] = []
    extra: list[tuple[int, _Said]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            missing += [(at, should[at]) for at in range(i1, i2)]
            extra += [(at, given[at]) for at in range(j1, j2)]
    gone = Counter(_token(said) for _, said in missing)
    for at, said in extra:
        token = _token(said)
        if gone[token] > 0:
            gone[token] -= 1
            found.append(Difference("order", at, f"{_words(said)} stands elsewhere in the session"))
        else:
            found.append(Difference("extra", at, f"{_words(said)} is not in the session"))
    for at, said in missing:
        token = _token(said)
        if gone[token] > 0:
            gone[token] -= 1
            found.append(Difference("missing", at, f"{_words(said)} is not sent"))
    found += _orphans(given)
    return sorted(found, key=lambda difference: difference.position)[:DIFFERENCES_MAX]


def _said(target: str, messages: object) -> list[_Said]:
    history = import_module(f"{package_of(target)}.parse").history
    try:
        said = [_one(type_, data) for type_, data in history(plain(messages))] if _is_list(messages) else None
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidEvent(
            f"it is no list of {target} messages ({type(error).__name__}: {error})",
            action="compare",
            subject=target,
            hint=_HINT,
        ) from error
    if said is None:
        message = f"a {type(messages).__name__} is no list of messages"
        raise InvalidEvent(message, action="compare", subject=target, hint=_HINT)
    leading = 0
    while leading < len(said) and said[leading].kind == "system_message":
        leading += 1
    return _joined(said[leading:])


def _is_list(messages: object) -> bool:
    return isinstance(messages, (list, tuple))


def _joined(said: list[_Said]) -> list[_Said]:
    """What is said, with the texts of a user that follow each other as one, and without bridges."""
    found: list[_Said] = []
    for one in said:
        if one.kind == "assistant_message" and one.text == BRIDGE and not one.calls:
            continue
        if one.kind == "user_message" and found and found[-1].kind == "user_message":
            found[-1] = _Said(one.kind, found[-1].text + one.text)
        else:
            found.append(one)
    return found


def _one(type_: str, data: dict[str, Any]) -> _Said:
    parts = data.get("parts", [])
    text = "".join(part["content"] for part in parts if part.get("type") == "text" and part.get("content"))
    asking = [part for part in parts if part.get("type") == "tool_call"]
    calls = tuple((str(part.get("name")), _arguments(part.get("arguments"))) for part in asking)
    asks = tuple(id_of(part) for part in asking)
    return _Said(type_, text.strip(), calls, asks, id_of(data) if type_ == "tool_result" else None)


def _arguments(text: object) -> str:
    parsed = parse_arguments(text) if isinstance(text, str) else None
    return str(text) if parsed is None else json.dumps(parsed, sort_keys=True)


def _token(said: _Said) -> tuple[object, ...]:
    # ids are rewritten on the way out, so a result is known by what it says
    return (said.kind, said.text, said.calls)


def _orphans(given: Sequence[_Said]) -> Iterator[Difference]:
    owed: Counter[str] = Counter()
    for at, said in enumerate(given):
        owed.update(said.asks)
        if said.answers is None:
            continue
        if owed[said.answers] > 0:
            owed[said.answers] -= 1
        else:
            yield Difference("orphaned_tool_result", at, f"{_words(said)} answers no call that is sent before it")


def _words(said: _Said) -> str:
    what = said.kind.replace("_", " ")
    asked = f", asking for {', '.join(name for name, _ in said.calls)}" if said.calls else ""
    shown = said.text if len(said.text) <= _TEXT_CHARS_MAX else f"{said.text[:_TEXT_CHARS_MAX]}…"
    return f"the {what} {shown!r}{asked}"
