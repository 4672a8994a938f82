"""Planted defects, real ones among them that are put back. Each has to be found, or finding nothing means nothing."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz import targets
from turnwal.core import line
from turnwal.formats import doctor, weighing
from turnwal.store import urls


@dataclass(frozen=True, slots=True)
class Planted:
    """A defect: where it is, what stands there instead, which target meets it, and as what it is to be found."""

    module: Any
    name: str
    instead: Any
    target: str
    kind: str

    @contextmanager
    def there(self) -> Iterator[None]:
        """A block in which the defect is there."""
        kept = getattr(self.module, self.name)
        setattr(self.module, self.name, self.instead)
        try:
            yield
        finally:
            setattr(self.module, self.name, kept)


def _marking(weigh: Callable[..., Any]) -> Callable[..., Any]:
    def weighed(found: Any, items: Any) -> Any:
        if found.path.is_file():
            with found.path.open("ab") as file:
                file.write(b"\n")
        return weigh(found, items)

    return weighed


def _hoarding(text: str) -> str:
    hoard = bytearray(b"x") * (300 * 1024 * 1024)
    return text if hoard else ""


def _endless(text: str) -> str:
    while "%" in text:
        pass
    return text


CANARIES: Final[Mapping[str, Planted]] = {
    "half a character in a path": Planted(urls, "_encodable", lambda _, path: path, "text", "UnicodeEncodeError"),
    "NaN is taken for a number": Planted(line, "_no_constant", float, "line", "InvalidEvent"),
    "a reader that does not end": Planted(targets, "shown", _endless, "text", "Hang"),
    "a reader that writes": Planted(doctor, "weigh", _marking(weighing.weigh), "format-codex", "Broken"),
    "a reader that holds too much": Planted(targets, "shown", _hoarding, "text", "Memory"),
}
