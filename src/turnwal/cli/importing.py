"""`turnwal import`: the lines of a session from a file or standard input, byte for byte.

Promises: the whole file is read and checked before anything is stored, so what is refused leaves nothing behind.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnwal.cli import exits
from turnwal.cli.places import Place, json_option, place_of, store_of, store_option
from turnwal.cli.screen import Screen, note, print_json

if TYPE_CHECKING:
    from turnwal.store.plain import PlainFile

_STDIN = "-"


@click.command("import", short_help="Store the lines of a file as a session.")
@click.argument("file", metavar="FILE")
@click.argument("session", metavar="[SESSION]", required=False)
@store_option
@json_option
def importing(*, file: str, session: str | None, store: str | None, as_json: bool) -> int:
    """Store the lines of FILE (- for standard input) as a new session, so that it keeps every hash.

    Without SESSION it gets the id that the log gives itself: in its first line, or where it was last forked. An id
    that is taken is refused, and so are lines that do not chain (exit 4).
    """
    with _source(file) as source:
        own, torn = _look_through(source, file)
        # only what was typed may be a path; a log that names itself one is still an id of the store
        target = Place(store_of(store, new=True), own, own) if session is None else place_of(session, store, new=True)
        with target.sessions:
            from turnwal.session.transfer import lines_of

            head = target.sessions.take_in(target.id, lines_of(source, source.session))
    if torn:
        note(f"the torn tail of {torn:,} bytes is no line; a damage event stands in its place")
    if as_json:
        print_json({"session": target.name, "events": head.count, "head": str(head), "left_out_bytes": torn})
    else:
        Screen().line(f"{target.name}: imported {head.count:,} events")
        Screen().line(f"head  {head}")
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
