"""A repaired copy of a transcript: a fork of the session, as the vendor's own SDK makes one, with the answers added.

Promises:
- Every line has the new session's id, a new `uuid`, and a parent that stands before it; lines of sub-agents, of
  progress and of snapshots are left out, and so are results that no call takes.
- An added result stands behind the last line of its API message, hangs under the line that asks, and what hung there
  hangs under it. It says what is known, as an error, and has a key of ours.
- Ids come from the session and the place of each record: the same file gives the same bytes. A file in which nothing
  is to be mended is copied byte for byte, and so is a copy of ours.

The session's id is the name of the copy where that is a UUID, as the tool wants it, else one made of the old id.

Does not: carry the transcripts of sub-agents. Those stay with the session that they were written for.

Source: `_build_fork_lines` of claude-agent-sdk-python 0.2.189 (MIT). Not loaded in the tool itself.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from turnwal.core.rules import Risk
from turnwal.formats.claude_code import tree
from turnwal.formats.claude_code.reading import NAME, Reader, inventor
from turnwal.formats.claude_code.records import CHAIN, METADATA, Record, whole
from turnwal.formats.claude_code.tree import NONE
from turnwal.formats.diagnosis import Diagnosis
from turnwal.formats.format import Found
from turnwal.formats.items import Fault, Said
from turnwal.formats.lines import records
from turnwal.formats.repairing import fresh, uuid_of, write_lines
from turnwal.formats.wording import MARK, text_for

_SPACE: Final = UUID("6f1f3c5e-52b1-5a7b-9d0c-0d9f6c1b7a11")
"""The name space of the ids of copies."""

_LEFT_OUT: Final = tree.PROGRESS | tree.ASIDE | tree.DROPPED
_SESSION_FIELDS: Final = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")
"""What would tie a line to the old session."""
_OF_THE_PLACE: Final = ("cwd", "version", "gitBranch", "userType", "entrypoint")
"""What an added line has in common with the one that asked."""
_TITLES: Final = ("customTitle", "aiTitle", "prompt")
"""What a copy is called after, best first."""
_TITLE_CHARS: Final = 200
_PLACE: Final = re.compile(r"line (\d+)")


def repair(found: Found, diagnosis: Diagnosis, out: Path) -> None:
    """Write a repaired copy; see `Format.repair`. Raises `Refused` where something is there, and `OSError`."""
    if not diagnosis.open and not diagnosis.damage:
        with found.path.open("rb") as source, fresh(out) as file:
            shutil.copyfileobj(source, file)
        return
    write_lines(
        out, (json.dumps(line, separators=(",", ":")).encode() for line in _Fork(found, diagnosis, out).lines())
    )


class _Fork:
    """Where writing the copy is."""

    def __init__(self, found: Found, diagnosis: Diagnosis, out: Path) -> None:
        self._path = found.path
        self._asked: Counter[int] = Counter()
        """How many calls there are of each id, by its hash."""
        reader = Reader("calls")
        for item in reader.transcript(found.path):
            if isinstance(item, Said) and item.type == "assistant_message":
                self._asked.update(hash(part["id"]) for part in item.data["parts"])
        self._tree = reader.tree
        self._old = reader.session or found.path.stem
        self.session = _session(out, self._old)
        self._risks: dict[tuple[int, str], Risk | None] = {}
        """Of the calls to answer, by line and id."""
        self._invented: set[str] = set()
        for call in diagnosis.open:
            place = _PLACE.fullmatch(call.place)
            if call.evidence == "answered_synthetic":
                self._invented.add(call.id)
            elif place is not None and call.evidence != "waiting":
                self._risks[int(place[1]), call.id] = call.risk
        self._due: dict[int, list[dict[str, Any]]] = {}
        """The results to add, by the record that they stand behind."""
        self._adopting: dict[int, str] = {}
        """By number: the added result under which the children of a record hang from now on."""
        self._answered: Counter[int] = Counter()
        self._replacements: list[Any] = []
        self._titles: dict[str, str] = {}
        self._stamp: object = None

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines of the copy."""
        done = bytearray(len(self._tree))
        for item in records(self._path, whole):
            if isinstance(item, Fault):
                continue
            line, record = item
            if record.type in CHAIN:
                number = self._tree.number(record.uuid) if record.uuid is not None else NONE
                if number == NONE or done[number]:
                    continue
                done[number] = 1
                yield from self._chained(line, number, record)
            elif record.type in METADATA:
                self._metadata(record.full)
            else:
                yield record.full | {"sessionId": self.session} if "sessionId" in record.full else record.full
        yield from self._last()

    def _chained(self, line: int, number: int, record: Record) -> Iterator[dict[str, Any]]:
        self._stamp = record.full.get("timestamp", self._stamp)
        if self._tree.flags[number] & _LEFT_OUT:
            return
        full = record.full
        if record.type == "user" and record.message is not None and not record.is_meta:
            said = record.message.content
            if isinstance(said, str) and said.strip():
                self._titles.setdefault("prompt", said.strip())
        marked = False
        results: list[dict[str, Any]] = []
        if record.type == "user" and record.message is not None and not isinstance(record.message.content, str):
            kept, marked = self._results(record)
            results = [block for block in kept if block.get("type") == "tool_result"]
            if not kept and full["message"]["content"]:
                self._tree.flags[number] |= tree.DROPPED
                return
            full = full | {"message": full["message"] | {"content": kept}}
        forked = full | {
            "uuid": self._uuid(number),
            "parentUuid": self._parent(number, adopted=record.type != "attachment" and not results),
            "sessionId": self.session,
            "isSidechain": False,
            "forkedFrom": {"sessionId": self._old, "messageUuid": record.uuid},
        }
        if record.logical_parent_uuid is not None:
            across = self._tree.number(record.logical_parent_uuid)
            forked["logicalParentUuid"] = self._uuid(across) if across != NONE else None
        if marked:
            forked[MARK] = {"repaired": True}
            forked.pop("toolUseResult", None)
        for name in _SESSION_FIELDS:
            forked.pop(name, None)
        yield forked
        if record.type == "assistant" and record.message is not None and not isinstance(record.message.content, str):
            self._answer(line, number, record)
        yield from self._due.pop(number, ())

    def _results(self, record: Record) -> tuple[list[dict[str, Any]], bool]:
        """The blocks of a user's line without results that no call takes; whether one of them is ours now."""
        kept: list[dict[str, Any]] = []
        marked = False
        message = record.message
        typed = iter([] if message is None or isinstance(message.content, str) else message.content)
        for block in record.full["message"]["content"]:
            if not isinstance(block, dict):
                continue
            short = next(typed)
            if block.get("type") != "tool_result":
                kept.append(block)
                continue
            id = short.tool_use_id or ""
            if id in self._invented:
                block = block | {"content": text_for("tool_outcome_unknown"), "is_error": True}  # noqa: PLW2901
                marked = True
            elif inventor(record, short, started=False) == NAME:
                continue  # the real result stands further on
            if self._answered[hash(id)] < self._asked[hash(id)]:
                self._answered[hash(id)] += 1
                kept.append(block)
        return kept, marked

    def _answer(self, line: int, number: int, record: Record) -> None:
        """Take down the results that this line's calls get."""
        message = record.message
        for block in [] if message is None or isinstance(message.content, str) else message.content:
            id = block.id or ""
            if block.type != "tool_use" or (line, id) not in self._risks:
                continue
            uuid = str(uuid_of(UUID(self.session), f"result of {number} {id}"))
            content = [
                {
                    "type": "tool_result",
                    "tool_use_id": id,
                    "content": text_for(self._risks.pop((line, id))),
                    "is_error": True,
                }
            ]
            added = {
                "parentUuid": self._uuid(number),
                "isSidechain": False,
                **{name: record.full[name] for name in _OF_THE_PLACE if name in record.full},
                "sessionId": self.session,
                "type": "user",
                "message": {"role": "user", "content": content},
                "uuid": uuid,
                "timestamp": self._stamp,
                MARK: {"repaired": True},
            }
            self._due.setdefault(self._tree.last_of_message(number), []).append(added)
            self._adopting[number] = uuid

    def _parent(self, number: int, *, adopted: bool) -> str | None:
        up = self._tree.parent(number)
        while up != NONE and self._tree.flags[up] & _LEFT_OUT:
            up = self._tree.parent(up)
        if up == NONE:
            return None
        if adopted and up in self._adopting and not self._tree.same_message(up, number):
            return self._adopting[up]
        return self._uuid(up)

    def _uuid(self, number: int) -> str:
        return str(uuid_of(UUID(self.session), f"record {number}"))

    def _metadata(self, full: dict[str, Any]) -> None:
        if full["type"] == "content-replacement" and isinstance(full.get("replacements"), list):
            self._replacements += full["replacements"]
        for key in _TITLES:
            if isinstance(full.get(key), str) and full[key]:
                self._titles[key] = full[key]

    def _last(self) -> Iterator[dict[str, Any]]:
        space = UUID(self.session)
        if self._replacements:
            yield {
                "type": "content-replacement",
                "sessionId": self.session,
                "replacements": self._replacements,
                "uuid": str(uuid_of(space, "replacements")),
                "timestamp": self._stamp,
            }
        title = next((self._titles[key] for key in _TITLES if key in self._titles), "Session")
        yield {
            "type": "custom-title",
            "sessionId": self.session,
            "customTitle": f"{title[:_TITLE_CHARS]} (repaired)",
            "uuid": str(uuid_of(space, "title")),
            "timestamp": self._stamp,
            MARK: {"repaired": self._old},
        }


def _session(out: Path, old: str) -> str:
    try:
        return str(UUID(out.stem))
    except ValueError:
        return str(uuid_of(_SPACE, old))
