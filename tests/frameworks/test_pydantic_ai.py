"""Repaired copies in Pydantic AI itself: validated, and gone on with."""

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    TextPart,
    ToolReturnPart,
    repair_messages,
)

from tests.formats.fixtures import repaired, taken
from tests.formats.generators.pydantic_ai import Played, agent
from turnwal.formats.wording import UNKNOWN_TEXT


def returns(messages: list[ModelMessage]) -> dict[str, object]:
    parts = [part for message in messages for part in message.parts]
    return {part.tool_call_id: part.content for part in parts if isinstance(part, ToolReturnPart)}


@pytest.mark.parametrize("scene", ["single", "sibling", "synthesized"])
def test_a_repaired_history_goes_on_with_a_new_prompt(scene: str, tmp_path: Path) -> None:
    path, out = taken("pydantic_ai", f"{scene}.json", tmp_path), tmp_path / "out.json"
    repaired(path, out)
    played = Played([[TextPart("I shall check.")]])
    if scene != "synthesized":
        lost = ModelMessagesTypeAdapter.validate_json(path.read_bytes())
        with pytest.raises(UserError):
            asyncio.run(agent(played).run("go on", message_history=lost))
    history = ModelMessagesTypeAdapter.validate_json(out.read_bytes())
    assert repair_messages(history) == history  # nothing is left that the library would repair
    done = asyncio.run(agent(played).run("go on", message_history=history))
    assert done.output == "I shall check."
    (seen,) = played.seen
    told = returns(seen)
    assert told["call_charge"] == UNKNOWN_TEXT
    assert ("call_look" not in told) or told["call_look"] == UNKNOWN_TEXT


def test_a_repaired_store_is_loaded_and_goes_on(tmp_path: Path) -> None:
    path, out = taken("pydantic_ai", "store.json", tmp_path), tmp_path / "out.json"
    repaired(path, out)
    value = json.loads(out.read_text())
    kept = InMemoryConversationStore()
    for entry in TypeAdapter(list[ConversationEntry]).validate_python(value["entries"]):
        kept._entries[entry.id] = entry
    kept._records["c"] = TypeAdapter(ConversationRecord).validate_python(value["record"])

    async def go_on() -> dict[str, object]:
        conversation = await kept.load("c")
        assert conversation is not None
        played = Played([[TextPart("I shall check.")]])
        done = await agent(played).run("go on", conversation=conversation)
        await kept.save(done)
        (seen,) = played.seen
        return returns(seen)

    assert asyncio.run(go_on()) == {"call_1": "price: 5", "call_look": UNKNOWN_TEXT, "call_charge": UNKNOWN_TEXT}
