"""Reading a transcript: what was said, what is proved, and what is wrong with the file.

Promises:
- Calls are paired over the whole file, and an answer follows its call although the file has it before. A call that is
  recorded again in the same API message, and a record that is there again, are one.
- `calls` is one pass. `whole` takes a first one for the tree: what resuming would not show stands in a run of its own,
  so that it never comes between the messages of the conversation. Each record is a message of its own.
- Memory: some hundred bytes a record and call, besides the largest record.

Left out of `whole`: attachments and system records, which the tool turns into reminders as it likes, and messages that
it wrote in the model's name (`<synthetic>`).

Sources: claude-agent-sdk-python 0.2.189 (MIT) for the tree and the folders, public reports at anthropics/claude-code
(#473, #22526, #45286, #52387, #58554, #88608) for what goes wrong, and observation of public sample files.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from turnwal.formats.claude_code import signs, tree
from turnwal.formats.claude_code.records import METADATA, Block, Record, arguments_of, calls, text_of, whole
from turnwal.formats.claude_code.tree import NONE, Tree
from turnwal.formats.format import Depth, Found
from turnwal.formats.items import TURNWAL, About, Fault, Item, Other, Said, Sign
from turnwal.formats.lenient import encoded
from turnwal.formats.lines import records
from turnwal.formats.wording import OURS, is_ours
from turnwal.transcript.anthropic.parse import history

NAME: Final = "claude_code"

OFF_CHAIN: Final = "off-chain"
"""The run of records that resuming does not show: other branches of the conversation."""

_FLAGS: Final = {
    "user": tree.SPOKEN,
    "assistant": tree.SPOKEN,
    "progress": tree.PROGRESS,
    "attachment": 0,
    "system": 0,
}
"""The types whose records hang in the tree, with what they are there."""

_INVENTED: Final = ("[Tool result missing due to internal error]", "[Request interrupted by user")
"""How results begin that no executor gave."""
_REFUSED: Final = "The user doesn't want to "
"""How results begin that say a call was not made. After a record of its running they are not to be believed (F13)."""


class _Open(msgspec.Struct, eq=False):
    """A call that has no result yet."""

    name: str | None
    uuid: str | None
    number: int
    line: int
    run: str
    prompt: str | None
    """What a sub-agent is to do."""
    started: bool = False
    """A record shows that it was handed over."""
    told: str = ""
    """What the newest record shows; progress is recorded every second, and said once."""


def read(found: Found, depth: Depth) -> Iterator[Item]:
    """Yield what a session holds: its transcript, then those of its sub-agents. Raises `OSError`."""
    shown: bytearray | None = None
    if depth == "whole":
        first = Reader("calls")
        for _ in first.transcript(found.path):
            pass
        shown = first.tree.bridged()
        yield About(first.version, first.session)
    reader = Reader(depth, shown)
    yield from reader.transcript(found.path)
    yield from reader.notes()
    files = signs.beside(found.path)
    names = {id: call.name for id, call in reader.open.items()}
    if names:
        yield from signs.shown_beside(files, found.path, names)
    home = found.path.with_suffix("")
    for path in files.agents:
        yield from reader.agent(path, str(path.relative_to(home)))
    yield from reader.rest()


class Reader:
    """Where reading is."""

    def __init__(self, depth: Depth, shown: bytearray | None = None) -> None:
        self._decode = calls if depth == "calls" else whole
        self._shown = shown
        self.tree = Tree()
        self.open: dict[str, _Open] = {}
        self.version: str | None = None
        self.session: str | None = None
        self._asked: dict[int, int] = {}
        """A hash of each id that was asked for, with one of the message that asked last."""
        self._early: dict[str, list[Said]] = {}
        """Answers that no record has asked for yet."""
        self._backed_up: set[str] = set()
        self._prefix = ""
        self._agent: str | None = None
        self._out: list[Item] = []
        """What the record that is being read gives."""

    def transcript(self, path: Path) -> Iterator[Item]:
        """The items of the main transcript."""
        yield from self._file(path)
        self.tree.settle()
        yield from self._broken(self.tree)

    def agent(self, path: Path, place: str) -> Iterator[Item]:
        """The items of a sub-agent's transcript, which has a tree of its own."""
        main, self.tree = self.tree, Tree()
        self._agent, self._prefix = path.stem, f"{place} "
        try:
            yield from self._file(path)
            self.tree.settle(main)
            yield from self._broken(self.tree)
        except OSError as error:
            yield Fault("gap", place, f"the sub-agent's file cannot be read: {error.strerror or error}")
        finally:
            self.tree, self._agent, self._prefix = main, None, ""

    def _file(self, path: Path) -> Iterator[Item]:
        out, take = self._out, self._record
        for item in records(path, self._decode):
            if isinstance(item, Fault):
                yield item._replace(place=f"{self._prefix}{item.place}")
                continue
            take(*item)
            if out:
                yield from out
                out.clear()

    def _broken(self, hanging: Tree) -> Iterator[Item]:
        for line, what in hanging.broken.values():
            yield Fault("missing_parent", self._place(line), what)

    def notes(self) -> Iterator[Item]:
        """What the tree says of the calls that are open at the end of the transcript."""
        if not self.open:
            return
        strict = self.tree.strict()
        for id, call in self.open.items():
            if call.number != NONE and not self.tree.lane(call.number) and not strict[call.number]:
                yield Sign(f"line {call.line}", id, "requested", "not on the chain that resuming shows to the model")

    def rest(self) -> Iterator[Item]:
        """Answers that nothing asked for."""
        for waiting in self._early.values():
            yield from waiting
        self._early.clear()

    def _record(self, line: int, record: Record) -> None:
        if record.version != self.version or record.session_id != self.session:
            self._about(record)
        kind = record.type
        flags = _FLAGS.get(kind)
        if flags is not None:
            self._chained(line, record, flags)
        elif kind == "file-history-snapshot":
            if record.is_snapshot_update and record.message_id is not None:
                self._snapshot(line, record.message_id)
        elif kind not in METADATA:
            self._out.append(Other(self._place(line), kind))

    def _chained(self, line: int, record: Record, flags: int) -> None:
        number = NONE
        if record.uuid is not None:
            if record.is_sidechain and self._agent is None:
                flags |= tree.ASIDE | tree.BARRED
            elif record.is_meta or record.team_name:
                flags |= tree.BARRED
            number = self.tree.add(record.uuid, record.parent_uuid, line, flags)
            if number == NONE:
                return  # it is there already
        message = record.message
        if not flags & tree.SPOKEN:
            self._unspoken(line, number, record)
        elif message is None:
            self._out.append(Other(self._place(line), f"{record.type} without a message"))
        elif record.type == "assistant":
            if message.id is not None and number != NONE:
                self.tree.belongs(number, message.id)
            self._assistant(line, number, record, message.content)
        else:
            self._user(line, number, record, message.content)

    def _unspoken(self, line: int, number: int, record: Record) -> None:
        """Take a record of the tool about itself."""
        if record.logical_parent_uuid is not None and record.parent_uuid is None and number != NONE:
            self.tree.crosses(number, record.logical_parent_uuid)
        if self.open:
            shown = signs.shown_by(record, self.open)
            if shown is not None and self.open[shown.id].told != shown.what:
                call = self.open[shown.id]
                call.started |= shown.evidence != "requested"
                call.told = shown.what
                self._out.append(Sign(self._place(line), *shown))

    def _place(self, line: int) -> str:
        return f"{self._prefix}line {line}"

    def _about(self, record: Record) -> None:
        version, session = record.version or self.version, record.session_id or self.session
        if self._agent is None and (version, session) != (self.version, self.session):
            self.version, self.session = version, session
            self._out.append(About(version, session))

    def _run(self, number: int, record: Record) -> str:
        if self._agent is not None:
            return self._agent
        if record.is_sidechain:
            if record.agent_id:
                return f"agent-{record.agent_id}"
            return f"sidechain-{self.tree.lane(number)}" if number != NONE else "sidechain"
        if self._shown is None or number == NONE or self._shown[number]:
            return "main"
        return OFF_CHAIN

    def _assistant(self, line: int, number: int, record: Record, content: str | list[Block]) -> None:
        asking: list[Block] = []
        if not isinstance(content, str):
            asking = [block for block in content if block.type == "tool_use"]
        if not asking and (record.full is None or _is_of_the_tool(record)):
            return
        new = [block for block in asking if self._is_new(record, block)]
        if not new and asking:
            return
        run = self._run(number, record)
        data = self._asking(record, new, len(new) == len(asking))
        self._out.append(Said(self._place(line), "assistant_message", data, run, _time(record.full)))
        for block in new:
            self._asked_for(line, number, record, block, run)

    def _is_new(self, record: Record, block: Block) -> bool:
        """Whether a call is not one that the same API message has asked for."""
        message = record.message.id if record.message is not None else None
        id, key = hash(block.id), hash(message or record.request_id or record.uuid)
        if self._asked.get(id) == key:
            return False
        self._asked[id] = key
        return True

    def _asking(self, record: Record, new: list[Block], all_new: bool) -> dict[str, Any]:  # noqa: FBT001
        if record.full is None:
            parts = [
                {"type": "tool_call", "id": block.id or "", "name": block.name or "", "arguments": arguments_of(block)}
                for block in new
            ]
            return {"parts": parts}
        message = record.full["message"]
        content = message.get("content")
        if not isinstance(content, str):
            fresh = {block.id for block in new}
            content = [b for b in _blocks(content) if b.get("type") != "tool_use" or all_new or b.get("id") in fresh]
        said = next(history([{"role": "assistant", "content": content}]), None)
        data: dict[str, Any] = {**(said[1] if said is not None else {"parts": []}), "provider": "anthropic"}
        for name, key in (("model", "model"), ("response_id", "id"), ("stop", "stop_reason")):
            if isinstance(message.get(key), str):
                data[name] = message[key]
        return data

    def _asked_for(self, line: int, number: int, record: Record, block: Block, run: str) -> None:
        id = block.id or ""
        early = self._early.pop(id, None)
        if early is not None:
            self._out += [said._replace(run=run) for said in early]
            return
        prompt = _prompt(block) if block.name in signs.AGENTS else None
        self.open[id] = _Open(block.name, record.uuid, number, line, run, prompt)
        if record.uuid in self._backed_up and block.name in signs.EDITS:
            self._started(line, id, _BACKUP)

    def _user(self, line: int, number: int, record: Record, content: str | list[Block]) -> None:
        if record.is_sidechain and record.parent_uuid is None and self._agent is None:
            self._sidechain(line, content)
        results: list[Block] = []
        if not isinstance(content, str):
            results = [block for block in content if block.type == "tool_result"]
        if record.full is None:
            for block in results:
                self._answered(line, record, block, {"id": block.tool_use_id or "", "parts": []}, "main")
            return
        run = self._run(number, record)
        by_id = {block.tool_use_id or "": block for block in results}
        for type_, data in history([{"role": "user", "content": _blocks(record.full["message"].get("content"))}]):
            if type_ == "tool_result":
                id = data["id"] if isinstance(data["id"], str) else ""
                lane = self.open[id].run if id in self.open else run
                self._answered(line, record, by_id[id], data | {"id": id}, lane)
            elif data.get("parts"):
                summary = record.is_compact_summary is True
                self._out.append(Said(self._place(line), type_, data, run, _time(record.full), replaces=summary))

    def _answered(self, line: int, record: Record, block: Block, data: dict[str, Any], run: str) -> None:
        id = block.tool_use_id or ""
        call = self.open.pop(id, None)
        by = inventor(record, block, started=call is not None and call.started)
        if by is not None:
            data = data | {"metadata": {"synthetic": True, "by": by}}
        said = Said(self._place(line), "tool_result", data, run, _time(record.full))
        if call is None and hash(block.tool_use_id) not in self._asked:
            self._early.setdefault(id, []).append(said)
        elif call is not None or self._agent is None:
            self._out.append(said)

    def _sidechain(self, line: int, content: str | list[Block]) -> None:
        """Take a sub-agent that begins in the file: its first words are those of the call it serves."""
        for id, call in self.open.items():
            if call.prompt is not None and not call.started and call.prompt == content:
                self._started(line, id, "its sub-agent began")
                return

    def _snapshot(self, line: int, uuid: str) -> None:
        edits = [id for id, call in self.open.items() if call.uuid == uuid and call.name in signs.EDITS]
        for id in edits:
            self._started(line, id, _BACKUP)
        if not edits and uuid not in self.tree:
            self._backed_up.add(uuid)

    def _started(self, line: int, id: str, what: str) -> None:
        self.open[id].started = True
        self._out.append(Sign(self._place(line), id, "dispatched", what))


