"""Small words for writing sessions in tests."""

from collections.abc import Callable
from typing import Any

import turnwal
from turnwal.core.line import Event
from turnwal.session.session import Session
from turnwal.session.sessions import Sessions


def asks(name: str, id: str = "k", **arguments: Any) -> dict[str, Any]:
    """A part that asks for a call."""
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def reply(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"parts": list(parts), **more}


def says(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


DONE = reply(says("done"))


def stored(sessions: Sessions, id: str) -> list[Event]:
    """What is durable, without closers."""
    return [item.event for item in sessions.store.read(id) if hasattr(item, "event")]


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def results(events: list[Event]) -> list[Event]:
    return [event for event in events if event.type == "tool_result"]


def text_of(event: Event) -> str:
    return " ".join(part["content"] for part in event.data["parts"])


def die(session: Session) -> None:
    """End a session as a crash does: what is not durable is gone, nobody owns it, nothing more is written."""
    journal = session._journal
    assert journal is not None
    journal._claim.release()
    journal.abandon(RuntimeError("died"))


@turnwal.tool(read_only=True)
def look(path: str = "") -> str:
    return f"content of {path}"


def pay(order: int = 0) -> dict[str, Any]:
    return {"paid": order}


def fails() -> None:
    raise ValueError("no such order")


def loses() -> None:
    raise turnwal.OutcomeUnknown("the connection was cut")


TOOLS: dict[str, Callable[..., Any]] = {"look": look, "pay": pay, "fails": fails, "loses": loses}
