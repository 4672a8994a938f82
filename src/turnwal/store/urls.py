"""Where a store is, in one text.

    memory:                     in this process
    sessions/                   a directory of session files
    file:sessions, file:///var  the same, said at length
    sqlite:agents.db            one SQLite file
    postgresql://host/database  a PostgreSQL database

A directory, a SQLite file and a database may end with `?heads`, or `?heads=DIR`: then the head of every session is kept
apart from its lines, in files (see `heads.py`).

Promises: text that looks like a URL and names no store is refused; no directory is ever made under such a name. No
password of a URL is in a message, however wrong the URL is.
Does not: touch the disk, beyond looking whether a path is a file.
"""

# pathlib would take a quarter of the time that importing turnwal may add
# ruff: noqa: PTH113, PTH120

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwal.core.errors import InvalidStoreUrl, StoreUnsupported
from turnwal.store.file import FileStore
from turnwal.store.memory import MemoryStore
from turnwal.store.protocol import Store

# a scheme has two letters or more, so that a drive letter is none
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)

_FORMS: Final = "a store is a directory, file:PATH, sqlite:PATH, postgresql://… or memory:"

_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")

_HEADS: Final = re.compile(r"([?&])heads(?:=([^&]*))?(?=&|$)")
"""Where a URL says that heads are kept; what else stands behind its question mark is the store's."""

_USER: Final = re.compile(r"//[^/:@?]*:")
"""Behind a user and a colon stands a password, up to the last @, since what is not encoded may hold any character."""
_PASSWORD: Final = re.compile(r"([?&](?:ssl)?password=)[^&]*")


def open_store(url: str | os.PathLike[str], **options: Any) -> Store:
    """Return the store that a URL or a path names; it is made with its first session.

    Options go to the store: `network=True` for files on a network file system, `heads=True` or `heads=DIR` to keep the
    head of every session apart from it, as `?heads` in a URL does. Raises `InvalidStoreUrl` for text that names no
    store, and for an option that the store does not have.
    """
    text = _text(url)
    match = _SCHEME.fullmatch(text) if isinstance(url, str) else None
    scheme, rest = (match[1].lower(), match[2]) if match else ("file", None)
    if match and scheme != "memory":
        rest, heads = _without_heads(text, rest or "")
        options = options if heads is None else {"heads": heads, **options}
    factory = _FACTORIES.get(scheme)
    if factory is None:
        raise _invalid(text, f"no store is called {scheme!r}", _meant(scheme, text, rest or ""))
    try:
        return factory(text, rest, options)
    except TypeError as error:
        raise _invalid(text, str(error), "the options of each store are listed with it") from error


def migrate_store(url: str) -> bool:
    """Make the tables of a PostgreSQL store, and say whether they were missing.

    Raises `InvalidStoreUrl` for a store that needs no such thing, `TooNew`, `StoreFailed` and `StoreUnsupported`.
    """
    match = _SCHEME.fullmatch(_text(url))
    if match is None or match[1].lower() not in ("postgresql", "postgres"):
        raise _invalid(url, "it makes what it needs by itself", "only postgresql://… has tables to make")
    try:
        from turnwal.store.postgres_schema import migrate  # noqa: PLC0415 - only who uses it pays for the driver
    except ImportError as error:
        raise _no_driver(error) from error
    return migrate(_dsn(match[2]))


def shown(url: str) -> str:
    """A URL as it may be printed: without its passwords."""
    user, end = _USER.search(url), url.rfind("@")
    if user is not None and user.end() <= end:
        url = f"{url[: user.end()]}…{url[end:]}"
    return _PASSWORD.sub(r"\1…", url)


def _without_heads(url: str, rest: str) -> tuple[str, bool | str | None]:
    """What follows a scheme without its `heads`, and what that says: True, a directory, or None where it is absent."""
    found = _HEADS.search(rest)
    if found is None:
        return rest, None
    directory = found[2]
    if directory and rest.startswith("//"):
        directory = _decoded(_encodable(url, directory))
    before, behind = rest[: found.start()], rest[found.end() :]
    return before + (found[1] + behind[1:] if behind else ""), directory or True


