"""Bare arrays of a provider's messages, or requests that hold one, as applications save them: what all four share.

Such an array has no times, no version and no dispatch records: position is everything, and an unanswered call may have
run. What makes it valid for its provider is the transcript's part (`docs/transcripts.md`): it is parsed, checked and
patched there. A repaired copy is the same array with the answers that are missing, and with each result behind its
call; it has no open place for a mark, so the text of an answer is what it is known by.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from turnwal.core.errors import InvalidEvent, OverLimit
from turnwal.formats.arrays import WHOLE_MAX, elements, opening
from turnwal.formats.diagnosis import Diagnosis, OnResume
from turnwal.formats.format import Depth, Format, Found, Sample
from turnwal.formats.items import TURNWAL, Fault, Item, Said
from turnwal.formats.lenient import encoded, value_of
from turnwal.formats.repairing import fresh, unloadable
from turnwal.formats.sending import PAIRING, first_problem, sendable
from turnwal.formats.wording import is_ours
from turnwal.transcript.targets import TARGETS

Message = Mapping[str, Any]

_REPAIRED_MAX: Final = 512 * 1024 * 1024
"""Bytes of an array that is repaired: all of it is in memory then."""
_SHAPES: Final = (AttributeError, IndexError, InvalidEvent, KeyError, OverLimit, TypeError, ValueError)
"""What a message of an odd shape makes of its parser."""


@dataclass(frozen=True, slots=True)
class Array:
    """One kind of array."""

    target: str
    """The target of transcripts that knows its messages."""
    field: str
    """Where a request has it."""
    fits: Callable[[Message], bool]
    """Whether a message may be of this kind."""
    marks: Callable[[Message], bool]
    """Whether a message can be of no other kind."""
    counts: Callable[[Message], bool]
    """Whether a message may ask for a call or answer one."""
    ends: Callable[[Message], bool] | None = None
    """Where several items make one reply: whether an item is the last that is read together with those before it."""
    rules: AbstractSet[str] = PAIRING
    """What its provider refuses of calls and results, by the codes of `turnwal check`."""

    def recognises(self, sample: Sample) -> bool:
        """Whether a file holds such an array."""
        found = self._messages(sample)
        return bool(found) and all(self._may_be(each) for each in found) and any(map(self.marks, found))

    def _may_be(self, message: object) -> bool:
        return isinstance(message, dict) and self.fits(message)

    def _messages(self, sample: Sample) -> tuple[Any, ...]:
        if sample.array:
            return sample.records
        first = sample.records[0] if len(sample.records) == 1 and sample.kind in ("json", "lines") else None
        listed = first.get(self.field) if isinstance(first, dict) else None
        return tuple(listed) if isinstance(listed, list) else ()

    def read(self, found: Found, depth: Depth) -> Iterator[Item]:
        """Read an array, message by message."""
        together: list[Message] = []
        first = 0
        for item in elements(found.path, self._key(found.path)):
            if isinstance(item, Fault):
                yield item
                continue
            index, message = item
            if not isinstance(message, dict):
                yield Fault("corrupt", f"{self._key(found.path) or 'messages'}[{index}]", "it is no message")
                continue
            if depth == "calls" and not self.counts(message):
                continue
            if not together:
                first = index
            together.append(message)
            if depth == "calls" or self.ends is None or self.ends(message):
                yield from self._said(together, first)
                together = []
        if together:
            yield from self._said(together, first)

    def _said(self, messages: list[Message], index: int) -> Iterator[Item]:
        place = f"messages[{index}]"
        history = import_module(f"turnwal.transcript.{TARGETS[self.target]}.parse").history
        try:
            for type_, data in history(messages):
                yield Said(place, type_, _told(data) if type_ == "tool_result" else data)
        except _SHAPES as error:
            yield Fault("corrupt", place, f"a message of an unknown shape ({type(error).__name__}: {error})")

    def _key(self, path: Path) -> str | None:
        with path.open("rb") as file:
            head = file.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n")
        return self.field if head.startswith(b"{") else None

    def repair(self, found: Found, diagnosis: Diagnosis, out: Path) -> None:
        """Write the array with an answer for each call that has none."""
        size = found.path.stat().st_size
        if size > _REPAIRED_MAX:
            raise OverLimit(
                f"it has {size:,} bytes, and {_REPAIRED_MAX:,} can be repaired",
                action="repair",
                subject=str(found.path),
                hint="`turnwal import` takes it over, and `export --to` gives a request without it",
            )
        content = found.path.read_bytes()
        key = self._key(found.path)
        try:
            value = value_of(content)
        except msgspec.MsgspecError:
            value, content = self._cut(found.path, key), b""
        messages = value if key is None else value[key]
        if not content or diagnosis.open or first_problem(self.target, messages, self.rules) is not None:
            made = sendable(self.target, messages, found.name, self.rules)
            content = encoded(made if key is None else {**value, key: made})
        with fresh(out) as file:
            file.write(content)

    def _cut(self, path: Path, key: str | None) -> Any:
        """What can be read of an array that was cut off, with the fields before it where a request holds it.

        Raises `Refused` where it goes on behind what is no JSON: nothing that stands there may be missing in a copy.
        """
        listed: list[Any] = []
        for item in elements(path, key):
            if not isinstance(item, Fault):
                listed.append(item[1])
            elif item.kind != "torn":
                raise unloadable(path, "its provider", f"{item.place}: {item.what}")
        return listed if key is None else {**opening(path, key), key: listed}

    def resumed(self, found: Found) -> tuple[OnResume, str]:
        """What the provider does with an array in which nothing is open, and why."""
        if found.path.stat().st_size > WHOLE_MAX:
            return "unknown", f"where its results stand is not looked at: it has over {WHOLE_MAX:,} bytes"
        key = self._key(found.path)
        messages = [item[1] for item in elements(found.path, key) if not isinstance(item, Fault)]
        problem = first_problem(self.target, messages, self.rules)
        if problem is None:
            return "continues", ""
        return "refused", f"{problem.position}: {problem.message} ({problem.code})"


def _told(data: dict[str, Any]) -> dict[str, Any]:
    """A result without a key of its own numbering; the answer of a repair known as such."""
    told = {name: value for name, value in data.items() if name != "call"}
    parts = told.get("parts")
    text = parts[0].get("content") if isinstance(parts, list) and len(parts) == 1 else None
    return told | {"metadata": {"synthetic": True, "by": TURNWAL}} if is_ours(text) else told


def format_of_array(name: str, title: str, array: Array, resume_text: str) -> Format:
    """The format of an array."""
    return Format(
        name=name,
        title=title,
        on_resume="refused",
        resume_text=resume_text,
        recognises=array.recognises,
        read=array.read,
        repair=array.repair,
        resumed=array.resumed,
    )


def types_in(content: object) -> set[Any]:
    """The types of the blocks in a message's content."""
    blocks: Iterable[object] = content if isinstance(content, list) else ()
    return {block.get("type") for block in blocks if isinstance(block, dict)}
