"""The event types and the shape of their data.

Promises:
- `check_data` refuses a known field of a wrong JSON type, naming its path, and lets absent fields, unknown fields,
  unknown part types and unknown values of an enumeration pass: a foreign log may lack any field, and a newer writer may
  know more (F39).
- `check_known` refuses what this version must not step over, because an unknown record may already close a call.

Does not: judge whether an event makes sense where it stands; see `scan.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.core.errors import InvalidEvent, TooNew
from turnwal.core.line import Event

FORMAT: Final = 1
"""The format this version writes, and the highest it can recover.

Raise it when an older reader could no longer recover the session correctly: when a new or changed record closes,
opens, moves or re-identifies a call, step or turn. An addition that older readers may step over does not raise it.
"""

SURFACE: Final = frozenset({"system_message", "user_message", "assistant_message", "tool_result", "tool_outcome"})
"""The types a model sees."""

BOUNDARIES: Final = frozenset({"turn_start", "turn_end", "session_resume"})
"""The types that carry `open` and `waiting`."""

_Check = Callable[[object], bool]


def _text(value: object) -> bool:
    return isinstance(value, str)


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _natural(value: object) -> bool:
    return _integer(value) and value >= 0  # type: ignore[operator]


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _boolean(value: object) -> bool:
    return isinstance(value, bool)


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _anything(_: object) -> bool:
    return True


def is_seqs(value: object) -> bool:
    """Whether a value is a list of seqs."""
    return isinstance(value, list) and all(map(_natural, value))


def _objects(value: object) -> bool:
    return isinstance(value, list) and all(map(_object, value))


def _text_or_object(value: object) -> bool:
    return isinstance(value, (str, dict))


_KINDS: Final[Mapping[_Check, str]] = {
    _text: "text",
    _integer: "an integer",
    _natural: "an integer from 0 up",
    _number: "a number",
    _boolean: "true or false",
    _object: "an object",
    is_seqs: "a list of seqs",
    _objects: "a list of objects",
    _text_or_object: "text or an object",
}

_HINT: Final[dict[str, _Check]] = {"open": is_seqs, "waiting": _objects, "granted": _objects}
_CALL: Final[dict[str, _Check]] = {"call": _text, "id": _text, "name": _text}
_OPENING: Final[dict[str, _Check]] = {"format": _natural, "writer": _object, "store": _object}

TYPES: Final[Mapping[str, Mapping[str, _Check]]] = {
    "session_start": _OPENING | {"id": _text, "nonce": _text, "hash": _text, "cwd": _text, "parent": _object},
    "session_resume": _OPENING | _HINT | {"owner": _object},
    "session_fork": {"id": _text, "nonce": _text, "parent": _object},
    "session_copied": {},
    "turn_start": _HINT
    | {"format": _natural, "turn": _integer, "dispatch": _text, "resumes": _text, "serves": _text, "label": _text},
    "turn_end": _HINT | {"format": _natural, "turn": _integer, "steps": _natural, "reason": _text},
    "step_start": {"turn": _integer, "step": _integer, "dispatch": _text},
    "step_end": {"turn": _integer, "step": _integer, "outcome": _text},
    "system_message": {},
    "user_message": {},
    "assistant_message": {
        "complete": _boolean,
        "completes": _natural,
        "provider": _text,
        "model": _text,
        "asked": _text,
        "response_id": _text,
        "stop": _text,
        "usage": _object,
    },
    "assistant_delta": {"step": _integer, "index": _natural, "text": _text},
    "tool_call": _CALL
    | {"arguments": _text_or_object, "attempt": _natural, "key": _text, "hints": _object, "child": _object},
    "tool_result": _CALL | {"is_error": _boolean, "duration_ms": _number, "metadata": _object},
    "tool_suspended": _CALL,
    "tool_outcome": _CALL | {"attempt": _natural, "outcome": _text, "metadata": _object},
    "approval_request": _CALL,
    "approval_response": _CALL | {"decision": _text},
    "request_header": {"provider": _text, "model": _text},
    "damage": {
        "after": _integer,
        "length": _natural,
        "sha256": _text,
        "kind": _text,
        "raw": _text,
        "lost": is_seqs,
        "head": _text,
    },
    "checkpoint": {},
    "erasure": {},
}
"""Every core type with the fields whose JSON type is fixed. All fields may be absent; others may be present."""

IGNORABLE: Final = frozenset({"assistant_delta", "checkpoint", "erasure"})
"""Core types that a reader which does not know them may skip; the writer marks them."""

_PART: Final[Mapping[str, tuple[tuple[str, _Check], ...]]] = {
    "text": (("content", _text),),
    "tool_call": (("id", _text), ("name", _text), ("arguments", _text_or_object), ("format", _text)),
}


def is_application_type(type: str) -> bool:
    """Whether a type belongs to an application; those are always skippable."""
    return type.startswith("x.") and len(type) > len("x.")


def check_data(type: str, data: Mapping[str, Any]) -> None:
    """Return if the data fits the type; raise `InvalidEvent` naming the field that does not, or the unknown type."""
    fields = TYPES.get(type)
    if fields is None:
        if is_application_type(type):
            return
        message = f"{type!r} is not an event type"
        raise InvalidEvent(
            message, action="append", hint="use a core type, or a type of your own that begins with 'x.'"
        )
    for name, value in data.items():
        check = fields.get(name)
        if check is not None and not check(value):
            _refuse(type, f"data.{name}", value, _KINDS[check])
    if type in SURFACE:
        if "parts" in data:
            _check_parts(type, data["parts"])
        replace = data.get("replace")
        if replace is not None and not is_range(replace):
            _refuse(type, "data.replace", replace, "a list of two seqs, the first not above the second")


def check_known(event: Event) -> None:
    """Return if this version may read on past the event; raise `TooNew` naming line and type otherwise."""
    if event.type in TYPES:
        format = event.data.get("format", FORMAT) if "format" in TYPES[event.type] else FORMAT
        if not _integer(format) or format <= FORMAT:
            return
        reason = f"line {event.seq} declares format {format}, this version knows up to {FORMAT}"
    elif event.ignorable or is_application_type(event.type):
        return
    else:
        reason = f"line {event.seq} has the unknown type {event.type!r}"
    raise newer(reason)


def newer(reason: str) -> TooNew:
    """The error for a record this version must not step over."""
    return TooNew(
        f"written by a newer turnwal: {reason}", hint="upgrade turnwal; reading verbs may look, none may write"
    )


def _check_parts(type: str, parts: object) -> None:
    if not isinstance(parts, (list, tuple)):
        _refuse(type, "data.parts", parts, "a list of parts")
        return
    for index, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            _refuse(type, f"data.parts[{index}]", part, "an object with a text 'type'")
            continue
        for name, check in _PART.get(kind, ()):
            value = part.get(name)
            if value is not None and not check(value):
                _refuse(type, f"data.parts[{index}].{name}", value, _KINDS[check])


def is_range(value: object) -> bool:
    """Whether a value is a `replace`: two seqs, the first not above the second."""
    return isinstance(value, list) and len(value) == 2 and is_seqs(value) and value[0] <= value[1]  # noqa: PLR2004


def _refuse(type: str, path: str, value: object, wanted: str) -> None:
    message = f"{path} is {_kind_of(value)}, not {wanted}"
    raise InvalidEvent(message, action="append", subject=type, hint="see docs/format.md for the fields of each type")


def _kind_of(value: object) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return f"{value!r}"[:80]
    return {"str": "text", "list": "a list", "dict": "an object"}.get(value.__class__.__name__, "no JSON value")
