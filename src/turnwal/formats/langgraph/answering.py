"""Putting results into a list of messages, where a provider wants them: behind the message that asks, in its order."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnwal.formats.langgraph.messages import Message


class Held(NamedTuple):
    """A value of a channel, and the message that it is."""

    value: Any
    message: Message | None

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that it asks for."""
        return [] if self.message is None else self.message.calls

    @property
    def answers(self) -> str | None:
        """The id of the call that it answers."""
        return None if self.message is None else self.message.answers


ResultFor = Callable[[Mapping[str, Any], Any], Any]
"""The result of an open call in the shape of the message that asks for it, or None where it stays open."""
Better = Callable[[Held], Any]
"""What takes the place of a result, or None where it stays."""


def answer(held: list[Held], result_for: ResultFor, better: Better) -> tuple[list[Any], set[str]]:
    """The values with every open call answered, and the ids of all calls of the messages that got a result."""
    missing = _missing(held)
    made: list[Any] = []
    touched: set[str] = set()
    index = 0
    while index < len(held):
        at, asking, calls = index, held[index], held[index].calls
        made.append(asking.value)
        block: list[Held] = []
        while calls and index + 1 < len(held) and held[index + 1].answers is not None:
            index += 1
            block.append(held[index])
        for position, call in enumerate(calls):
            there = next((result for result in block if result.answers == call["id"]), None)
            if there is not None:
                block.remove(there)
                instead = better(there)
                made.append(there.value if instead is None else instead)
            else:
                instead = result_for(call, asking.value) if (at, position) in missing else None
                if instead is not None:
                    made.append(instead)
            if instead is not None:
                touched.update(call["id"] for call in calls)
        made += [result.value for result in block]
        index += 1
    return made, touched


def _missing(held: list[Held]) -> set[tuple[int, int]]:
    """The calls without a result: the index of the message and the position in it.

    A result answers the newest message that has its id, and there the first call.
    """
    waiting: dict[str, list[tuple[int, int]]] = {}
    lost: set[tuple[int, int]] = set()
    for index, one in enumerate(held):
        for position, call in enumerate(one.calls):
            same = waiting.setdefault(call["id"], [])
            if same and same[0][0] != index:
                lost.update(same)
                same.clear()
            same.append((index, position))
        if one.answers is not None and waiting.get(one.answers):
            waiting[one.answers].pop(0)
    return lost.union(*waiting.values())
