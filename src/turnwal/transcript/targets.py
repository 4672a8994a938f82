"""The targets by name."""

from typing import Final

from turnwal.core.errors import InvalidName

TARGETS: Final = {
    "anthropic": "anthropic",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "gemini": "gemini",
    "bedrock": "bedrock",
    "mistral": "mistral",
}
"""Each target with the package that knows it: Anthropic Messages, OpenAI Chat Completions and Responses, Gemini
generateContent, Bedrock Converse, Mistral chat."""


def package_of(target: object) -> str:
    """The package of a target. Raises `InvalidName` for a name that is none."""
    package = TARGETS.get(target) if isinstance(target, str) else None
    if package is None:
        raise InvalidName(
            "no such target", action="render", subject=f"{target!r:.80}", hint=f"the targets are {', '.join(TARGETS)}"
        )
    return f"turnwal.transcript.{package}"
