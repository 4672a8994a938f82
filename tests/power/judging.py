"""What has to hold of the sessions and files in a state that a power failure left.

Every session that the workload ever wrote is read as it was found, opened by its next owner, written on and read again,
and verified where recovery wrote something, all through what turnwal offers to everybody. Its lines are held against
those of the recording's end: what is there has to be a beginning of them, byte for byte, as long as what was
acknowledged, with nothing behind it but what recovery says; the chain is computed here.

A session of which nothing was acknowledged may be one that is refused, since its first line is damaged: it is never
written to, and a person has to look. How often is counted.
"""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import turnwal
from tests.power.workloads import NOTE, text_of, tree_digest, url_of
from turnwal.core.errors import DamagedStart, StoreFailed
from turnwal.session.sessions import Sessions
from turnwal.session.verifying import verify
from turnwal.store.protocol import Record
from turnwal.testing.power import Recording
from turnwal.testing.power.exploring import build

_RECOVERY: Final = frozenset(
    {"damage", "session_start", "session_resume", "tool_result", "tool_outcome", "step_end", "turn_end"}
)
_AFTER: Final = "x.after"
_GENESIS: Final = "0" * 64
_BESIDE: Final = ("", "-wal", "-journal")
"""What belongs to a database."""

Head = tuple[int, str]


@dataclass
class Said:
    """What a workload had said by some moment."""

    heads: dict[str, dict[str, Head]] = field(default_factory=dict)
    """By store and session: count and hash of the longest head that was acknowledged."""
    files: dict[str, str] = field(default_factory=dict)
    """By path: the digest of a file or directory that is done."""
    piecemeal: set[str] = field(default_factory=set)
    """Those of them of which a part may be there before."""
    wrong: list[str] = field(default_factory=list)


def said(marks: Sequence[str]) -> Said:
    """Read the marks."""
    found = Said()
    for mark in marks:
        what, *rest = mark.split(" ")
        if what == "ACK":
            store, session, count, hash = rest
            heads = found.heads.setdefault(store, {})
            heads[session] = max(heads.get(session, (0, "")), (int(count), hash))
        elif what in ("WHOLE", "KEPT"):
            found.files[rest[0]] = rest[1]
            if what == "KEPT":
                found.piecemeal.add(rest[0])
        else:
            found.wrong.append(mark)
    return found


