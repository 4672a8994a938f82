"""Requests: a rendering with model, tools and settings, as the arguments of the provider's own client; and what of a
request's JSON are its messages.

Promises: nothing of the settings is changed, and nothing is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from turnwal.core.errors import InvalidEvent, Refused
from turnwal.transcript.render import Rendering
from turnwal.transcript.targets import package_of

Tools = Sequence[Any]
Settings = Mapping[str, Any]


def request(
    target: str, rendering: Rendering, *, model: str, tools: Tools | None = None, settings: Settings | None = None
) -> dict[str, Any]:
    """Return the keyword arguments of one call of the provider's client.

    Anthropic `messages.create`, OpenAI `chat.completions.create` and `responses.create`, google-genai
    `models.generate_content`, boto3 `converse`, Mistral `chat.complete`. `tools` are the provider's own, as it wants
    them. Raises `Refused` for a setting that the rendering itself gives, or cannot add to.
    """
    settings = dict(settings or {})
    made = _REQUESTS[target](rendering, model, list(tools) if tools else None, settings)
    doubled = sorted(made.keys() & settings.keys())
    if doubled:
        raise Refused(
            f"{', '.join(doubled)} is given twice",
            action="request",
            subject=target,
            hint="what the model sees is recorded in the session: append it there",
        )
    return {**made, **settings}


class Fields(NamedTuple):
    """Where the JSON of a request has its messages and the system text beside them."""

    messages: str = "messages"
    system: tuple[str, ...] = ()
    """The names that are taken, the first of them given; none where system text stands among the messages."""


_FIELDS: Final = {
    "anthropic": Fields(system=("system",)),
    "openai-chat": Fields(),
    "openai-responses": Fields("input", ("instructions",)),
    "gemini": Fields("contents", ("systemInstruction", "system_instruction")),
    "bedrock": Fields(system=("system",)),
    "mistral": Fields(),
}
_SYSTEM: Final[Mapping[str, Callable[[str], Any]]] = {
    "bedrock": lambda text: [{"text": text}],
    "gemini": lambda text: {"parts": [{"text": text}]},
}
"""The form of system text where it is not the text itself."""


def body(target: str, rendering: Rendering) -> dict[str, Any]:
    """Return what a rendering gives of a request's JSON, as the provider's REST API has it: messages and system text.

    Model, tools and settings are not in it.
    """
    fields = _FIELDS[target]
    made: dict[str, Any] = {fields.messages: rendering.messages}
    if rendering.system is not None:
        made[fields.system[0]] = _SYSTEM.get(target, str)(rendering.system)
    return made


class Request(NamedTuple):
    """What of somebody's request can be checked, and how it is called there."""

    messages: list[Any]
    system: Any
    messages_field: str
    system_field: str


def taken_from(target: str, value: object) -> Request:
    """Return the messages and the system text of a request: a list of messages, or the object that a request is.

    Raises `InvalidName` for an unknown target, and `InvalidEvent` for what is neither.
    """
    package_of(target)
    fields = _FIELDS[target]
    if isinstance(value, list):
        return Request(value, None, "messages", "system")
    found = value.get(fields.messages) if isinstance(value, Mapping) else None
    if found is None or not isinstance(value, Mapping):
        what = f"an object without `{fields.messages}`" if isinstance(value, Mapping) else f"a {type(value).__name__}"
        raise InvalidEvent(
            f"{what} is no request of {target}",
            action="check",
            hint=f"pass a list of messages, or an object that has it under `{fields.messages}`",
        )
    if fields.messages == "input" and isinstance(found, str):
        found = [{"role": "user", "content": found}]
    if not isinstance(found, list):
        raise InvalidEvent(
            f"its `{fields.messages}` is a {type(found).__name__} and no list",
            action="check",
            hint=f"a request of {target} has its messages there",
        )
    named = next((name for name in fields.system if value.get(name) is not None), "system")
    return Request(found, value.get(named), fields.messages, named)


def _anthropic(rendering: Rendering, model: str, tools: Tools | None, _: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "messages": rendering.messages} | _given(system=rendering.system, tools=tools)


def _chat(rendering: Rendering, model: str, tools: Tools | None, _: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "messages": rendering.messages} | _given(tools=tools)


def _responses(rendering: Rendering, model: str, tools: Tools | None, _: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, "input": rendering.messages} | _given(instructions=rendering.system, tools=tools)


def _gemini(rendering: Rendering, model: str, tools: Tools | None, settings: dict[str, Any]) -> dict[str, Any]:
    config = {**_object_in(settings, "config"), **_given(system_instruction=rendering.system, tools=tools)}
    return {"model": model, "contents": rendering.messages} | _given(config=config)


def _bedrock(rendering: Rendering, model: str, tools: Tools | None, settings: dict[str, Any]) -> dict[str, Any]:
    system = [{"text": rendering.system}] if rendering.system else None
    configured = {**_object_in(settings, "toolConfig"), **_given(tools=tools)}
    return {"modelId": model, "messages": rendering.messages} | _given(system=system, toolConfig=configured)


_REQUESTS: Final[Mapping[str, Callable[[Rendering, str, Tools | None, dict[str, Any]], dict[str, Any]]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "mistral": _chat,
}


def _object_in(settings: dict[str, Any], name: str) -> Mapping[str, Any]:
    """A setting that the rendering adds to, taken out of the settings."""
    value = settings.pop(name, {})
    if not isinstance(value, Mapping):
        raise Refused(
            f"{name} is of type {type(value).__name__}, which nothing can be added to",
            action="request",
            subject=name,
            hint="pass it as a dict",
        )
    return value


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value}
