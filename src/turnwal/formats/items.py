"""What a reader yields: the events of a foreign session in the order of its records, and what they prove.

A reader is a generator of these values. It keeps no more than one record, opens files to read only, runs nothing and
imports nothing by a name that stands in a file.
"""

from typing import Any, Final, Literal, NamedTuple

Evidence = Literal["requested", "dispatched", "ran", "waiting", "answered", "answered_synthetic", "blind"]
"""What is proved about one call.

`requested`: the model's call is recorded, and nothing says that it was handed over. `dispatched`: a record exists that
is written when the executor got it, or after. `ran`: a record shows that the body finished, but no result is recorded.
`waiting`: it waits for a person or for something outside, by design. `answered`: its result is recorded.
`answered_synthetic`: its result was invented by the tool's own recovery. `blind`: this format does not record calls in
flight, so that the absence of a call proves nothing.
"""

FaultKind = Literal[
    "torn",
    "fused",
    "nul_run",
    "raw_newline",
    "duplicate",
    "orphan_result",
    "gap",
    "missing_parent",
    "too_new",
    "too_long",
    "corrupt",
]
"""What can be wrong with a foreign file.

`torn`: a record that was not finished, alone or with the next one behind it. `fused`: two records on one line.
`nul_run`: zeros where a record was to be. `raw_newline`: a record broken by a line feed inside a text. `duplicate`: a
second result of one call. `orphan_result`: a result of no call. `gap`: a number, a file or a parent between two records
is missing. `missing_parent`: a record hangs under one that is not there. `too_new`: a newer version than is known.
`too_long`: a record over the limit, left out. `corrupt`: bytes that are no record.
"""

TURNWAL: Final = "turnwal"
"""Who invented an answer, in `metadata.by`, where that was a repair of ours."""


class About(NamedTuple):
    """What a session says of itself; a later value replaces an earlier one, None leaves it."""

    version: str | None = None
    session: str | None = None
    durable: bool = False
    """The writer guarantees that a dispatch is recorded durably before each body runs."""


class Said(NamedTuple):
    """An event of the session, in turnwal's words (`docs/format.md`).

    Calls are parts `tool_call` of an `assistant_message` and answers are `tool_result`, both with the tool's own `id`;
    the rest is what a transcript needs. An answer that the tool invented has `metadata: {synthetic: true, by: NAME}`.
    """

    place: str
    """Where the record is: `line 12`, `row 7`, `message_3.json`."""
    type: str
    data: dict[str, Any]
    run: str = "main"
    time: int | None = None
    """Unix milliseconds, where the record says so."""
    replaces: bool = False
    """It is a summary in place of all that was said before in its run."""


class Sign(NamedTuple):
    """A record that proves something about a call besides its request and its result."""

    place: str
    id: str
    evidence: Literal["requested", "dispatched", "ran", "waiting"]
    """`requested` where the record proves nothing more, and a person wants to know of it all the same."""
    what: str
    """The record in a few words, for a person: `bash_progress: the command was running`."""


class Fault(NamedTuple):
    """Bytes that are not what they should be. What can be read around them is read."""

    kind: FaultKind
    place: str
    what: str


class Other(NamedTuple):
    """A record of a type that this version does not know: counted, named and stepped over."""

    place: str
    name: str


class Blind(NamedTuple):
    """The session ends where calls may have been in flight that this format does not record."""

    place: str
    what: str


Item = About | Said | Sign | Fault | Other | Blind