class SessionJudge:
    """Judges states of one recording.

    Where syncs fail (not `steady`), notes whose barrier failed may be there or not.
    """

    def __init__(self, recording: Recording, *, steady: bool = True) -> None:
        self._steady = steady
        self.expected: dict[str, dict[str, list[bytes]]] = {}
        """By store and session: the lines at the end of the recording."""
        self.problems: list[str] = []
        """What is wrong at the end of the recording, without any power failure."""
        self.seen: Counter[str] = Counter()
        whole = said(recording.marks)
        self._copied = whole
        self._judged: dict[bytes, list[str]] = {}
        with tempfile.TemporaryDirectory(prefix="turnwal-power-") as name:
            build(recording.after(), name)
            for store, heads in whole.heads.items():
                with turnwal.open_store(url_of(Path(name), store)) as sessions:
                    self.expected[store] = {session: _lines(sessions, session) for session in heads}
                for session, head in heads.items():
                    self.problems += self._sound(store, session, self.expected[store][session], head)
            self.problems += self._copies(Path(name), whole)

    def __call__(self, root: Path, marks: Sequence[str]) -> Iterator[str]:
        """What is wrong in one state."""
        known = said(marks)
        yield from known.wrong
        yield from self._copies(root, known)
        for store in self.expected:
            heads = known.heads.get(store, {})
            digest = _digest(root, store, heads)
            if digest not in self._judged:
                # what a state has of one store is judged once, whatever it has of others
                self._judged[digest] = [f"{store}: {wrong}" for wrong in self._store(root, store, heads)]
            yield from self._judged[digest]

    def _copies(self, root: Path, known: Said) -> Iterator[str]:
        """A copy is whole or not there, and there once it is done."""
        for path, digest in self._copied.files.items():
            there = (root / path).exists()
            if not there and path in known.files:
                yield f"{path} was done and is gone"
            in_time = path in known.files or path not in self._copied.piecemeal
            if there and in_time and tree_digest(root / path) != digest:
                yield f"{path} is not whole"
            self.seen["copies that are there"] += there

    def _store(self, root: Path, store: str, heads: dict[str, Head]) -> Iterator[str]:
        if not (root / store).exists():
            # a store that is not there is made with its first session, as in every workload
            yield from (f"it is gone, and with it {head[0]} acknowledged events of {id}" for id, head in heads.items())
            return
        try:
            yield from self._sessions(root, store, heads)
        except StoreFailed:
            if heads or self._steady:
                raise
            self.seen["stores that refuse, nothing in them acknowledged"] += 1

    def _sessions(self, root: Path, store: str, heads: dict[str, Head]) -> Iterator[str]:
        with turnwal.open_store(url_of(root, store)) as sessions:
            for session, lines in self.expected[store].items():
                head = heads.get(session, (0, ""))
                try:
                    yield from (f"{session}: {wrong}" for wrong in self._session(sessions, session, lines, head))
                except DamagedStart:
                    if head[0]:
                        raise
                    self.seen["never begun, refused with its first line torn"] += 1

    def _session(self, sessions: Sessions, id: str, expected: list[bytes], head: Head) -> Iterator[str]:
        found = _lines(sessions, id, torn=True) if sessions.store.probe(id).exists else []
        yield from self._held(found, expected, head, "as it was found")
        with sessions.session(id) as session:
            recovered = bool(session.recovered)
            session.append(_AFTER, {})
            session.flush()
        lines = _lines(sessions, id)
        if lines[: len(found)] != found:
            yield "recovery changed what was there"
        yield from self._held(lines, expected, head, "after it was recovered")
        yield from _chained(lines)
        if json.loads(lines[-1])["type"] != _AFTER:
            yield "what was appended after recovery is not its end"
        self.seen["sessions that were opened"] += 1
        if recovered:
            self.seen["sessions that were recovered"] += 1
            report = verify(sessions.store, id)
            if not report.sound or report.open_turns:
                yield f"not whole after it was recovered: {report.to_json()}"

    def _held(self, found: list[bytes], expected: list[bytes], head: Head, when: str) -> Iterator[str]:
        """Hold lines against those of the end of the recording, and what was acknowledged."""
        count, hash = head
        same = 0
        for line, wanted in zip(found, expected, strict=False):
            if line != wanted:
                break
            same += 1
        if same < count:
            yield f"{when}, {count} events were acknowledged and the first {same} are there"
        elif count and hashlib.sha256(found[count - 1]).hexdigest() != hash:
            yield f"{when}, the line of the acknowledged head is another one"
        allowed = {_AFTER, *_RECOVERY} if self._steady else {_AFTER, NOTE, *_RECOVERY}
        for line in found[same:]:
            type = json.loads(line)["type"]
            if type not in allowed:
                yield f"{when}, there is a {type} that nobody wrote there"

    def _sound(self, store: str, session: str, lines: list[bytes], head: Head) -> Iterator[str]:
        """Hold the end of the recording against what the workload meant to write."""
        yield from self._held(lines, lines, head, f"{session} in {store}, at the end of the recording")
        notes = [event["data"] for event in map(json.loads, lines) if event["type"] == NOTE]
        author = "origin" if session in ("forked", "taken") else session
        numbers = [note["n"] for note in notes]
        if any(note["text"] != text_of(author, note["n"]) for note in notes):
            yield f"the notes of {session} in {store} are not what was written"
        if numbers != (list(range(len(notes))) if self._steady else sorted(set(numbers))):
            yield f"the notes of {session} in {store} are {numbers}"


def _chained(lines: list[bytes]) -> Iterator[str]:
    prev = _GENESIS
    for seq, line in enumerate(lines):
        if not line.startswith(f'{{"seq":{seq},"prev":"{prev}",'.encode()):
            yield f"line {seq} does not go on from the one before"
        prev = hashlib.sha256(line).hexdigest()


def _lines(sessions: Sessions, session: str, *, torn: bool = False) -> list[bytes]:
    """The lines of a session; only where a torn tail is looked for may there be bytes that are none."""
    found: list[bytes] = []
    for item in sessions.store.read(session):
        if isinstance(item, Record):
            found.append(item.line)
        elif not torn:
            raise AssertionError(f"{session} has {item.length} bytes that are no record and not covered: {item.reason}")
    return found


def _digest(root: Path, store: str, heads: dict[str, Head]) -> bytes:
    """What a state has of one store, and what was acknowledged of it."""
    digest = hashlib.blake2b(repr(sorted(heads.items())).encode(), digest_size=16)
    place = root / store
    paths = sorted(place.iterdir()) if place.is_dir() else [Path(f"{place}{suffix}") for suffix in _BESIDE]
    for path in paths:
        if path.exists():
            content = path.read_bytes()
            digest.update(f"\0{path.name}\0{len(content)}\0".encode())
            digest.update(content)
    return store.encode() + digest.digest()
