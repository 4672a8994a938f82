"""Ids: any text is one of its own, and what is none is refused."""

from contextlib import closing
from typing import Final

from turnwal.core.chain import EMPTY
from turnwal.core.errors import InvalidName, SessionNotFound
from turnwal.core.limits import SESSION_ID_CHARS_MAX
from turnwal.store.protocol import Presence
from turnwal.testing.conformance.kit import Check, Storage, check_in, refused, same
from turnwal.testing.conformance.material import lines_of, new_log, stored

CHECKS: Final[list[Check]] = []
_check = check_in(CHECKS)


@_check
def _absent_and_empty_are_two_answers(storage: Storage) -> None:
    """A session that is not there, one that never began, and one that did."""
    with closing(storage.open()) as store:
        same(store.probe("s"), Presence(exists=False, empty=False, owner=None), "a session that is not there")
        for act in (lambda: list(store.read("s")), lambda: list(store.newest("s"))):
            refused("reading a session that is not there", SessionNotFound, act)
        refused(
            "claiming what is not there, and may not be made,", SessionNotFound, lambda: store.claim("s", create=False)
        )
        same(list(store.sessions()), [], "the sessions of a new storage")
        claim = store.claim("s")
        claim.release()
        same(store.probe("s"), Presence(exists=True, empty=True, owner=None), "a session that never began")
        same((list(store.read("s")), list(store.newest("s"))), ([], []), "the lines of a session that never began")
        claim = store.claim("s", create=False)
        claim.append(lines_of(new_log()), EMPTY)
        claim.release()
        same(store.probe("s"), Presence(exists=True, empty=False, owner=None), "a session that began")


_IDS = (
    "a", "A", "b/c", "b\\c", "..", ".", "../escape", "/etc/passwd", ".hidden", "-rf", "with space", "tab\tnewline\n",
    "nul\0", "é", "e\u0301", "🙂" * 30, "\ud800", "\udcff", "%41", "a.jsonl", "a~b", "x" * 300, "x" * 301, "X" * 300,
    "ß", "SS", "CON", "x" * SESSION_ID_CHARS_MAX,
)  # fmt: skip


@_check
def _any_text_is_an_id_of_its_own(storage: Storage) -> None:
    """No two ids share a session, whatever they contain, and all are listed."""
    with closing(storage.open()) as store:
        for session in _IDS:
            claim = store.claim(session)
            same(claim.session, session, "the id of a claim")
            claim.append(lines_of(new_log(session)), EMPTY)
            claim.release()
    with closing(storage.open()) as store:
        for session in _IDS:
            same(stored(store, session), lines_of(new_log(session)), f"the lines of {session!r:.40}")
        listed = list(store.sessions())
        same(sorted(listed), sorted(_IDS), "the sessions listed")


@_check
def _what_is_no_id_is_refused(storage: Storage) -> None:
    """Empty, too long, or no text."""
    with closing(storage.open()) as store:
        for session in ("", "x" * (SESSION_ID_CHARS_MAX + 1), 7, None, b"bytes"):
            for act in (
                store.claim,
                store.probe,
                lambda name: list(store.read(name)),
                lambda name: store.put(name, lines_of(new_log())),
            ):
                refused(f"the id {session!r:.40}", InvalidName, lambda act=act, name=session: act(name))  # type: ignore[misc]
        same(list(store.sessions()), [], "the sessions listed")