_BACKUP: Final = "file-history-snapshot: a backup was taken right before the edit"


_BEGINNINGS: Final = tuple(f'"{text[:4]}'.encode() for text in (*_INVENTED, _REFUSED, *OURS))


def inventor(record: Record, block: Block, *, started: bool) -> str | None:
    """Who invented a result, or None for one that is real."""
    if bytes(record.turnwal):
        return TURNWAL
    text = text_of(block.content, _BEGINNINGS)
    if not text:
        return None
    if is_ours(text):
        return TURNWAL
    if text.startswith(_INVENTED) or (started and text.startswith(_REFUSED)):
        return NAME
    return None


def _is_of_the_tool(record: Record) -> bool:
    """Whether the tool wrote a message in the model's name: a failed request, an answer that it made up."""
    return record.message is not None and record.message.model == "<synthetic>"


def _prompt(block: Block) -> str | None:
    try:
        return msgspec.json.decode(block.input, type=dict[str, Any]).get("prompt")
    except msgspec.MsgspecError:
        return None


def _blocks(content: object) -> Any:
    """The content of a message without what is no block."""
    if isinstance(content, str):
        return content
    return [_block(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A block as the API has them; one that is none is told as text, since nothing may be lost."""
    if not isinstance(block.get("type"), str):
        return {"type": "text", "text": encoded(block).decode()}
    inner = block.get("content")
    if block.get("type") == "tool_result" and not isinstance(inner, str):
        return block | {"content": _blocks(inner)}
    return block


def _time(full: dict[str, Any] | None) -> int | None:
    """Unix milliseconds, where the whole record was read and says so."""
    if full is None:
        return None
    stamp = full.get("timestamp")
    if not isinstance(stamp, str):
        return None
    try:
        moment = datetime.fromisoformat(stamp)
        return max(int(moment.timestamp() * 1000), 0) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
