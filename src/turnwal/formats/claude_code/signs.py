"""What proves something about a call besides its request and its result: records, and files beside the transcript.

A record of a hook exists only where a user has set up hooks, and shows of `PreToolUse` only that the call was about to
be handed over: a hook may still have stopped it. Measured on 1,336 calls of public sample files; 69 commands had no
evidence at all and still ran.
"""

import os
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from turnwal.formats.claude_code.records import Record
from turnwal.formats.items import Sign

EDITS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
"""Tools before whose first change of a file the tool takes a backup."""
AGENTS: Final = frozenset({"Task", "Agent"})
WORKFLOW: Final = "Workflow"

_META_MAX: Final = 1 << 20
_JOURNAL_MAX: Final = 64 << 20


class Shown(NamedTuple):
    """What a record shows about a call."""

    id: str
    evidence: Literal["requested", "dispatched", "ran"]
    what: str


class _Event(Struct, rename="camel"):
    type: str = ""
    hook_event: str = ""
    tool_use_id: str = msgspec.field(name="toolUseID", default="")


_event = msgspec.json.Decoder(_Event)

_AT_WORK: Final = {
    "bash_progress": "the command was running",
    "agent_progress": "the sub-agent was at work",
    "mcp_progress": "the server was at work",
}
_HOOKS: Final[dict[str, tuple[Literal["requested", "ran"], str]]] = {
    "PreToolUse": ("requested", "its hooks ran, so that it was about to be handed over"),
    "PermissionRequest": ("requested", "a permission for it was asked for"),
    "PostToolUse": ("ran", "it had finished"),
    "PostToolUseFailure": ("ran", "it had failed"),
}


def shown_by(record: Record, open_calls: Container[str]) -> Shown | None:
    """What a record of progress, or of a hook, shows about a call that is open."""
    if record.type == "progress":
        id = record.parent_tool_use_id or record.tool_use_id or ""
        event = _decoded(record.data) if id in open_calls else None
        if event is not None and event.type not in ("hook_progress", ""):
            return Shown(id, "dispatched", f"{event.type}: {_AT_WORK.get(event.type, 'it was at work')}")
    else:
        event = _decoded(record.attachment) if record.type == "attachment" else None
        id = event.tool_use_id if event is not None else ""
    if event is None or id not in open_calls or event.hook_event not in _HOOKS:
        return None
    evidence, what = _HOOKS[event.hook_event]
    if event.type == "hook_blocking_error" and evidence == "requested":
        what = "a hook stopped it"
    return Shown(id, evidence, f"hook {event.hook_event}: {what}")


def _decoded(raw: msgspec.Raw) -> _Event | None:
    try:
        return _event.decode(raw)
    except msgspec.MsgspecError:
        return None


class Beside(NamedTuple):
    """The files of a session beside its transcript."""

    agents: tuple[Path, ...] = ()
    """Transcripts of sub-agents, workflows included."""
    metas: tuple[Path, ...] = ()
    journals: tuple[Path, ...] = ()
    spilled: tuple[Path, ...] = ()


def beside(transcript: Path) -> Beside:
    """Find them. Raises `OSError` where a folder cannot be read."""
    home = transcript.with_suffix("")
    below: list[Path] = []
    agents = home / "subagents"
    if agents.is_dir():
        for folder, _, names in os.walk(agents, onerror=_raised):
            below += [Path(folder, name) for name in names]
    below.sort()
    results = home / "tool-results"
    return Beside(
        tuple(path for path in below if path.name.startswith("agent-") and path.suffix == ".jsonl"),
        tuple(path for path in below if path.name.endswith(".meta.json")),
        tuple(path for path in below if path.name == "journal.jsonl"),
        tuple(sorted(results.iterdir())) if results.is_dir() else (),
    )


def _raised(error: OSError) -> None:
    raise error


class _Meta(Struct, rename="camel"):
    tool_use_id: str | None = None


def started_for(meta: Path) -> str | None:
    """The id of the call that a sub-agent was started for, where its description says so."""
    try:
        if meta.stat().st_size > _META_MAX:
            return None
        return msgspec.json.decode(meta.read_bytes(), type=_Meta).tool_use_id
    except (OSError, msgspec.MsgspecError):
        return None  # it shows nothing then


class _Entry(Struct, rename="camel"):
    type: str = ""
    key: str = ""
    agent_id: str = ""


def unfinished(journal: Path) -> list[str]:
    """The agents that a workflow started and that gave no result."""
    started: dict[str, str] = {}
    try:
        if journal.stat().st_size > _JOURNAL_MAX:
            return []
        lines = journal.read_bytes().split(b"\n")
    except OSError:
        return []
    for line in lines:
        try:
            entry = msgspec.json.decode(line, type=_Entry)
        except msgspec.MsgspecError:
            continue
        name = entry.key or entry.agent_id
        if entry.type == "started":
            started[name] = entry.agent_id
        else:
            started.pop(name, None)
    return list(started.values())


def shown_beside(files: Beside, transcript: Path, open_names: Mapping[str, str | None]) -> Iterator[Sign]:
    """What the files beside a transcript show about its open calls, given with their names."""
    home = transcript.with_suffix("")
    agents: dict[str, str] = {}
    for meta in files.metas:
        id = started_for(meta)
        if id is not None:
            agents[meta.name.removesuffix(".meta.json").removeprefix("agent-")] = id
            if id in open_names:
                yield Sign(str(meta.relative_to(home)), id, "dispatched", "a sub-agent was started for it")
    workflows = [id for id, name in open_names.items() if name == WORKFLOW]
    for journal in files.journals:
        agent_ids = unfinished(journal)
        place = str(journal.relative_to(home))
        named = {agents[agent] for agent in agent_ids if agents.get(agent) in open_names}
        if agent_ids and not named and len(workflows) == 1:
            named = set(workflows)
        for id in sorted(named):
            yield Sign(place, id, "dispatched", f"its workflow started {len(agent_ids)} agents that gave no result")
    for path in files.spilled:
        if path.stem in open_names:
            yield Sign(str(path.relative_to(home)), path.stem, "ran", "its output is there")
