"""The demo's agent, killed at every point on every store that outlives a process."""

from pathlib import Path
from typing import Any

import pytest

from tests.store.server import shared_server
from turnwal.testing.agent import DONE, SESSION, World, go_on, last_words, settle_unknown
from turnwal.testing.crash import Effect, crash_points
from turnwal.testing.crash.places import factory_of

pytestmark = pytest.mark.timeout(300)


def demo(sessions: Any, root: Path) -> None:
    world = World(root)
    with sessions.session(SESSION) as session:
        settle_unknown(session, world)
        go_on(session, world)
        assert last_words(session) == DONE


def shown_by_demo(root: Path) -> list[Effect]:
    world = World(root)
    mails = [mail.read_text("utf-8") for mail in world.mails()]
    return [
        *(Effect(f"refund {line['order']}", line["key"]) for line in world.refunds()),
        *(Effect(mail.split("\n\n")[1], mail.split("<")[1].split("@")[0]) for mail in mails),
    ]


@pytest.mark.parametrize("store", ["file", "sqlite", "postgresql"])
def test_the_agent_of_the_demo_passes_on_every_store(store: str) -> None:
    url = shared_server().url() if store == "postgresql" else store

    report = crash_points(
        demo, store=url, prepare=lambda root: World(root).prepare(), effects=shown_by_demo, target="anthropic"
    )

    tools = {point.partition("#")[0] for point in report.points}
    assert tools == {"write", "read_policy", "refund", "send_mail"}
    assert report.deaths == len(report.points)
    assert not report.unreached
    # a refund that was not dispatched is proven not to have started, one that was is unknown
    assert report.calls["declared"] > 0
    assert report.calls["unknown"] > 0


def test_no_schema_is_left_in_the_database() -> None:
    server = shared_server()
    query = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'turnwal_crash_%'"
    with factory_of(server.url())():
        assert len(server.execute(query)) == 1
    assert server.execute(query) == []
