"""Which visible events ask for which calls, and which answer them: the scan's pairing beside the surface of one run.

Promises:
- A call is met under one key, however often it is asked for; a result that replaces another answers that one's call.
- Reading costs what a scan costs; what is held is the surface, and a few numbers for each call.

Does not: judge. A result that answers nothing, or the second of a call, is in `answers` under no key.
"""

from turnwal.core.line import Event
from turnwal.core.scan import Scan
from turnwal.core.surface import Surface, range_of
from turnwal.core.types import SURFACE


class Pairs:
    """The surface of one run, and which calls each event asks for and answers."""

    def __init__(self, run: str) -> None:
        """Begin with nothing read."""
        self.run = run
        self.surface, self.scan = Surface(), Scan()
        self._new_answers: list[tuple[int, int]] = []
        self.scan.pairs = self._new_answers
        self.asks: dict[int, dict[int, int]] = {}
        """By seq of the message: part index to the key of the call that the part asks for."""
        self.answers: dict[int, set[int]] = {}
        """By seq of the result: the keys of the calls it answers; a result that replaces another answers its call."""

    def feed(self, event: Event) -> int | None:
        """Take the next event of the log in; returns from where on the surface changed, None where it did not."""
        self.scan.feed(event)
        type = event.type
        if type not in SURFACE:
            return None
        if self._new_answers:  # by a result alone
            for key, seq in self._new_answers:
                self.answers.setdefault(seq, set()).add(key)
            self._new_answers.clear()
        if event.run != self.run:
            return None
        if type == "assistant_message":
            asked = self.scan.asked_last
            if asked:
                self.asks[event.seq] = asked
        elif type == "tool_result" and "replace" in event.data:
            replaced = range_of(event.data)
            if replaced is not None:
                self.answers[event.seq] = {
                    key for covered in self.surface.within(*replaced) for key in self.answers.get(covered.seq, ())
                }
        return self.surface.add(event)
