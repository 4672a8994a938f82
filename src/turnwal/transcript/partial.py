"""Text that was shown while it streamed in and whose message never came, put together from its deltas.

Promises: a message that came takes the place of its deltas; what is left stands where it was shown, and is hidden by a
replace that covers that place.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from turnwal.core.findings import Finding
from turnwal.core.line import Event
from turnwal.core.surface import Surface, range_of
from turnwal.core.values import number_of, text_of
from turnwal.transcript.message import Message


class Partial:
    """The deltas of one run that no message took the place of."""

    def __init__(self, surface: Surface) -> None:
        """Begin with none; `surface` is that of the run, which has taken in each event before this is fed with it."""
        self._surface = surface
        self._firsts: list[Event] = []
        """The first delta of each text, in order."""
        self._texts: list[dict[int, str]] = []
        """What was shown since, by part."""
        self._open = False

    def feed(self, event: Event, changed: int | None) -> int | None:
        """Take the next event of the run in; returns the index of the first visible event whose text changed, or None.

        `changed` is the index from which the event changed the surface.
        """
        seq = self._fed(event)
        # a replace may cover what was shown behind the event before it
        indexes = [] if changed is None else [changed - 1]
        if seq is not None:
            indexes.append(self._surface.before(seq))
        return max(min(indexes), 0) if indexes else None

    def _fed(self, event: Event) -> int | None:
        """The seq of the first delta of the text that an event changed."""
        match event.type:
            case "assistant_delta":
                if not self._open:
                    self._firsts.append(event)
                    self._texts.append({})
                    self._open = True
                part = number_of(event.data, "index") or 0
                self._texts[-1][part] = self._texts[-1].get(part, "") + (text_of(event.data, "text") or "")
                return self._firsts[-1].seq
            case "assistant_message" if self._open:
                self._open = False
                self._texts.pop()
                return self._firsts.pop().seq
            case "step_start" | "step_end" | "turn_end":
                self._open = False
            case _:
                pass
        return None

    def behind(self, index: int) -> Iterator[Message]:
        """What was shown between a visible event and the next one, each text as a message."""
        if not self._firsts:
            return
        surface = self._surface
        _, last = range_of(surface[index].data) or (0, -1)
        begin = bisect_right(self._firsts, max(surface.position(index), last), key=_seq)
        for first, texts in zip(self._firsts[begin:], self._texts[begin:], strict=True):
            if index + 1 < len(surface) and first.seq >= surface.position(index + 1):
                return
            parts: list[Mapping[str, Any]] = [
                {"type": "text", "content": texts[part]} for part in sorted(texts) if texts[part]
            ]
            said = Finding(
                "partial_message", (first.seq,), "text that was shown, of a message that never came, is sent"
            )
            if parts:
                yield Message("assistant", first, parts, complete=False, findings=(said,))


def _seq(event: Event) -> int:
    return event.seq
