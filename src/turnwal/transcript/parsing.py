"""Parsing: a provider's reply as the data of an `assistant_message`, and a list of messages as events.

Promises: nothing of a reply is lost, and no package of a provider is imported. A stream that was cut off gives a
message that says it never completed: its calls are never owed.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Self

from turnwal.core import keys, log
from turnwal.core.errors import InvalidEvent
from turnwal.core.values import asking_parts, id_of
from turnwal.transcript.plain import plain
from turnwal.transcript.targets import package_of

_ODD: Final = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
"""What reading data of another form, or of any depth, raises."""


def parse(target: str, reply: object) -> dict[str, Any]:
    """Return the data of an `assistant_message` for a reply of a target.

    `reply` is the reply object of the provider's package, its JSON as a dict, or the chunks of a stream in order.
    Raises `InvalidName` for an unknown target and `InvalidEvent` for what is no reply of it.
    """
    module = import_module(f"{package_of(target)}.parse")
    try:
        data = plain(reply) if _is_whole(reply) else module.assembled(map(plain, reply))  # type: ignore[call-overload]
        parsed: dict[str, Any] = module.reply_data(data)
    except _ODD as error:
        raise _no_reply(target, error) from error
    return parsed


def shown(target: str, chunk: Mapping[str, Any]) -> Iterator[tuple[Hashable, str]]:
    """The text that a chunk of a stream shows, each with the place in the reply that it belongs to.

    `chunk` is data. Raises `InvalidName` for an unknown target and `InvalidEvent` for what is no chunk of it.
    """
    module = import_module(f"{package_of(target)}.parse")
    try:
        for place, text in module.shown(chunk):
            if text:
                yield place, text
    except _ODD as error:
        raise _no_reply(target, error) from error


class Log(log.Log):
    """A log in memory that can be made of a provider's messages."""

    @classmethod
    def seed(cls, target: str, messages: Sequence[Mapping[str, Any]], *, system: object = None) -> Self:
        """Return a log of a plain list of messages; rendered for the same target it is that list again.

        It has no turns: nothing in it is ever owed, and a call without a result is answered when it is rendered.
        Raises `InvalidName` for an unknown target and `InvalidEvent` for what is no list of its messages.
        """
        module = import_module(f"{package_of(target)}.parse")
        if not isinstance(messages, (list, tuple)):
            raise _no_list(target, f"a {type(messages).__name__} is no list of messages")
        made = cls()
        waiting: dict[str, list[str]] = {}
        try:
            for type_, data in module.history(plain(messages), plain(system)):
                named = data
                if type_ == "tool_result":
                    asked = None if "call" in data else waiting.get(id_of(data))
                    named = {"call": asked.pop(0), **data} if asked else data
                event = made.append(type_, named)
                if type_ == "assistant_message":
                    for index, part in asking_parts(event.data):
                        waiting.setdefault(id_of(part), []).append(keys.text(keys.pack(event.seq, index)))
        except _ODD as error:
            raise _no_list(target, f"it is no list of {target} messages ({type(error).__name__}: {error})") from error
        return made


def _no_reply(target: str, error: Exception) -> InvalidEvent:
    return InvalidEvent(
        f"it is no reply of {target} ({type(error).__name__}: {error})",
        action="parse",
        subject=target,
        hint="pass the reply as the provider gave it, and the target that gave it",
    )


def _no_list(target: str, message: str) -> InvalidEvent:
    return InvalidEvent(message, action="seed", subject=target, hint="pass the messages as a request has them")


def _is_whole(reply: object) -> bool:
    """Whether a reply is one object, and not the chunks of a stream."""
    return isinstance(reply, Mapping) or hasattr(reply, "model_dump") or not isinstance(reply, Iterable)
