"""`turnwal import`: the lines of a file or standard input as a session, byte for byte; or another tool's session.

Promises: the whole file is read and checked before anything is stored, so what is refused leaves nothing behind.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from turnwal.cli import exits
from turnwal.cli.foreign import pick_option
from turnwal.cli.places import Place, json_option, place_of, store_of, store_option
from turnwal.cli.screen import Screen, note, print_json

if TYPE_CHECKING:
    from turnwal.core.chain import Head
    from turnwal.store.plain import PlainFile

_STDIN: Final = "-"
_FIRST_LINE_MAX: Final = 1 << 20


@click.command("import", short_help="Store the lines of a file, or another tool's session, as a session.")
@click.argument("file", metavar="PATH")
@click.argument("session", metavar="[SESSION]", required=False)
@pick_option
@store_option
@json_option
def importing(*, file: str, session: str | None, pick: str | None, store: str | None, as_json: bool) -> int:
    """Store the lines of the file PATH (- for standard input) as a new session, so that it keeps every hash.

    A session of another tool, which `doctor` can read, becomes one: its messages, calls and results in order, with
    where it came from in the first line.

    Without SESSION it gets the id that the log gives itself: in its first line, or where it was last forked; another
    tool's session the id that the tool gave it. An id that is taken is refused, and so are lines that do not chain
    (exit 4).
    """
    if file != _STDIN and (pick is not None or _is_foreign(file)):
        return _import_foreign(file, session, pick, store, as_json=as_json)
    with _source(file) as source:
        own, torn = _look_through(source, file)
        target = _target(own, session, store)
        with target.sessions:
            from turnwal.session.transfer import lines_of

            head = target.sessions.take_in(target.id, lines_of(source, source.session))
    if torn:
        note(f"the torn tail of {torn:,} bytes is no line; a damage event stands in its place")
    _tell(target.name, head, as_json=as_json, left_out_bytes=torn)
    return exits.OK


def _target(own: str, session: str | None, store: str | None) -> Place:
    # only what was typed may be a path; a log that names itself one is still an id of the store
    return Place(store_of(store, new=True), own, own) if session is None else place_of(session, store, new=True)


def _tell(name: str, head: "Head", *, as_json: bool, **more: Any) -> None:
    if as_json:
        print_json({"session": name, "events": head.count, "head": str(head), **more})
    else:
        Screen().line(f"{name}: imported {head.count:,} events")
        Screen().line(f"head  {head}")


def _is_foreign(file: str) -> bool:
    """Whether a path holds what another tool wrote: a directory, or a file that does not begin as a log does."""
    from turnwal.core.line import Unreadable, read

    path = Path(file)
    if path.is_dir() or "://" in file:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        first = opened.readline(_FIRST_LINE_MAX)
    try:
        read(first.removesuffix(b"\n"))
    except Unreadable:
        from turnwal.formats.finding import find
        from turnwal.formats.format import Found

        return any(isinstance(each, Found) for each in find([path]))
    return False


def _import_foreign(file: str, session: str | None, pick: str | None, store: str | None, *, as_json: bool) -> int:
    from turnwal.cli.foreign import one_of
    from turnwal.formats.doctor import reading_errors
    from turnwal.formats.importing import lines_of
    from turnwal.session.sessions import writer

    found = one_of(file, pick, action="import")
    with reading_errors(found):
        own = found.session or Path(found.path).name.split(".")[0] or found.format.name
        target = _target(own, session, store)
        with target.sessions:
            made = target.sessions.made_of(
                target.id,
                lambda nonce, time: lines_of(found, target.id, nonce=nonce, time=time, writer=writer()),
            )
    _tell(target.name, made, as_json=as_json, imported_from=found.format.name)
    return exits.OK


@contextmanager
def _source(file: str) -> Iterator["PlainFile"]:
    """The file as a store of one session; what cannot be read twice is kept in a file of its own meanwhile."""
    from turnwal.store.plain import PlainFile

    if file != _STDIN and Path(file).is_file():
        yield PlainFile(file)
        return
    with tempfile.TemporaryDirectory(prefix="turnwal-") as directory:
        path = Path(directory, "import.jsonl")
        with path.open("xb") as kept, sys.stdin.buffer if file == _STDIN else Path(file).open("rb") as stream:
            shutil.copyfileobj(stream, kept)
        yield PlainFile(path, network=True)


def _look_through(source: "PlainFile", file: str) -> tuple[str, int]:
    """The id that the log gives itself, and the length of its torn tail; raises for a file that is no whole log."""
    from turnwal.core.errors import EmptySession
    from turnwal.core.types import check_known
    from turnwal.session.opening import check_start, damaged
    from turnwal.store.protocol import Gap

    if source.probe(source.session).empty:
        raise EmptySession("there is not a single line", action="import", subject=file, hint="pass a session's JSONL")
    own = check_start(source, source.session).data.get("id")
    for item in source.read(source.session):
        if isinstance(item, Gap):
            if item.corrupt:
                raise damaged(file, item)
            return _named(own, source), item.length
        check_known(item.event)
        if item.event.type == "session_fork":
            own = item.event.data.get("id")
    return _named(own, source), 0


def _named(own: object, source: "PlainFile") -> str:
    return own if isinstance(own, str) and own else source.session
