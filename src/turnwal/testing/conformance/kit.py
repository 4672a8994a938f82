"""What a check is, and the words it is written in."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from turnwal.core.errors import TurnwalError
from turnwal.store.protocol import Store


class Storage(Protocol):
    """A place where sessions are kept, beyond the life of one store object."""

    def open(self) -> Store:
        """Return a new store over this storage."""
        ...


Factory = Callable[[], AbstractContextManager[Storage]]
"""Gives a storage of its own at each call, empty, and cleans it up."""

Check = Callable[[Factory], None]
"""Returns if the store passes, raises otherwise."""


class NotConforming(AssertionError):
    """The store did what a store must not do, or did not do what it must."""


def check_in(checks: list[Check]) -> Callable[[Callable[[Storage], None]], Check]:
    """A decorator that makes a check of what is done with one storage, and puts it at the end of a list."""

    def decorate(body: Callable[[Storage], None]) -> Check:
        def on_new_storage(factory: Factory) -> None:
            with factory() as storage:
                body(storage)

        on_new_storage.__name__ = body.__name__.removeprefix("_")
        on_new_storage.__doc__ = body.__doc__
        checks.append(on_new_storage)
        return on_new_storage

    return decorate


def require(condition: object, otherwise: str) -> None:
    """Raise `NotConforming` unless the condition holds."""
    if not condition:
        raise NotConforming(otherwise)


def refused(what: str, error: type[TurnwalError] | tuple[type[TurnwalError], ...], act: Callable[[], object]) -> None:
    """Raise `NotConforming` unless the act raises the error."""
    try:
        act()
    except error:
        return
    raise NotConforming(f"{what} was let in")


def same(found: object, wanted: object, what: str) -> None:
    """Raise `NotConforming` unless both are equal."""
    require(found == wanted, f"{what}: {found!r:.300} instead of {wanted!r:.300}")
