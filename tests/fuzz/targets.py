"""What is fuzzed: functions of bytes that may raise nothing but what turnwal promises to raise, and hold what it says.

Each name of `TARGETS` is a reader of something that a stranger wrote: a line, a log, a foreign session, a request or a
reply of a provider, a URL. `Broken` is raised where a promise did not hold although nothing else was raised.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests import test_recovery_cases
from tests.core import build
from tests.formats import test_raw
from tests.fuzz.choices import Choices
from tests.fuzz.edits import edited, lines_edited, spoilt, written
from tests.fuzz.worlds import broken, cleared, put, worlds
from tests.session.replies import REPLIES
from turnwal import check, parse, patch, render
from turnwal.core import keys
from turnwal.core import line as lines
from turnwal.core.chain import EMPTY, Head, after
from turnwal.core.errors import OverLimit, TurnwalError
from turnwal.core.line import Event, Unreadable
from turnwal.core.log import Log
from turnwal.core.recovery import interrupted, open_turns, plan, recover
from turnwal.core.surface import Surface
from turnwal.core.types import TYPES
from turnwal.formats.doctor import diagnose, reading_errors, write_copy
from turnwal.formats.finding import find
from turnwal.formats.format import Found
from turnwal.formats.importing import lines_of
from turnwal.formats.registry import FORMATS
from turnwal.store.frames import frames
from turnwal.store.names import check_id, file_stem, session_of
from turnwal.store.protocol import Record
from turnwal.store.urls import open_store, shown
from turnwal.transcript import parsing
from turnwal.transcript.targets import TARGETS as PROVIDERS

SEEN: Final[Counter[str]] = Counter()
"""What was come to, so that a campaign can say whether it has looked at anything."""

Fuzzed = Callable[[bytes], object]

_SESSIONS_MAX: Final = 3
"""Sessions of one world that are read."""


class Broken(AssertionError):
    """A promise that did not hold."""


def _hold(what: str, *, holds: bool) -> None:
    if not holds:
        raise Broken(what)


@cache
def _logs() -> tuple[Log, ...]:
    made = [test_recovery_cases.log_of(case) for case in test_recovery_cases.CASES]
    rich = build.log_of(
        ("session_start", {"id": "s", "nonce": "0" * 32, "format": 1, "hash": "sha256"}),
        build.DURABLE,
        ("user_message", {"parts": [{"type": "text", "content": "go \u2028 \ud83d"}]}),
        build.STEP,
        build.ask("a", "b", arguments='{"n": 1}'),
        build.note("approval_request", "b", "4.1", question="may it?"),
        build.note("tool_suspended", "b", "4.1"),
        build.dispatch("a", "4.0", key="k" * 32, hints={"read_only": True}),
        build.result("a", "4.0"),
        ("damage", {"after": 8, "length": 3, "sha256": "0" * 64, "kind": "torn", "raw": "AAAA"}),
        ("assistant_delta", {"step": 1, "index": 0, "text": "hm"}),
        ("assistant_message", {"parts": [{"type": "text", "content": "ok"}], "complete": False}),
        ("user_message", {"parts": [{"type": "text", "content": "in short"}], "replace": [2, 2]}),
        ("x.note", {"any": [1, {"deep": 10**30}]}),
    )
    return (*(log for log in made if len(log)), rich)


def read_line(data: bytes) -> None:
    """One line: it is an event whose line reads as the same event, or it is refused; by one and by many alike."""
    choices = Choices(data)
    log = choices.pick(_logs())
    line = choices.pick(list(log.lines()))
    match choices.below(4):
        case 0:
            line = spoilt(choices, line)
        case 1:
            line = data
        case _:
            line = written(choices, edited(choices, json.loads(line)))
    check_line(line)


def check_line(line: bytes) -> Event | None:
    """The event that a line holds, or None; holds that it is held exactly."""
    together = lines.read_many([line])
    try:
        event = lines.read(line)
    except Unreadable as error:
        _hold("a line that is refused alone is refused among others", holds=not together)
        _hold("a reason is half a sentence", holds=bool(error.reason))
        SEEN["lines refused"] += 1
        return None
    _hold("a line that is read alone is read among others", holds=together == [event])
    SEEN["lines read"] += 1
    with suppress(OverLimit):  # a line may be longer than one that is made
        made, again = lines.make(event)
        _hold("what is read is made again", holds=again == event and lines.read(made) == event)
    return event


def read_frames(data: bytes) -> None:
    """A file of lines: every byte belongs to a record or a gap, and it does not matter in what pieces it is read."""
    choices = Choices(data)
    content = b"".join(line + b"\n" for line in choices.pick(_logs()).lines())
    content = (lines_edited if choices.below(2) else spoilt)(choices, content)
    for past_damage in (False, True):
        whole = _framed(content, len(content) or 1, past_damage=past_damage)
        pieces = _framed(content, 1 + choices.below(90), past_damage=past_damage)
        _hold("pieces of any size give the same", holds=whole == pieces)
        if past_damage or not isinstance(whole, list):
            continue
        SEEN["logs with a gap"] += any(not isinstance(item, Record) for item in whole)
        at = 0
        for item in whole:
            _hold("nothing stands between a record and the next", holds=item.position >= at)
            at = item.position + (len(item.line) + 1 if isinstance(item, Record) else item.length)
        _hold("all bytes are accounted for", holds=at in (len(content), len(content) + 1))


def _framed(content: bytes, size: int, *, past_damage: bool) -> Any:
    def source(offset: int) -> Iterator[bytes]:
        for at in range(offset, len(content), size):
            yield content[at : at + size]

    try:
        return list(frames(source, past_damage=past_damage))
    except TurnwalError as error:
        return type(error), str(error)


def read_log(data: bytes) -> None:
    """Chained lines whose data is not what their type says: planned, recovered, and shown to every provider."""
    choices = Choices(data)
    events = _odd_events(choices)
    try:
        planned = plan(events)
    except TurnwalError:
        return
    SEEN["plans with repairs"] += bool(planned)
    plan(events, strict=True)
    _hold("interrupted is a turn that is open", holds=interrupted(events) == bool(open_turns(events)))
    surface = Surface()
    for event in events:
        surface.add(event)
    log = Log()
    for event in events:
        with suppress(TurnwalError):
            log.append(event.type, event.data, run=event.run, time=event.time)
    recover(log)
    _hold("a second recovery appends nothing", holds=not plan(log))
    for repair in planned.repairs:
        Log().append(repair.type, repair.data, run=repair.run)
    provider = choices.pick(sorted(PROVIDERS))
    made = render(log, provider, waiting="placeholder")
    json.dumps(made.messages, allow_nan=False).encode()
    check(provider, made.messages, system=made.system)


def _odd_events(choices: Choices) -> list[Event]:
    rows: list[Any] = [[event.type, event.data, event.run] for event in choices.pick(_logs())]
    for _ in range(1 + choices.below(4)):
        at = choices.below(len(rows))
        match choices.below(6):
            case 0:
                rows.insert(choices.below(len(rows) + 1), deepcopy(rows[at]))
            case 1:
                rows[at][0] = choices.pick(sorted(TYPES))
            case 2:
                rows.insert(at, rows.pop())
            case _:
                rows[at] = [rows[at][0], edited(choices, rows[at][1]), rows[at][2]]
    head, events = EMPTY, []
    for type, changed, run in rows:
        if not isinstance(changed, dict):
            continue
        with suppress(TurnwalError):
            line, event = lines.make(Event(seq=head.count, prev=head.hash, time=0, type=type, run=run, data=changed))
            head = after(line, event)
            events.append(event)
    return events


def read_format(name: str, data: bytes) -> None:
    """A foreign session: found, diagnosed, imported and repaired, and never written to."""
    choices = Choices(data)
    with tempfile.TemporaryDirectory(prefix="turnwal-fuzz-") as directory:
        root = cleared(Path(directory, "session"))
        put(broken(choices, choices.pick(worlds(name))), root)
        check_session(root, Path(directory, "out"))


def check_session(root: Path, out: Path) -> None:
    """Look at, import and repair what is below a folder; only what is promised is raised."""
    before = _contents(root)
    sessions = [found for found in find([root]) if isinstance(found, Found)]
    for number, found in enumerate(sessions[:_SESSIONS_MAX]):
        diagnosis = diagnose(found)
        json.dumps(diagnosis.to_json())
        SEEN["sessions diagnosed"] += diagnosis.verdict != "unreadable"
        with suppress(TurnwalError), reading_errors(found):
            imported = lines_of(found, "s", nonce="0" * 32, time=1, writer={"name": "turnwal", "version": "0"})
            plan(Log.read(imported))
            SEEN["sessions imported"] += 1
        if found.format.repair is not None and diagnosis.verdict not in ("busy", "unreadable", "too_new"):
            with suppress(TurnwalError, OSError):
                write_copy(found, diagnosis, Path(f"{out}{number}"))
                SEEN["copies written"] += 1
    _hold("what is read is not written to", holds=_contents(root) == before)


def _contents(root: Path) -> dict[str, bytes]:
    # SQLite's index in memory is not the tool's data
    kept = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path): path.read_bytes() for path in kept}


@cache
def _requests(provider: str) -> tuple[list[Any], ...]:
    """Requests of a provider: rendered logs, and a bare array where a format has some."""
    found = [render(log, provider, waiting="placeholder").messages for log in _logs()]
    found += [make(*test_raw.KILLED) for make, _, name in test_raw.ARRAYS.values() if name == provider]
    return tuple(messages for messages in found if messages)


def read_request(provider: str, data: bytes) -> None:
    """Messages of a request: checked, patched, made a log and rendered again; what was given stays what it was."""
    choices = Choices(data)
    messages = edited(choices, choices.pick(_requests(provider)))
    system = choices.pick((None, None, "be kind", messages, [{"text": "x"}]))
    given = repr(messages)
    with suppress(TurnwalError):
        check(provider, messages, system=system)
    with suppress(TurnwalError):
        check(provider, patch(provider, messages))
    with suppress(TurnwalError):
        log = parsing.Log.seed(provider, messages, system=system)
        SEEN["requests seeded"] += 1
        made = render(log, provider)
        json.dumps(made.messages, allow_nan=False).encode()
    _hold("the messages that were given are not changed", holds=repr(messages) == given)


def read_reply(provider: str, data: bytes) -> None:
    """A reply, whole and in chunks: data of an event, or refused; what it gives, a log takes and is rendered."""
    choices = Choices(data)
    replies = REPLIES[provider]
    if choices.below(2):
        reply: Any = edited(choices, choices.pick((replies.asks, replies.done)))
    else:
        reply = edited(choices, replies.chunks)
        for chunk in reply if isinstance(reply, list) else ():
            with suppress(TurnwalError):
                list(parsing.shown(provider, chunk))
    with suppress(TurnwalError):
        log = Log()
        log.append("assistant_message", parse(provider, reply))
        SEEN["replies parsed"] += 1
        made = render(log, provider)
        json.dumps(made.messages, allow_nan=False).encode()


_URLS: Final = (
    "memory:",
    "sessions/",
    "file:///tmp/a%20b/c",
    "file://localhost/var/x",
    "file:rel/ative",
    "sqlite:agents.db",
    "sqlite:///var/agents.db",
    "postgresql://user:secret@host:5432/name?password=x&sslmode=require",
    "postgresql://[::1]/name",
    "postgres://u:p%40%2F@h/d",
    "postgresql:///d?host=/run",
)
_TEXTS: Final = ("12.1", "7.d", f"3:{'0' * 64}", "order-7", "a%20b", ".hidden", "con", "é" * 90)


def read_text(data: bytes) -> None:
    """Short texts that name something: a store's URL, a head, a call, a session, a file."""
    choices = Choices(data)
    text = choices.pick((*_URLS, *_TEXTS))
    for _ in range(1 + choices.below(4)):
        at, end = choices.below(len(text) + 1), choices.below(len(text) + 1)
        other = choices.pick((*_URLS, *_TEXTS, "//", "@", ":", "%", "%zz", "%00", "\0", "\ud83d", "é", "?", "..", "\n"))
        text = choices.pick((text[:at] + other + text[at:], text[:at] + text[end:], text[:at] + other))
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        with suppress(TurnwalError):
            open_store(text)
            SEEN["stores named"] += 1
        _hold("naming a store makes nothing", holds=not any(Path().iterdir()))
    shown(text)
    with suppress(TurnwalError):
        _hold("a head is its text", holds=str(Head.parse(text)) == f"{int(text.partition(':')[0])}:{text[-64:]}")
    key = keys.parse(text)
    _hold("a key is its text", holds=key is None or keys.text(key) == text)
    session_of(text)
    with suppress(TurnwalError):
        stem = file_stem(check_id(text))
        _hold("a file's name is the session's", holds=session_of(stem) in (text, None))
        _hold("a file's name is one", holds="/" not in stem and "\0" not in stem and 0 < len(stem.encode()) < 256)


def _of(name: str, function: Callable[[str, bytes], object]) -> Fuzzed:
    return lambda data: function(name, data)


TARGETS: Final[Mapping[str, Fuzzed]] = {
    "line": read_line,
    "frames": read_frames,
    "log": read_log,
    "text": read_text,
    **{f"format-{name}": _of(name, read_format) for name in FORMATS},
    **{f"request-{name}": _of(name, read_request) for name in PROVIDERS},
    **{f"reply-{name}": _of(name, read_reply) for name in PROVIDERS},
}
"""Every target by its name."""
