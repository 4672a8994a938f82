"""A session that is open for writing: its records, its turns and its calls.

Entering opens: it becomes the owner, recovers first where a crash left work open (`recovered`), and from then on every
event goes through one journal.
"""

from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import msgspec

from turnwal.core import keys
from turnwal.core.errors import Refused
from turnwal.core.line import Event
from turnwal.core.log import check_run
from turnwal.core.replacing import check_replace
from turnwal.session.attempt import OwnTurn
from turnwal.session.call import Call
from turnwal.session.guard import GUARDED, check_fits
from turnwal.session.lookup import Found, find, packed_key, told_of
from turnwal.session.owning import Owning
from turnwal.session.reason import TurnReason
from turnwal.session.reply import note_reply
from turnwal.session.settings import Settings
from turnwal.session.streaming import Stream
from turnwal.session.tools import Parts, parts_of
from turnwal.session.transcripts import Transcripts
from turnwal.session.transfer import fork_into
from turnwal.session.turn import Turn, check_dispatch
from turnwal.store.protocol import Store

_LOOKED_AT: Final = GUARDED | {"assistant_message"}
"""The types that `append` does more about than to record them."""

_ENDS: Final = frozenset({"step_end", "turn_end"})


class Session(Owning, Transcripts):
    """A block, sync and async; `open` and `close` are its plain verbs. Everything is safe from any thread."""

    def __init__(self, store: Store, id: str, settings: Settings) -> None:
        """Prepare a session; nothing is read or written until it is opened."""
        super().__init__(store, id, settings)
        # where the log has redacted arguments, the handle alone knows what the model wrote, so it is kept
        self._handles: MutableMapping[int, Call] = WeakValueDictionary() if settings.redact is None else {}
        self._step_calls: dict[str, dict[int, Call]] = {}
        """By run: handles of the calls that the open step asked for."""
        self.streams: list[Stream[Any]] = []
        """The streams of replies that open steps have begun and not yet done with."""
        self.own_turns: dict[str, OwnTurn] = {}
        """By run: the open turn that attempts of calls began for themselves."""
        self.tools_told: set[str] = set()
        """Digests of the lists of tools that this process recorded whole."""

    def append(self, type: str, data: Mapping[str, Any], *, run: str = "main", ignorable: bool = False) -> Event:
        """Append an event of any type, in or out of a turn, and return it. Durable with the next barrier.

        Raises `InvalidEvent` for what is none, and `Refused` for a record that would make the history ambiguous: a
        second result, a result of a call that is not open, a turn or step that does not fit.
        """
        journal = self._live
        journal.make_room()
        replaces = isinstance(data, dict) and data.get("replace") is not None
        if type not in _LOOKED_AT and not replaces:
            return self.note(type, data, run=run, ignorable=ignorable)
        with journal.order:
            self.check_open()
            if type in GUARDED and isinstance(data, dict):
                check_run(run)
                check_fits(self.scan, type, data, run)
            if replaces:
                check_replace(self._recorded(), type, data, run)
            if type == "assistant_message" and isinstance(data, dict):
                return note_reply(self, data, run=run, ignorable=ignorable)[0]
            return self.note(type, data, run=run, ignorable=ignorable)

    def turn(
        self,
        user: Parts | str | None = None,
        *,
        run: str = "main",
        resumes: "Call | str | None" = None,
        serves: Call | None = None,
        label: str = "",
        dispatch: str | None = None,
    ) -> Turn:
        """Return a turn; entering it appends its start and the user's message.

        `resumes` is the key of a waiting or granted call that the turn goes on with; it is `turn.resumed`.
        """
        check_run(run)
        check_dispatch(dispatch)
        resumed = self.call(resumes) if isinstance(resumes, str) else resumes
        if resumed is not None and resumed.answered and not resumed.repeatable:
            raise Refused("it has a result already", action="resume", subject=f"call {resumed.call_key}")
        return Turn(
            self,
            user=user,
            run=run if resumed is None else resumed.run_name,
            resumes=resumed,
            serves=serves,
            label=label,
            dispatch=self._settings.dispatch if dispatch is None else dispatch,
        )

    def open_turn(self, user: Parts | str | None = None, **options: Any) -> Turn:
        """As `turn`, begun at once; end it with `turn.close(reason)`."""
        return self.turn(user, **options).begin()

    def call(self, key: str) -> Call:
        """Return a handle of any call of the session.

        Raises `InvalidName`, `CallNotFound`, and `Damaged` where what is lost may be about the call. With `accept_loss`
        the call is found past that, and what may have been done with it is not done again.
        """
        packed = packed_key(key, self.id)
        return self.calls([packed])[0]

    def waiting(self) -> list[Call]:
        """The calls that are meant to be answered later, in the order of their keys."""
        with self.order:
            entries = self.scan.waiting()
        return self.calls([packed_key(entry["call"], self.id) for entry in entries])

    def granted(self) -> list[Call]:
        """The calls of turns that have ended which were granted and not yet run; a turn that resumes one may run it."""
        with self.order:
            entries = self.scan.granted()
        return self.calls([packed_key(entry["call"], self.id) for entry in entries])

    def compact(
        self,
        first: int,
        last: int,
        summary: Parts | str,
        *,
        run: str = "main",
        type: Literal["user_message", "system_message"] = "user_message",
    ) -> Event:
        """Append a summary that the model sees in place of what stands from one seq to another; nothing leaves the log.

        Raises `InvalidEvent`, naming the seqs, for a range that parts a call from its result, hides an owed or waiting
        call, cuts through an earlier summary, or covers nothing that the model sees (F27).
        """
        if type not in ("user_message", "system_message"):
            hint = 'say "user_message" or "system_message"'
            raise Refused(f"type={type!r:.80} is unknown", action="compact", subject=self.id, hint=hint)
        return self.append(type, {"parts": parts_of(summary), "replace": [first, last]}, run=run)

    def fork(self, at: int, id: str) -> "Session":
        """Store a fork of the first `at` events under a new id and return it, to be opened (F34)."""
        self.flush()
        settings = self._settings
        fork_into(self._store, self.id, at, self._store, id, nonce=settings.nonce(), time=settings.clock())
        return Session(self._store, id, msgspec.structs.replace(settings, after=None))

    # Inside

    def calls(self, wanted: list[int]) -> list[Call]:
        """The handles of some calls, read in one go where there are none yet. Waits for no barrier."""
        with self.order:
            held = {key: handle for key in wanted if (handle := self._handles.get(key)) is not None}
        missing = [key for key in wanted if key not in held]
        if missing:
            lookup = find(self._store, self.id, missing, self._live.durable, accept_loss=self._settings.accept_loss)
            with self.order:
                # what others recorded since is taken in before they and this thread share the handles
                for event in self._recorded(lookup.position, lookup.head):
                    lookup.feed(event)
                found = lookup.found(self.head)
                for key in missing:
                    handle = self._handles.get(key)
                    if handle is None:
                        told = found.get(key) or told_of(self.scan, self.id, key, lookup)
                        handle = self._handles[key] = Call(self, told)
                    held[key] = handle
        return [held[key] for key in wanted]

    def asked(self, found: Found) -> Call:
        """The one handle of a call that a reply asks for: two would each know but half of what was done.

        It lives at least as long as the step, in which the call may be asked for again.
        """
        with self.order:
            handle = self._handles.get(found.key)
            if handle is None:
                handle = self._handles[found.key] = Call(self, found)
            else:
                handle.asked_anew(found)
            if self.scan.run(found.run).turn.step is not None:
                self._step_calls.setdefault(found.run, {})[found.key] = handle
            return handle

    def arguments_of(self, key: int) -> str | None:
        """The arguments of a call as the model wrote them; None where this process does not know them."""
        handle = self._handles.get(key)
        return None if handle is None or handle.redacted else handle.arguments

    def has_open_turn(self, run: str) -> bool:
        """Whether a turn of the run is open."""
        with self.order:
            return bool(self.scan.run(run).turns)

    def next_turn_number(self, run: str) -> int:
        """Count the turns of a run."""
        number = self._last_turns.get(run, 0) + 1
        self._last_turns[run] = number
        return number

    def serves(self, run: str, other: str) -> bool:
        """Whether a run serves a call of another run, or of one that serves it in turn."""
        seen = run
        while (key := keys.parse(seen)) is not None:
            parent = next((found.name for found in self.scan.runs.values() if key in found.known), None)
            if parent is None or parent == seen:
                return False
            if parent == other:
                return True
            seen = parent
        return False

    def leave_streams(self, run: str) -> None:
        """Record what came of the replies that a run is still streaming, before what closes its turn."""
        for stream in [stream for stream in self.streams if stream.run == run]:
            with suppress(Exception):  # what was streamed and cannot be recorded must not leave the turn open
                stream.leave()
            self.streams.remove(stream)

    def _end_turns(self, reason: TurnReason) -> None:
        with self.order:
            for run, state in self.scan.open_turns():
                Turn.found(self, run.name, state).note_close(reason)

    def _observe(self, event: Event) -> None:
        # one list of all that follows the log, as each event comes through it
        self.scan.feed(event)
        self._feed_surfaces(event)
        self._feed_renderers(event)
        about = self.scan.about
        if about is not None:
            handle = self._handles.get(about)
            if handle is not None:
                handle.take(event)
        elif event.type in _ENDS:
            self._step_calls.pop(event.run, None)
