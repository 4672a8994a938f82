"""A checkpoint that is written again: the same values, extensions untouched, with channels put and tasks ended.

Source: langchain-ai/langgraph at f09cfe8f: a node runs when the version of the channel that triggers it is newer than
the one it has seen (`pregel/_algo.py`), and a task that was sent stands in `__pregel_tasks`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from turnwal.formats.langgraph.answering import Held
from turnwal.formats.langgraph.decoding import Sealed, opened
from turnwal.formats.langgraph.messages import message_of
from turnwal.formats.langgraph.thread import TASKS, call_ids

BRANCH: Final = "branch:to:"
"""The channel that triggers a node begins with this."""

_PYDANTIC: Final = 5
_HEAD: Final = re.compile(r"(\d+)(\..*)?", re.DOTALL)


class State:
    """The state of a checkpoint. Raises `Sealed` where it has not the shape of one."""

    def __init__(self, type: str, checkpoint: Any) -> None:
        """Take the raw value of a checkpoint that is serialised as `type`."""
        if not isinstance(checkpoint, dict) or type not in ("msgpack", "json"):
            raise Sealed("it is no checkpoint")
        self._type = type
        self.checkpoint: dict[str, Any] = checkpoint
        parts = [checkpoint.get(name) for name in ("channel_values", "channel_versions", "versions_seen")]
        if not all(isinstance(part, dict) for part in parts):
            raise Sealed("it is no checkpoint")
        self.values, self.versions, self._seen = (dict(part or {}) for part in parts)
        self.checkpoint |= {
            "channel_values": self.values,
            "channel_versions": self.versions,
            "versions_seen": self._seen,
        }
        self._put: list[str] = []

    def encoded(self) -> bytes:
        """The checkpoint as it is stored."""
        if "updated_channels" in self.checkpoint:
            self.checkpoint["updated_channels"] = sorted(self._put)
        encode = msgspec.msgpack.encode if self._type == "msgpack" else msgspec.json.encode
        return encode(self.checkpoint)

    def messages(self, channel: str) -> list[Held]:
        """The values of a channel, each with the message that it is; nothing for a channel of something else."""
        listed = self.values.get(channel)
        return [Held(value, message_of(opened(value))) for value in listed] if isinstance(listed, list) else []

    def result(self, fields: Mapping[str, Any], like: object) -> Any:
        """A tool's message in the shape that another message has."""
        if isinstance(like, Ext):
            told = ("langchain_core.messages.tool", "ToolMessage", fields, "model_validate_json")
            return Ext(_PYDANTIC, msgspec.msgpack.encode(told))
        if isinstance(like, dict) and "kwargs" in like:
            return {**like, "id": [*like["id"][:-1], "ToolMessage"], "kwargs": dict(fields)}
        if isinstance(like, dict) and "data" in like:
            return {"type": "tool", "data": dict(fields)}
        return {"role": "tool", **{name: fields[name] for name in ("content", "tool_call_id", "additional_kwargs")}}

    def put(self, channel: str, value: Any) -> None:
        """Put a value into a channel, which triggers what waits for it."""
        self.values[channel] = value
        self.versions[channel] = self._next_version()
        self._put.append(channel)

    def _next_version(self) -> Any:
        """A version over all that there are, in the form that the saver gave them."""
        newest = max(self.versions.values(), default=0, key=_number)
        number = _number(newest) + 1
        if not isinstance(newest, str):
            return number
        return f"{number:032}.0"

    def end_sent(self, ids: set[str]) -> bool:
        """Take away the tasks that were sent for these calls; whether there were any."""
        sends = self.values.get(TASKS)
        if not isinstance(sends, list):
            return False
        kept = [send for send in sends if not ids.intersection(call_ids(opened(send)))]
        if len(kept) == len(sends):
            return False
        if kept:
            self.put(TASKS, kept)
        else:
            del self.values[TASKS]
            self.versions[TASKS] = self._next_version()
            self._put.append(TASKS)
        return True

    def due(self) -> list[str]:
        """The nodes that are triggered."""
        return [
            channel.removeprefix(BRANCH)
            for channel in self.values
            if channel.startswith(BRANCH) and self._is_due(channel)
        ]

    def _is_due(self, channel: str) -> bool:
        seen = self._seen.get(channel.removeprefix(BRANCH))
        before = seen.get(channel) if isinstance(seen, dict) else None
        return before is None or _number(self.versions.get(channel, 0)) > _number(before)

    def end_node(self, node: str) -> None:
        """Take away the trigger of a node, as if it had run."""
        channel = BRANCH + node
        self.values.pop(channel, None)
        seen = self._seen.get(node)
        self._seen[node] = {**(seen if isinstance(seen, dict) else {}), channel: self.versions.get(channel, 0)}


def _number(version: object) -> int:
    """The counting part of a version."""
    if isinstance(version, (int, float)):
        return int(version)
    match = _HEAD.fullmatch(str(version))
    return int(match[1]) if match else 0
