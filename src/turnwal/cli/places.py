"""Where a session is: in a store, or in a plain file; and the arguments that every verb takes for it."""

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from turnwal.cli.screen import note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnwal.session.session import Session
    from turnwal.session.sessions import Sessions

F = TypeVar("F", bound=Callable[..., Any])

STORE_DEFAULT: Final = "./.turnwal"
_SUFFIX: Final = ".jsonl"

store_option: Final = click.option(
    "--store",
    metavar="URL",
    envvar="TURNWAL_STORE",
    show_envvar=True,
    help=f"The store: a directory, or a URL. {STORE_DEFAULT} unless told. Given here, SESSION is always an id.",
)
accept_loss_option: Final = click.option(
    "--accept-loss", is_flag=True, help="Where old bytes of the log are lost, find the call past them."
)
json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON; docs/cli.md has the form.")


def session_argument(name: str = "session") -> Callable[[F], F]:
    """The argument that names a session."""
    return click.argument(name, metavar=name.upper())


@dataclass(frozen=True, slots=True)
class Place:
    """One session and the store it is in."""

    sessions: "Sessions"
    id: str
    name: str
    """What the user called it: the id, or the path of the file."""


@contextmanager
def at(session: str, store: str | None, *, new: bool = False) -> "Iterator[Place]":
    """The place of a session, for the length of a block; see `place_of`."""
    place = place_of(session, store, new=new)
    with place.sessions:
        yield place


def place_of(session: str, store: str | None, *, new: bool = False) -> Place:
    """Where a session is, or is to be if it is `new`. Makes nothing.

    Raises what `store_of` does and, for a path that can be none, `InvalidName`.
    """
    from turnwal.session.sessions import Sessions

    # Path.is_file would raise for an id that is too long to be a path, or holds what no path does
    if _store_was_named() or not (session.endswith(_SUFFIX) or os.path.isfile(session)):  # noqa: PTH113
        return Place(store_of(store, new=new), session, session)
    from turnwal.core.errors import InvalidName
    from turnwal.store.plain import PlainFile

    if "\0" in session:
        raise InvalidName("a path holds no NUL", action="open", subject=session, hint="name the file, or its session")
    file = PlainFile(session)
    return Place(Sessions(file), file.session, session)


def store_of(store: str | None, *, new: bool = False) -> "Sessions":
    """The sessions of the store that was named, or of the default one.

    Raises `InvalidStoreUrl`, and `StoreNotFound` for a store that --store names and that is not there, unless it may be
    `new`. The environment and the default name where sessions will be, so there an absent store is only told of.
    """
    from turnwal.session.sessions import open_store

    sessions = open_store(STORE_DEFAULT if store is None else store)
    made = getattr(sessions.store, "made", None)
    if new or made is None or made():
        return sessions
    if _store_was_named():
        sessions.close()
        from turnwal.core.errors import StoreNotFound

        raise StoreNotFound(
            "there is no such store",
            action="open",
            subject=str(store),
            hint="look at the spelling; a store is made with its first session",
        )
    context = click.get_current_context(silent=True)
    # who names a session hears that it is not there; who means all of them would hear of nothing to do
    if context is not None and context.params.get("session", "") is None and not context.params.get("as_json"):
        note(f"there is no store at {STORE_DEFAULT if store is None else store} yet")
    return sessions


@contextmanager
def writing(place: Place, *, accept_loss: bool = False) -> "Iterator[Session]":
    """Open a session that is whole, to add to it; never begins one, and never recovers.

    Raises `Interrupted` where recovery comes first, `EmptySession` and `SessionNotFound`.
    """
    from turnwal.core.errors import Interrupted

    refuse_empty(place, "write")
    session = place.sessions.session(place.id, create=False, recover="refuse", accept_loss=accept_loss)
    try:
        session.open()
    except Interrupted as error:
        error.hint = "`turnwal plan` shows what recovery would append, `turnwal recover` appends it; do that first"
        raise
    try:
        yield session
    finally:
        session.close()


def refuse_empty(place: Place, action: str) -> None:
    """Raise `EmptySession` for one that never began: opening it would begin it. Raises what `is_empty` does."""
    from turnwal.core.errors import EmptySession
    from turnwal.session.opening import is_empty

    if is_empty(place.sessions.store, place.id, action):
        raise EmptySession("it never began", action=action, subject=place.name, hint="there is nothing to work on")


def _store_was_named() -> bool:
    """Whether --store stands on the command line; the environment leaves a path a path."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.get_parameter_source("store")
    return source is click.core.ParameterSource.COMMANDLINE
