"""Repaired copies in the OpenAI Agents SDK itself: loaded, and gone on with."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import Runner
from agents.extensions.memory import AdvancedSQLiteSession, SQLAlchemySession
from agents.memory import SQLiteSession

from tests.formats.fixtures import only, repaired, taken
from tests.formats.generators.openai_agents import PAIR, PAY, Played, ask, says, talk
from turnwal.formats.wording import UNKNOWN_TEXT


def go_on(session: Any) -> list[dict[str, Any]]:
    """What the model sees when the conversation goes on."""

    async def run() -> list[dict[str, Any]]:
        played = Played([says("I shall check.")])
        await talk(played, session, "go on")
        (seen,) = played.seen
        assert (await session.get_items())[-1]["content"][0]["text"] == "I shall check."
        return [dict(item) for item in seen]

    return asyncio.run(run())


def outputs(seen: list[dict[str, Any]]) -> dict[str, Any]:
    calls = [item["call_id"] for item in seen if item.get("type") == "function_call"]
    found = {item["call_id"]: item["output"] for item in seen if item.get("type") == "function_call_output"}
    assert list(found) == calls
    return found


def test_the_sdk_hides_an_unanswered_call_and_sends_it_after_the_repair(tmp_path: Path) -> None:
    path, out = taken("openai_agents", "kept.db", tmp_path), tmp_path / "out.db"
    asyncio.run(SQLiteSession("kept", path).add_items([{"role": "user", "content": "are you there?"}]))
    repaired(path, out)
    assert outputs(go_on(SQLiteSession("kept", path))) == {"call_look": "price: 5"}
    assert outputs(go_on(SQLiteSession("kept", out))) == {"call_look": "price: 5", "call_charge": UNKNOWN_TEXT}


def test_what_stands_behind_the_call_stays_behind_its_output(tmp_path: Path) -> None:
    path, out = taken("openai_agents", "kept.db", tmp_path), tmp_path / "out.db"
    asyncio.run(SQLiteSession("kept", path).add_items([{"role": "user", "content": "are you there?"}]))
    repaired(path, out)
    kinds = [item.get("type", item.get("content")) for item in go_on(SQLiteSession("kept", out))]
    assert kinds[-4:] == ["function_call_output", "function_call_output", "are you there?", "go on"]


def test_a_session_of_sqlalchemy_keeps_its_order(tmp_path: Path) -> None:
    path, out = taken("openai_agents", "alchemy.db", tmp_path / "taken"), tmp_path / "out.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM agent_messages WHERE message_data LIKE '%function_call_output%'")
    repaired(path, out)
    session = SQLAlchemySession.from_url("alchemy", url=f"sqlite+aiosqlite:///{out}")
    assert outputs(go_on(session)) == dict.fromkeys(["call_1", "call_2", "call_3"], UNKNOWN_TEXT)


def test_a_branch_has_its_output_and_the_other_branch_none_of_it(tmp_path: Path) -> None:
    path, out = taken("openai_agents", "branches.db", tmp_path), tmp_path / "out.db"
    repaired(path, out)
    before = AdvancedSQLiteSession(session_id="branches", db_path=path, create_tables=True)
    session = AdvancedSQLiteSession(session_id="branches", db_path=out, create_tables=True)
    assert asyncio.run(session.get_items()) == asyncio.run(before.get_items())
    asyncio.run(session.switch_to_branch("second"))
    assert outputs(go_on(session))["call_charge"] == UNKNOWN_TEXT


@pytest.mark.parametrize("reply", [[PAIR[0], PAY], [PAY, PAIR[0]]])
def test_a_call_that_waits_for_an_approval_is_approved_in_the_copy_as_it_was(tmp_path: Path, reply: list[Any]) -> None:
    path, out = tmp_path / "s.db", tmp_path / "out.db"

    async def run() -> list[Any]:
        agent, stopped = await ask(Played([reply, says("It is paid.")]), SQLiteSession("s", path))
        assert repaired(path, out).verdict == "waiting"
        state = stopped.to_state()
        for one in stopped.interruptions:
            state.approve(one)
        session = SQLiteSession("s", out)
        assert (await Runner.run(agent, state, session=session)).final_output == "It is paid."
        return [dict(item) for item in await session.get_items()]

    items = asyncio.run(run())
    assert {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"} == {
        "call_look": "price: 5",
        "call_pay": "paid 5",
    }
    assert only(out)[1].verdict == "clean"
