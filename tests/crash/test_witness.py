"""The witness says so when something does not hold: each of its checks is shown a log in which it does not."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnwal
from tests.crash.marks import Marks
from tests.crash.reading import read_log
from tests.crash.witness import Totals, Witness
from turnwal.session.sessions import Sessions
from turnwal.store.file import FileStore

ASKING = {
    "parts": [
        {"type": "tool_call", "id": "a", "name": "act", "arguments": {}},
        {"type": "tool_call", "id": "b", "name": "act", "arguments": {"n": 1}},
        {"type": "tool_call", "id": "c", "name": "act", "arguments": {"n": 2}},
    ]
}


class Scene:
    """A session that ended with one call answered, one dispatched and one not begun, and what its life left outside."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.totals = Totals()
        self.sessions = Sessions(FileStore(root / "sessions"))
        self.effects = Marks(root / "s.effects")
        self.acks = Marks(root / "s.acks")
        session = self.sessions.session("s").open()
        step = session.open_turn("go").step().begin()
        answered, dispatched, self.not_begun = step.assistant(ASKING)
        answered.run({"act": self.act})
        dispatched.dispatch()
        self.effects.write(dispatched.key)
        self.answered, self.dispatched = answered, dispatched
        head = session.flush()
        self.acks.write(f"ACK {head.count} {head.hash}")
        self.path = root / "sessions" / "s.jsonl"
        lines = self.path.read_bytes()
        session.close()
        # as a kill leaves it: closing has ended the turn
        self.path.write_bytes(lines)
        self.witness = Witness(root, "s", self.totals)

    @turnwal.tool(keyed=True)
    def act(self, key: str, n: int = 0) -> None:
        del n
        self.effects.write(key)

    def append(self, type: str, data: dict[str, Any]) -> None:
        """Put a line behind the others that chains and says what no writer of ours would."""
        lines = self.path.read_bytes().split(b"\n")[:-1]
        prev = hashlib.sha256(lines[-1]).hexdigest()
        line = json.dumps(
            {"seq": len(lines), "prev": prev, "time": 0, "type": type, "data": data}, separators=(",", ":")
        )
        with self.path.open("ab") as file:
            file.write(line.encode() + b"\n")

    def die(self) -> list[str]:
        self.witness.after_death(self.sessions)
        return self.totals.violations

    def recover(self) -> list[str]:
        self.witness.after_death(self.sessions)
        self.sessions.session("s").open().close()
        self.witness.after_recovery(self.sessions)
        return self.totals.violations


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_sound_log_is_not_accused(scene: Scene) -> None:
    assert scene.recover() == []
    assert scene.totals.recovered == {"unknown": 1, "declared": 1}


def lose_the_last_line(scene: Scene) -> None:
    lines = scene.path.read_bytes().split(b"\n")
    scene.path.write_bytes(b"\n".join(lines[:-2]) + b"\n")


def acknowledge_another_head(scene: Scene) -> None:
    scene.acks.write(f"ACK 3 {'0' * 64}")


def do_something_unannounced(scene: Scene) -> None:
    scene.effects.write(scene.not_begun.key)


def do_something_twice(scene: Scene) -> None:
    scene.effects.write(scene.answered.key)


def forget_the_effect_of_a_real_result(scene: Scene) -> None:
    os.truncate(scene.effects.path, 0)
    scene.effects.write(scene.dispatched.key)


def answer_twice(scene: Scene) -> None:
    scene.append("tool_result", {"call": scene.answered.call_key, "id": "a", "parts": []})


def answer_what_was_never_asked(scene: Scene) -> None:
    scene.append("tool_result", {"call": "1.5", "id": "z", "parts": []})


def call_a_dispatched_call_not_started(scene: Scene) -> None:
    metadata = {"synthetic": True, "risk": "tool_not_started", "basis": "declared"}
    scene.append("tool_result", {"call": scene.dispatched.call_key, "id": "b", "parts": [], "metadata": metadata})


def call_an_undispatched_call_unknown(scene: Scene) -> None:
    metadata = {"synthetic": True, "risk": "tool_outcome_unknown"}
    scene.append("tool_result", {"call": scene.not_begun.call_key, "id": "c", "parts": [], "metadata": metadata})


def infer_what_is_declared(scene: Scene) -> None:
    metadata = {"synthetic": True, "risk": "tool_not_started", "basis": "inferred"}
    scene.append("tool_result", {"call": scene.not_begun.call_key, "id": "c", "parts": [], "metadata": metadata})


def cover_nothing(scene: Scene) -> None:
    scene.append("damage", {"after": 1, "length": 3, "sha256": "0" * 64, "kind": "torn"})


def end_what_has_not_begun(scene: Scene) -> None:
    for _ in range(2):
        scene.append("turn_end", {"reason": "complete"})


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        (lose_the_last_line, "events were acknowledged"),
        (acknowledge_another_head, "is another one now"),
        (do_something_unannounced, "effects of key"),
        (do_something_unannounced, "is called not started and has 1 effects"),
        (do_something_twice, "2 effects of key"),
        (forget_the_effect_of_a_real_result, "left no mark"),
        (answer_twice, "a second result"),
        (answer_what_was_never_asked, "never asked for"),
        (call_a_dispatched_call_not_started, "and was dispatched"),
        (call_an_undispatched_call_unknown, "is called unknown"),
        (infer_what_is_declared, "is called not started (inferred)"),
        (cover_nothing, "covers nothing"),
        (end_what_has_not_begun, "ends nothing"),
    ],
)
def test_what_does_not_hold_after_a_death_is_said(defect: Callable[[Scene], None], said: str, scene: Scene) -> None:
    defect(scene)

    assert any(said in violation for violation in scene.die())


def test_changed_bytes_are_said(scene: Scene) -> None:
    scene.die()
    scene.path.write_bytes(scene.path.read_bytes().replace(b'"go"', b'"no"'))

    scene.witness.look()

    assert any("gone or changed" in violation for violation in scene.totals.violations)


def test_a_session_that_was_not_recovered_is_said(scene: Scene) -> None:
    scene.die()
    scene.witness.after_recovery(scene.sessions)

    for said in ("has no result", "1 turn_start and 0 turn_end", "something to recover", "wrote something"):
        assert any(said in violation for violation in scene.totals.violations), said


def test_a_recovery_that_differs_from_the_plan_is_said(scene: Scene) -> None:
    scene.die()
    scene.witness.verdicts[scene.dispatched.call_key] = ("tool_not_started", "declared")
    scene.sessions.session("s").open().close()

    scene.witness.after_recovery(scene.sessions)

    assert any("was planned as" in violation for violation in scene.totals.violations)


def test_bytes_that_are_no_record_are_said_unless_a_damage_event_covers_them(scene: Scene) -> None:
    sound = scene.path.read_bytes()

    torn = read_log(sound + b'{"seq":9')
    uncovered = read_log(sound[: sound.rfind(b"\n", 0, -1) + 1] + b'{"seq":9\n' + sound.split(b"\n")[-2] + b"\n")

    assert torn.tail == b'{"seq":9'
    assert any("not covered" in problem for problem in uncovered.problems)