def _text(url: object) -> str:
    text = os.fspath(url) if isinstance(url, (str, os.PathLike)) else url
    if not isinstance(text, str):
        raise _invalid(url, f"it is a {type(text).__name__}, not text")
    if not text.strip() or "\0" in text:
        raise _invalid(url, "it holds a NUL" if text.strip() else "it is empty")
    return text


def _meant(scheme: str, url: str, rest: str) -> str:
    import difflib  # noqa: PLC0415 - only a mistake needs it

    near = difflib.get_close_matches(scheme, _FACTORIES, n=1)
    known = ", ".join(f"{name}:" for name in _FACTORIES)
    return f"{f'did you mean {near[0]}:{rest}' if near else f'known are {known}'}; a directory of that name is ./{url}"


def _memory(url: str, rest: str | None, options: Mapping[str, Any]) -> Store:
    if rest and rest.strip("/"):
        raise _invalid(url, "a memory store has no name", "memory: is always a new store")
    return MemoryStore(**options)


def _file(url: str, rest: str | None, options: Mapping[str, Any]) -> Store:
    path = _encodable(url, url) if rest is None else _path_of(url, rest)
    if os.path.isfile(path):
        raise _invalid(
            url,
            "it is a file, and a store is a directory",
            f"pass the directory {os.path.dirname(path) or '.'}, or the file itself to the command line",
        )
    return FileStore(path, **options)


def _path_of(url: str, rest: str) -> str:
    """The path of a `file:` URL; only the form with an authority (`file://`) is percent-encoded, as RFC 8089 has it."""
    if not rest.startswith("//"):
        path = rest
    else:
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise _invalid(
                url,
                f"it names the machine {host.rpartition('@')[2]!r}",
                "file:PATH is relative, file:///PATH is absolute",
            )
        path = slash + _decoded(_encodable(url, path))
    if not path or "\0" in path:
        raise _invalid(url, "it names no path")
    return _encodable(url, path)


def _encodable(url: str, path: str) -> str:
    """The path, if it is one that the system has bytes for; those of other encodings are halves of characters here."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise _invalid(url, "it holds half a character, which no path does") from None
    return path


def _decoded(text: str) -> str:
    return os.fsdecode(_ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), os.fsencode(text)))


def _sqlite(url: str, rest: str | None, options: Mapping[str, Any]) -> Store:
    from turnwal.store.sqlite import SqliteStore  # noqa: PLC0415 - only who uses it pays for the driver

    return SqliteStore(_path_of(url, rest or ""), **options)


def _postgres(url: str, rest: str | None, options: Mapping[str, Any]) -> Store:
    del url
    dsn = _dsn(rest or "")
    try:
        from turnwal.store.postgres import PostgresStore  # noqa: PLC0415 - only who uses it pays for the driver
    except ImportError as error:
        raise _no_driver(error) from error
    return PostgresStore(dsn, **options)


def _dsn(rest: str) -> str:
    """What the driver is given. It would take half a password for the host, and print it, where an @ is not encoded."""
    if any(map(_is_ambiguous, rest.split("?"))):
        hint = "write %40 for @ and %2F for / in the user, the password and the name of the database"
        raise InvalidStoreUrl("an @ or / in it is not encoded", action="open", subject="postgresql:", hint=hint)
    return f"postgresql:{rest}"


def _is_ambiguous(part: str) -> bool:
    """Whether an @ or / stands before the last @ of an authority, so that nobody can tell where the host begins."""
    before = part.partition("//")[2].rpartition("@")[0]
    return "@" in before or "/" in before


def _no_driver(error: ImportError) -> StoreUnsupported:
    return StoreUnsupported(
        f"the driver of PostgreSQL cannot be imported: {error}",
        action="open",
        subject="postgresql:",
        hint="install turnwal with its extra: pip install 'turnwal[postgres]'",
    )


_FACTORIES: Final[Mapping[str, Callable[[str, str | None, Mapping[str, Any]], Store]]] = {
    "memory": _memory,
    "file": _file,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
}
"""Scheme to what opens it, given the URL, what follows the scheme (None for a plain path), and the options."""


def _invalid(url: object, reason: str, hint: str = _FORMS) -> InvalidStoreUrl:
    return InvalidStoreUrl(reason, action="open", subject=shown(repr(url))[:200], hint=shown(hint))
