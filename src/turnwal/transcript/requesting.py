"""Requests: a rendering with model, tools and settings, as the arguments of the provider's own client.

Promises: nothing of the settings is changed, and nothing is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from turnwal.core.errors import Refused
from turnwal.transcript.render import Rendering

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
