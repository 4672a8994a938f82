"""What a person reads of one event: the word for its type and a short text. Pure; whatever the data holds, it answers.

Does not: escape or cut; the screen does both.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.core.line import Event

WORDS: Final[Mapping[str, str]] = {
    "session_start": "session",
    "session_resume": "resume",
    "session_fork": "fork",
    "session_copied": "copied",
    "turn_start": "turn",
    "turn_end": "turn end",
    "step_start": "step",
    "step_end": "step end",
    "system_message": "system",
    "user_message": "user",
    "assistant_message": "assistant",
    "assistant_delta": "delta",
    "tool_call": "dispatch",
    "tool_result": "result",
    "tool_suspended": "waiting",
    "tool_outcome": "outcome",
    "approval_request": "question",
    "approval_response": "decision",
    "request_header": "request",
    "damage": "damage",
}
"""The word for each core type that has a shorter one than its name."""

STYLES: Final[Mapping[str, str]] = {
    "turn_start": "bold",
    "turn_end": "bold",
    "user_message": "cyan",
    "assistant_message": "green",
    "tool_call": "yellow",
    "tool_result": "magenta",
    "damage": "bold red",
}
"""The colour of a line on a terminal."""

RISKS: Final[Mapping[tuple[object, object], str]] = {
    ("tool_not_started", "declared"): "did not start (declared)",
    ("tool_not_started", "inferred"): "did not start (inferred)",
    ("tool_outcome_unknown", None): "outcome unknown",
}

RETRIES: Final[Mapping[str, str]] = {
    "safe": "safe to make again",
    "same_arguments": "safe with the same arguments",
    "same_key": "the application may repeat it with its key",
    "verify_first": "check the state first",
}


def risk_of(metadata: Mapping[str, Any]) -> str:
    """The class of a lost call, with its basis."""
    risk, basis = metadata.get("risk"), metadata.get("basis")
    return RISKS.get((risk, basis)) or f"{risk} ({basis})"


def word(event: Event) -> str:
    """The word for the type of an event."""
    return WORDS.get(event.type, event.type)


def text(event: Event, keys: Mapping[int, str]) -> str:
    """What an event says, in short; `keys` has the key of each call that a message asks for, by part index."""
    data = event.data
    if event.type == "assistant_message":
        return _flagged(_parts(data, keys, event.seq), "incomplete" if data.get("complete") is False else "")
    teller = _TELLERS.get(event.type)
    return _parts(data, keys, event.seq) if teller is None and "parts" in data else (teller or _json)(data)


def arguments_text(value: object) -> str:
    """The arguments of a call as they are shown."""
    return value if isinstance(value, str) else "" if value is None else _json(value)


def _start(data: Mapping[str, Any]) -> str:
    return _joined(_text(data.get("id")), _named("agent", data.get("agent")), _named("format", data.get("format")))


def _resume(data: Mapping[str, Any]) -> str:
    writer, owner = _object(data.get("writer")), _object(data.get("owner"))
    return _joined(
        " ".join(filter(None, (_text(writer.get("name")), _text(writer.get("version"))))),
        _named("by", owner.get("description")),
    )


def _fork(data: Mapping[str, Any]) -> str:
    parent = _object(data.get("parent"))
    return _joined(
        _text(data.get("id")), f"from {_text(parent.get('session'))}", f"behind seq {_text(parent.get('seq'))}"
    )


def _turn(data: Mapping[str, Any]) -> str:
    return _joined(
        _text(data.get("turn")),
        _named("dispatch", data.get("dispatch")),
        _named("goes on with", data.get("resumes")),
        _named("serves", data.get("serves")),
        _text(data.get("label")),
    )


def _turn_end(data: Mapping[str, Any]) -> str:
    return _joined(_text(data.get("turn")), _text(data.get("reason")), _named("steps", data.get("steps")))


def _step(data: Mapping[str, Any]) -> str:
    return _joined(_text(data.get("step")), _text(data.get("outcome")), _named("dispatch", data.get("dispatch")))


def _dispatch(data: Mapping[str, Any]) -> str:
    child = _object(data.get("child"))
    named = _joined(_call(data), _named("attempt", data.get("attempt")), _named("child session", child.get("session")))
    return f"{named} {arguments_text(data.get('arguments'))}".rstrip()


def _result(data: Mapping[str, Any]) -> str:
    metadata = _object(data.get("metadata"))
    flags = [
        risk_of(metadata) if "risk" in metadata else "error" if data.get("is_error") is True else "",
        "synthetic" if metadata.get("synthetic") is True else "",
        "rejected" if metadata.get("rejected") is True else "",
    ]
    return f"{_flagged(_call(data), *flags)} {_parts(data, {}, -1)}".rstrip()


def _outcome(data: Mapping[str, Any]) -> str:
    said = _joined(
        _call(data),
        _text(data.get("outcome")),
        _named("attempt", data.get("attempt")),
        _named("by", data.get("by")),
        _named("evidence", data.get("evidence")),
    )
    return f"{said} {_parts(data, {}, -1)}".rstrip()


def _question(data: Mapping[str, Any]) -> str:
    return f"{_call(data)} {_text(data.get('question'))}".rstrip()


def _decision(data: Mapping[str, Any]) -> str:
    return _joined(_call(data), _text(data.get("decision")), _named("by", data.get("by")))


def _damage(data: Mapping[str, Any]) -> str:
    lost = data.get("lost")
    return _joined(
        f"{_text(data.get('length'))} bytes that are no record",
        _text(data.get("kind")),
        f"behind seq {_text(data.get('after'))}",
        f"{len(lost)} lost events known" if isinstance(lost, list) and lost else "",
        f"without the kept head {_text(data['head'])}" if "head" in data else "",
    )


def _request(data: Mapping[str, Any]) -> str:
    return _joined(_text(data.get("provider")), _text(data.get("model")))


def _delta(data: Mapping[str, Any]) -> str:
    return _text(data.get("text"))


def _call(data: Mapping[str, Any]) -> str:
    key = data.get("call")
    return " ".join(
        filter(None, (_text(key) if key is not None else _named("id", data.get("id")), _text(data.get("name"))))
    )


def _parts(data: Mapping[str, Any], keys: Mapping[int, str], seq: int) -> str:
    parts = data.get("parts")
    if not isinstance(parts, list):
        return _text(parts)
    return " ".join(filter(None, (_part(part, keys.get(index, f"{seq}.{index}")) for index, part in enumerate(parts))))


def _part(part: object, key: str) -> str:
    fields = _object(part)
    kind = fields.get("type")
    if kind in ("text", "reasoning") and isinstance(fields.get("content"), str):
        return f"({kind}) {fields['content']}" if kind == "reasoning" else str(fields["content"])
    if kind == "tool_call":
        return f"[{key} {_text(fields.get('name'))} {arguments_text(fields.get('arguments'))}]"
    return f"[{_text(kind)}]"


def _flagged(shown: str, *flags: str) -> str:
    said = ", ".join(filter(None, flags))
    return f"{shown} ({said})" if said else shown


def _joined(*pieces: str) -> str:
    return ", ".join(filter(None, pieces))


def _named(name: str, value: object) -> str:
    return "" if value is None or value == "" else f"{name} {_text(value)}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_TELLERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "session_start": _start,
    "session_resume": _resume,
    "session_fork": _fork,
    "turn_start": _turn,
    "turn_end": _turn_end,
    "step_start": _step,
    "step_end": _step,
    "assistant_delta": _delta,
    "tool_call": _dispatch,
    "tool_result": _result,
    "tool_suspended": _call,
    "tool_outcome": _outcome,
    "approval_request": _question,
    "approval_response": _decision,
    "request_header": _request,
    "damage": _damage,
}
