"""Text that was shown while it streamed in and whose message never came, put together from its deltas.

Promises: a message that came takes the place of its deltas; what is left stands where it was shown.
"""

from collections.abc import Mapping
from typing import Any

from turnwal.core.findings import Finding
from turnwal.core.line import Event
from turnwal.core.values import number_of, text_of
from turnwal.transcript.message import Message


class Partial:
    """The deltas of one run that no message took the place of."""

    def __init__(self) -> None:
        """Begin with none."""
        self._texts: dict[int, tuple[Event, dict[int, str]]] = {}
        """By index of the visible event before them: the first delta, and the text of each part."""
        self._at: int | None = None

    def feed(self, event: Event, index: int) -> int | None:
        """Take the next event of the run in, with the index of the newest visible event; returns what index changed."""
        match event.type:
            case "assistant_delta" if index >= 0:
                if self._at is None:
                    self._at = index
                    self._texts.setdefault(index, (event, {}))
                texts = self._texts[self._at][1]
                part = number_of(event.data, "index") or 0
                texts[part] = texts.get(part, "") + (text_of(event.data, "text") or "")
                return self._at
            case "assistant_message" if self._at is not None:
                at, self._at = self._at, None
                del self._texts[at]
                return at
            case "step_start" | "step_end" | "turn_end":
                self._at = None
            case _:
                pass
        return None

    def after(self, index: int) -> Message | None:
        """What was shown behind the visible event at an index, as a message, or None."""
        found = self._texts.get(index)
        if found is None:
            return None
        first, texts = found
        parts: list[Mapping[str, Any]] = [
            {"type": "text", "content": texts[part]} for part in sorted(texts) if texts[part]
        ]
        said = Finding("partial_message", (first.seq,), "text that was shown, of a message that never came, is sent")
        return Message("assistant", first, parts, complete=False, findings=(said,)) if parts else None
