"""What an application's `redact` may change: content, never what the history hangs together by (F37).

Promises:
- Keys, ids, numbers and what boundaries say are recorded as they are, whatever the function returns.
- Arguments that are not recorded as the model wrote them are marked, so that no later process takes them for the
  model's.
- A reply is recorded with the calls that the model asked for, or refused.
- What a part keeps verbatim for its provider (`native`) goes where the part was changed and that was not, if it says
  again what was taken out; and where anything of it was changed and it is signed or encrypted: no provider takes it so.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Final

from turnwal.core.errors import Refused
from turnwal.core.types import TYPES, is_application_type
from turnwal.core.values import arguments_of, asking_parts, id_of, is_synthetic, name_of

_CONTENT: Final = frozenset(
    {"arguments", "metadata", "text", "label", "cwd", "provider", "model", "response_id", "stop", "usage"}
)
"""The known fields of core types that say something of the application's; fields that no type knows do so too."""

_OURS: Final = frozenset({"replace", "keyed", "hints_from"})
"""What is ours besides the known fields."""

_SEALS: Final = frozenset({"signature", "thoughtSignature", "thought_signature", "redactedContent"}) | {
    "redacted_thinking",
    "reasoning_details",
}
"""Fields that hold a signature, or what only its model reads, and a block that is nothing else."""

_ARGUMENTS: Final = frozenset({"input", "args", "arguments"})
"""How providers call the arguments of a call."""


class Redaction:
    """What is recorded of an event's data."""

    def __init__(self, redact: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Stand before the application's function."""
        self._redact = redact

    def __call__(self, type: str, data: Mapping[str, Any]) -> Any:
        """Return what is recorded; the data given is left alone.

        Raises `Refused` where another call would be recorded than the one that the model asked for, and whatever the
        application's function raises.
        """
        changed: Any = self._redact(deepcopy(dict(data)))
        if is_application_type(type):
            return changed
        if type == "assistant_message":
            changed = _marked(data, changed)
        elif type == "tool_call" and isinstance(changed, dict) and arguments_of(changed) != arguments_of(data):
            changed |= {"redacted": True}
        return _with_ours(type, data, _without_copies(data, changed)) if isinstance(changed, dict) else changed


def _with_ours(type: str, data: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """What was changed, with our fields as they were, in the order they had."""
    ours = _OURS | (TYPES.get(type, {}).keys() - _CONTENT)
    if is_synthetic(data):
        ours |= {"metadata"}
    kept = {name: data[name] if name in ours else changed[name] for name in data if name in ours or name in changed}
    return kept | {name: value for name, value in changed.items() if name not in kept and name not in ours}


def _without_copies(data: Mapping[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """What was changed, without what is kept verbatim of what it was before, or of what is sealed as it was."""
    before, after = data.get("parts"), changed.get("parts")
    if isinstance(before, list) and isinstance(after, list) and before != after:
        changed = changed | {"parts": _parts_without_copies(before, after)}
    came, held = _sent(data), _sent(changed)
    if (before != after and held == came) or (held != came and _is_sealed(came)):
        changed = dict(changed)
        native = changed.pop("native", None)
        if isinstance(native, dict) and "reply" in native:  # it is never sent
            changed["native"] = {name: native[name] for name in ("provider", "reply") if name in native}
    return changed


def _sent(data: Mapping[str, Any]) -> object:
    """What an event keeps verbatim to be sent again."""
    native = data.get("native")
    return {name: value for name, value in native.items() if name != "reply"} if isinstance(native, dict) else native


def _parts_without_copies(before: list[Any], after: list[Any]) -> list[Any]:
    plain = [part for part in before if isinstance(part, dict) and "native" in part]
    return [
        {name: value for name, value in part.items() if name != "native"}
        if isinstance(part, dict) and "native" in part and part not in before and not _may_stay(part, plain)
        else part
        for part in after
    ]


def _may_stay(part: dict[str, Any], plain: list[dict[str, Any]]) -> bool:
    """Whether what a changed part keeps verbatim may stay: it is not sealed, and does not say what was taken out."""
    if part.get("type") == "reasoning" or _is_sealed(part["native"]):
        return False
    copies = [each for each in plain if each["native"] == part["native"]]
    return not copies or any(_is_apart(each, part) for each in copies)


def _is_apart(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether nothing but the arguments of a call was changed, and what is kept verbatim of it is without them."""
    fields = before.keys() | after.keys()
    changed = {name for name in fields if name not in before or name not in after or before[name] != after[name]}
    return changed <= {"arguments", "redacted"} and _ARGUMENTS.isdisjoint(_names(after["native"]))


def _is_sealed(value: object) -> bool:
    """Whether something in it is signed or encrypted: a provider takes that back as it came, or not at all."""
    return any(name in _SEALS or name.startswith("encrypted") for name in _names(value))


def _names(value: object) -> Iterator[str]:
    """The names of all fields in JSON data; a block of encrypted data is named by its type too."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield str(name)
            if name == "type" and isinstance(item, str):
                yield item
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _marked(message: Mapping[str, Any], changed: object) -> dict[str, Any]:
    """A changed reply with a mark on each call whose arguments are not what the model wrote."""
    if not isinstance(changed, dict) or _asked_for(changed) != _asked_for(message):
        raise Refused(
            "redaction changes which calls the reply asks for",
            action="record",
            subject="assistant_message",
            hint="let `redact` keep the parts, and the type, id and name of each call",
        )
    plain = dict(asking_parts(message))
    marked = {
        index: {**part, "redacted": True}
        for index, part in asking_parts(changed)
        if arguments_of(part) != arguments_of(plain[index])
    }
    if not marked:
        return changed
    return changed | {"parts": [marked.get(index, part) for index, part in enumerate(changed["parts"])]}


def _asked_for(message: Mapping[str, Any]) -> dict[int, tuple[str, str | None]]:
    """Id and name of each call that a reply asks for, by the part's index."""
    return {index: (id_of(part), name_of(part)) for index, part in asking_parts(message)}
