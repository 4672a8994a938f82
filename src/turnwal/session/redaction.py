"""What an application's `redact` may change: content, never what the history hangs together by (F37).

Promises:
- Keys, ids, numbers and what boundaries say are recorded as they are, whatever the function returns.
- Arguments that are not recorded as the model wrote them are marked, so that no later process takes them for the
  model's.
- A reply is recorded with the calls that the model asked for, or refused.
- What a part keeps verbatim for its provider (`native`) goes where the part was changed and that was not: it says again
  what was taken out. It goes too where it is sealed and anything of the part was changed: a signature holds for what
  was signed alone, and a provider refuses it over anything else ("cannot be modified … must remain as they were",
  Anthropic's Messages).
"""

from collections.abc import Callable, Mapping
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

_SEALS: Final = frozenset({"encrypted_content", "encrypted_index", "redactedContent", "signature", "thoughtSignature"})
"""The fields of providers' blocks that vouch for the rest of the block."""

_ASKED: Final = frozenset({"args", "arguments", "input"})
"""Where providers' blocks hold the arguments of a call."""


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
    """What was changed, without what is kept verbatim of what it was before, and without what was sealed over it."""
    before, after = data.get("parts"), changed.get("parts")
    if isinstance(before, list) and isinstance(after, list) and before != after:
        same = len(before) == len(after)
        parts = [_without_copy(part, before, before[index] if same else None) for index, part in enumerate(after)]
        changed = changed | {"parts": parts}
        if _verbatim(changed) == _verbatim(data):
            return _without_verbatim(changed)
    if _verbatim(changed) != _verbatim(data) and _is_sealed(_verbatim(data)):
        return _without_verbatim(changed)
    return changed


def _without_copy(part: Any, before: list[Any], was: Any) -> Any:
    """A part as it is recorded, given all parts of before and, where it is known, the one that it was."""
    if not isinstance(part, dict) or "native" not in part or part in before:
        return part
    if part.get("type") != "reasoning" and not _is_sealed(was or part):
        if not any(isinstance(one, dict) and one.get("native") == part["native"] for one in before):
            return part
        if (
            isinstance(was, dict)
            and _says_no_arguments(was.get("native"))
            and _but_arguments(part) == _but_arguments(was)
        ):
            return part
    return {name: value for name, value in part.items() if name != "native"}


def _is_sealed(value: Any) -> bool:
    """Whether something in it vouches for the rest."""
    if isinstance(value, Mapping):
        return not _SEALS.isdisjoint(value) or any(map(_is_sealed, value.values()))
    return isinstance(value, list) and any(map(_is_sealed, value))


def _says_no_arguments(native: Any) -> bool:
    """Whether the verbatim block of a call leaves its arguments to the part."""
    block = native.get("block") if isinstance(native, dict) else None
    return isinstance(block, dict) and _ASKED.isdisjoint(block)


def _but_arguments(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("arguments", "redacted")}


def _verbatim(data: Mapping[str, Any]) -> Any:
    """What an event keeps verbatim of its message, or of its result; None for none."""
    native = data.get("native")
    if not isinstance(native, dict):
        return native
    return {name: value for name, value in native.items() if name not in ("provider", "reply")} or None


def _without_verbatim(data: dict[str, Any]) -> dict[str, Any]:
    """The same without it; what a reply said beside its message stays."""
    native = data.get("native")
    kept = {name: native[name] for name in ("provider", "reply") if name in native} if isinstance(native, dict) else {}
    rest = {name: value for name, value in data.items() if name != "native"}
    return rest | {"native": kept} if "reply" in kept else rest


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
