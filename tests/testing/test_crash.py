"""The crash harness: good agents pass on every store, each planted defect is caught, and the report helps."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.crash.planted import EagerStore
from tests.testing import agents
from turnwal.store.file import FileStore
from turnwal.store.protocol import Store
from turnwal.testing.conformance import Storage
from turnwal.testing.crash import CrashFailures, CrashReport, crash_points, run_plainly
from turnwal.testing.crash.report import RULES

pytestmark = pytest.mark.timeout(300)


def caught(agent: Callable[..., Any], **options: Any) -> CrashReport:
    with pytest.raises(CrashFailures) as raised:
        crash_points(agent, effects=agents.effects, **options)
    return raised.value.report


def rules(report: CrashReport) -> set[str]:
    assert {failure.rule for failure in report.failures} <= set(RULES)
    return {failure.rule for failure in report.failures}


# Good agents in other forms


def test_an_agent_that_settles_by_a_look_passes_though_every_life_may_die() -> None:
    report = crash_points(agents.good, effects=agents.effects, deaths=3, seed=7)

    assert report.deaths > len(report.points)


def test_an_agent_may_be_given_its_session() -> None:
    report = crash_points(agents.good_in_a_session, session=agents.SESSION, effects=agents.effects)

    assert report.deaths == len(report.points)


def test_bodies_side_by_side_in_threads() -> None:
    report = crash_points(agents.side_by_side, effects=agents.effects)

    assert report.calls["unknown"] > 0


def test_an_asynchronous_agent() -> None:
    report = crash_points(agents.asynchronous, effects=agents.effects)

    assert {"pay#1:before", "pay#1:after", "send#1:after"} <= set(report.points)


def test_an_asynchronous_agent_may_be_given_its_session() -> None:
    report = crash_points(agents.asynchronous_in_a_session, session=agents.SESSION, target="openai-chat")

    assert report.deaths == len(report.points) > 0


def test_an_agent_with_a_sub_agent_in_a_log_of_its_own() -> None:
    report = crash_points(agents.two_sessions, effects=agents.effects, target="gemini")

    assert {"pay#1:before", "send#1:after"} <= set(report.points)


def test_what_is_sent_is_held_to_what_the_session_says() -> None:
    crash_points(agents.sends_what_it_says, effects=agents.effects, sent=agents.sent, target="anthropic")


def test_a_store_of_ones_own() -> None:
    opened = []

    class Kept:
        def __init__(self, root: Path) -> None:
            self.root = root

        def open(self) -> FileStore:
            opened.append(self.root)
            return FileStore(self.root)

    @contextmanager
    def factory() -> Iterator[Storage]:
        with TemporaryDirectory() as root:
            yield Kept(Path(root))

    crash_points(agents.good, store=factory, effects=agents.effects, only="pay#1:after")
    run_plainly(agents.good, store=factory, effects=agents.effects)
    assert opened  # in this process, by the run that nobody kills


def test_nobody_is_killed_in_a_plain_run() -> None:
    assert run_plainly(agents.good, effects=agents.effects, target="anthropic").deaths == 0


# What has to be caught


def test_a_tool_that_is_declared_read_only_and_pays() -> None:
    report = caught(agents.read_only_that_pays)

    assert rules(report) == {"read_only_changed", "effect_again"}
    twice = [failure for failure in report.failures if failure.rule == "effect_again"]
    assert {failure.point for failure in twice} == {"look#1:after", "write#4:before"}
    assert {failure.happened for failure in twice} == {"the world shows it twice"}


def test_a_lie_about_an_effect_is_caught_without_a_kill() -> None:
    with pytest.raises(CrashFailures, match="read_only_changed, in the run that nobody killed"):
        run_plainly(agents.read_only_that_pays, effects=agents.effects)


def test_an_agent_that_has_an_unknown_call_made_again() -> None:
    report = caught(agents.asks_again)

    assert rules(report) == {"ran_again", "effect_again"}
    ran = next(failure for failure in report.failures if failure.rule == "ran_again")
    assert ran.about == "send({})"
    assert re.fullmatch(r"it was done twice, for call [\d.]+ of 's', call [\d.]+ of 's'", ran.happened)


def test_an_agent_that_has_an_unknown_call_made_again_is_caught_without_a_word_about_the_world() -> None:
    with pytest.raises(CrashFailures) as raised:
        crash_points(agents.asks_again)

    assert rules(raised.value.report) == {"ran_again"}


def test_an_agent_that_repeats_an_irreversible_call() -> None:
    report = caught(agents.retries)

    assert rules(report) == {"ran_twice", "ran_again", "effect_again"}
    twice = next(failure for failure in report.failures if failure.rule == "ran_twice")
    assert re.fullmatch(r"call [\d.]+ of 's': send\({}\)", twice.about)
    assert twice.said == "neither read-only, idempotent nor keyed"


def test_an_effect_of_a_call_that_is_called_not_started() -> None:
    report = caught(agents.runs_first)

    assert {"not_started_but_ran", "unannounced"} <= rules(report)
    ran = next(failure for failure in report.failures if failure.rule == "not_started_but_ran")
    assert ran.said == "not started (declared)"
    assert ran.happened == "the world shows 'paid' with its key"


def test_an_agent_that_leaves_results_out_of_what_it_sends() -> None:
    report = caught(agents.leaves_out_results, sent=agents.sent, target="anthropic")

    assert {"sent_invalid", "sent_differs"} <= rules(report)
    assert "unanswered_call" in str(report)


def test_an_agent_that_words_what_it_sends_in_its_own_way() -> None:
    report = caught(agents.glosses_over, sent=agents.sent, target="anthropic")

    assert rules(report) == {"sent_differs"}


def test_a_store_that_acknowledges_before_it_writes() -> None:
    class Eager:
        def __init__(self, root: Path) -> None:
            self.root = root

        def open(self) -> Store:
            return EagerStore(FileStore(self.root))

    @contextmanager
    def factory() -> Iterator[Storage]:
        with TemporaryDirectory() as root:
            yield Eager(Path(root))

    report = caught(agents.good, store=factory, deaths=1)

    assert "acknowledged_lost" in rules(report)


def test_an_agent_that_leaves_its_turn_open() -> None:
    with pytest.raises(CrashFailures) as raised:
        run_plainly(agents.leaves_its_turn_open)

    assert rules(raised.value.report) == {"left_open"}
    assert "still due: turn_end" in str(raised.value)


def test_a_transcript_that_the_provider_refuses() -> None:
    report = caught(agents.never_says_what_for, target="anthropic")

    assert rules(report) == {"transcript_invalid"}
    assert "empty_message at messages" in str(report)


def test_an_agent_that_cannot_go_on() -> None:
    report = caught(agents.gives_up)

    assert rules(report) == {"did_not_finish"}
    assert "Interrupted" in str(report)


def test_an_agent_that_goes_on_for_ever() -> None:
    report = caught(agents.hangs_after_recovery, only="pay#1:after", timeout_s=2.0)

    assert rules(report) == {"did_not_finish"}


def test_an_agent_that_fails_although_nobody_kills_it() -> None:
    with pytest.raises(RuntimeError, match="the agent has a bug"):
        crash_points(agents.fails_anyway)


def test_an_agent_that_is_another_one_each_time_proves_nothing() -> None:
    @contextmanager
    def keeping() -> Iterator[Path]:
        with TemporaryDirectory() as root:
            yield Path(root)

    with keeping() as root:

        def agent(sessions: Any, world: Path) -> None:
            if not (root / "was-here").exists():
                (root / "was-here").touch()
                agents.good(sessions, world)

        report = caught(agent)
    assert rules(report) == {"not_reached"}
    assert report.deaths == 0


# The report


def test_a_failure_says_which_point_which_call_what_was_said_what_happened_and_how_to_see_it_again() -> None:
    report = caught(agents.retries)
    failure = next(failure for failure in report.failures if failure.rule == "ran_twice")

    assert str(failure).splitlines() == [
        f"ran_twice, killed at {failure.point}: an irreversible tool ran twice for one call",
        f"    about     {failure.about}",
        "    said      neither read-only, idempotent nor keyed",
        "    happened  it was entered twice, and came to its end twice",
        f"    again     crash_points(…, only={failure.point!r})",
    ]
    again = caught(agents.retries, only=failure.point)
    assert failure in again.failures
    assert again.points == [failure.point]


def test_a_point_or_a_store_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no point of this agent; it passes write#1:before"):
        crash_points(agents.good, only="refund#9:before")
    with pytest.raises(ValueError, match="no store that outlives a process"):
        crash_points(agents.good, store="memory:")


def test_a_rule_is_told_once_with_the_points_where_it_was_broken() -> None:
    told = str(caught(agents.read_only_that_pays))

    assert told.startswith("2 rules are broken; killed ")
    assert told.count("read_only_changed, ") == told.count("effect_again, ") == 1
    assert re.search(r"    also at   (write#\d:before, )?write#1:before, .*, and \d+ more$", told, re.MULTILINE)
    assert "    also at   write#4:before\n" in told + "\n"
