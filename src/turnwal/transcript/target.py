"""What a target is: the rules by which the messages of a conversation become those of one provider's request.

Promises: a target is a function of the messages, the model and the ids taken so far, so that the same history gives the
same request. Whatever it leaves out or changes it notes as a finding with the seqs.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from turnwal.core.findings import Finding
from turnwal.transcript.ids import IdRule, Ids
from turnwal.transcript.message import Message, native_of

Wire = dict[str, Any]
"""A message as the provider's request has it."""

_MONTH: Final = "(?:0[1-9]|1[0-2])"
_DATED: Final = re.compile(
    rf"(?:[-@](?:\d{{8}}|\d{{4}}-\d{{2}}-\d{{2}}|2\d{_MONTH}|{_MONTH}\d{{2}}|latest))?(?:-v\d+(?::\d+)?)?$"
)
"""What dates a release: a day in full, a year and a month (`-2509`), a month and a day (`-0613`), or its alias."""


class Notes:
    """Where a target notes what it changes about one message."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        """Begin with what was found before."""
        self.findings: list[Finding] = [*findings]

    def add(self, code: str, message: str, *seqs: int) -> None:
        """Note one change; the codes are those of `CODES` in `render.py`."""
        self.findings.append(Finding(code, seqs, message))


class Target(ABC):
    """One provider's requests, for one model of it."""

    name: ClassVar[str]
    ids: ClassVar[IdRule]
    separate_system: ClassVar[bool]
    """Leading system text stands beside the messages, not among them."""
    body: ClassVar[str | None]
    """Where equal neighbours are merged: the field of a message that holds its list of blocks; else None."""

    def __init__(self, model: str | None) -> None:
        """Render for a model; None stands for the one that wrote each message."""
        self.model = model

    @abstractmethod
    def make(self, message: Message, ids: Ids, notes: Notes) -> list[Wire]:
        """What a message becomes, the answers of its calls included; empty where nothing of it can be sent."""

    def finish(self, messages: list[Wire], notes: Notes) -> list[Wire]:
        """The request's list, once equal neighbours are merged: what depends on where the list begins and ends."""
        del notes
        return messages

    def merges(self, last: Wire, following: Wire) -> bool:
        """Whether two neighbours of one role become one message, for targets that merge."""
        del last, following
        return True

    def text_block(self, text: str) -> Wire:
        """A block that holds text, for messages that are merged."""
        return {"type": "text", "text": text}

    def wrote(self, message: Message) -> bool:
        """Whether the model that is asked now is the one that wrote a message: signed blocks are its own (F29)."""
        data = message.event.data
        model = data.get("model")
        return self.model is None or model is None or self.is_one_of(self.model, model, data.get("asked"))

    def is_one_of(self, model: str, *names: object) -> bool:
        """Whether a model is meant by one of these names: what it was asked by, and what its reply says."""
        return any(isinstance(name, str) and self.family(name) == self.family(model) for name in names)

    def family(self, model: str) -> str:
        """What the releases of a model have in common."""
        return family(model)

    def verbatim(self, part: Mapping[str, Any]) -> Any | None:
        """The block that a part keeps for this target, or None."""
        if "native" not in part:
            return None
        native = native_of(part, self.name)
        return None if native is None else native.get("block")


def family(model: str) -> str:
    """A model's name without what dates a release of it: an alias and the release behind it are one model."""
    return _DATED.sub("", model.removeprefix("models/"))


def copied(value: Any) -> Any:
    """A copy of JSON data that shares nothing that can be changed."""
    kind = type(value)
    if kind is dict:
        return {name: item if type(item) is str else copied(item) for name, item in value.items()}
    if kind is list:
        return [item if type(item) is str else copied(item) for item in value]
    return value
