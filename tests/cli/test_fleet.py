"""`recover --all` on what really killed processes left, beside live ones, and beside itself."""

import json
import re
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.fleets import (
    Truth,
    agents,
    clean,
    crash,
    damage,
    databases,
    every_store,
    fleet_url,
    of,
    start,
    told,
    unknown,
)
from tests.cli.test_visible import on_terminal
from tests.cli.worlds import World, run, shell
from turnwal.cli import ls
from turnwal.cli.progress import Progress
from turnwal.cli.stopping import stoppable
from turnwal.core.errors import StoreFailed
from turnwal.session.inspection import Glance
from turnwal.session.sessions import Sessions

CALL = {"call", "id", "name", "run", "risk", "basis", "retry", "rule", "because", "attempt", "key", "child"}
REPORT = {"sessions", "looked_at", "recovered", "nothing_to_do", "elsewhere", "alive", "damaged", "failed", "tools"}
REPORT |= {"finished", "error"}


def until_leases_end(url: str) -> None:
    """Sleep as long as dead agents on a server are held to be alive."""
    if url.startswith("postgresql"):
        time.sleep(1.2)


@every_store
def test_a_fleet_is_recovered_and_the_report_is_what_the_logs_say(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        clean(url, "c", 20)
        crash(url, "s", 100)
        crash(url, "x", 2)
        damage(url, "x0001")
        with agents(url, "alive", 3):
            until_leases_end(url)
            first = shell("recover", "--all", "--json", "--store", url)
            second = shell("recover", "--all", "--json", "--store", url)
        report, again = json.loads(first.stdout), json.loads(second.stdout)
        truth = Truth(url, "s")

    assert first.returncode == second.returncode == 4
    assert set(report) == REPORT
    assert report["recovered"] == 101
    assert set(truth.recoveries.values()) == {1}
    assert len(truth.recoveries) == 100
    assert of(report, "recovered") == [*sorted(truth.recoveries), "x0000"]
    assert of(report, "damaged") == ["x0001"]
    assert of(report, "alive") == of(again, "alive") == [f"alive{number:04}" for number in range(3)]
    assert all("a night agent" in entry["holder"] for entry in report["sessions"] if entry["outcome"] == "alive")
    # x0000 is of the first shape: two calls that did not start
    of_x = Counter({("refund", "not_started_declared"): 1, ("mail", "not_started_declared"): 1})
    assert told(report) == truth.calls + of_x
    assert unknown(report) == truth.unknown != set()
    assert {frozenset(call) for entry in report["sessions"] for call in entry["calls"]} == {frozenset(CALL)}
    assert report["nothing_to_do"] == (20 if kind == "file" else 0)
    assert again["recovered"] == 0
    assert again["finished"] is True
    (line,) = (line for line in first.stderr.splitlines() if b'"damaged"' in line)
    assert json.loads(line)["error"] == next(e["error"] for e in report["sessions"] if e["outcome"] == "damaged")


@every_store
def test_runs_at_once_recover_each_session_once_and_none_fails(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        crash(url, "s", 150)
        clean(url, "c", 5)
        until_leases_end(url)
        runs = [start("recover", "--all", "--json", "--store", url) for _ in range(3)]
        ended = [(*process.communicate(timeout=50), process.returncode) for process in runs]
        truth = Truth(url, "s")

    assert [(error, code) for _, error, code in ended] == [(b"", 0)] * 3
    reports = [json.loads(output) for output, _, _ in ended]
    assert len(truth.recoveries) == 150
    assert set(truth.recoveries.values()) == {1}
    assert sorted(name for report in reports for name in of(report, "recovered")) == sorted(truth.recoveries)
    assert sum(map(told, reports), Counter()) == truth.calls
    assert {call for report in reports for call in unknown(report)} == truth.unknown
    assert {report["alive"] + report["damaged"] + report["failed"] for report in reports} == {0}


@databases
def test_a_run_that_was_killed_is_given_again(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        crash(url, "s", 200)
        until_leases_end(url)
        killed = start("recover", "--all", "--report", str(tmp_path / "killed.json"), "--store", url)
        assert killed.stdout is not None
        for _ in range(20):
            killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=20)
        # what the killed process held in PostgreSQL is held until its lease ends, and that is waited for
        done = shell("recover", "--all", "--json", "--store", url)
        truth = Truth(url, "s")

    assert killed.returncode == -signal.SIGKILL
    assert done.returncode == 0
    assert set(truth.recoveries.values()) == {1}
    report = json.loads(done.stdout)
    assert 0 < report["recovered"] < 200
    left = (tmp_path / "killed.json").read_text().splitlines()[1:]
    entries = [json.loads(line.strip(",")) for line in left]
    told_by_the_killed = {entry["session"] for entry in entries}
    assert len(told_by_the_killed) > 5
    assert not told_by_the_killed & set(of(report, "recovered"))
    assert all(entry["outcome"] == "recovered" for entry in entries)


@every_store
def test_ctrl_c_ends_it_between_two_sessions_and_tells_what_was_done(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        crash(url, "s", 200)
        until_leases_end(url)
        process = start("recover", "--all", "--json", "--store", url)
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(10)]
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=30)
        truth = Truth(url, "s")
        report = json.loads(b"".join(begun) + rest)
        more = shell("recover", "--all", "--json", "--store", url)

    assert (process.returncode, error) == (130, b"")
    assert report["finished"] is False
    assert 5 < report["recovered"] < 200
    assert of(report, "recovered") == sorted(name for name, count in truth.recoveries.items() if count)
    assert told(report) == truth.calls
    assert more.returncode == 0
    assert json.loads(more.stdout)["recovered"] == 200 - report["recovered"]


def test_a_second_ctrl_c_ends_it_at_once() -> None:
    with stoppable() as stopped:
        assert not stopped()
        signal.raise_signal(signal.SIGINT)
        assert stopped()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def until_it_looks_at(path: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a process has a file open, and is asleep or at the next one by the time this returns."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            with suppress(OSError):
                if str(descriptor.readlink()).startswith(str(path)):
                    time.sleep(0.3)
                    return
        time.sleep(0.005)
    raise AssertionError(f"it never looked at {path}")


def test_what_was_finished_elsewhere_while_it_was_held_is_no_failure(world: World) -> None:
    """The owner is alive when the run comes, ends its turn, and goes before the run looks again."""
    world.clean("held")
    script = (
        "import sys, turnwal\n"
        "session = turnwal.open_store(sys.argv[1]).session('held').open()\n"
        "turn = session.open_turn(user='at work'); session.flush()\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "turn.close('complete'); session.close(); print('closed', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(world.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdin is not None
        assert owner.stdout.readline() == "ready\n"
        waiting = start("recover", "--all", "--json", "--wait", "60")
        until_it_looks_at(world.path("held"), waiting)
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == "closed\n"
        output, _ = waiting.communicate(timeout=20)

    report = json.loads(output)
    assert waiting.returncode == 0
    assert of(report, "elsewhere") == ["held"]
    assert report["alive"] == 0


def test_waiting_for_an_owner_that_dies_recovers_what_it_left(world: World, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'agents.db'}"
    with agents(url, "s", 2) as owner:
        waiting = start("recover", "--all", "--json", "--wait", "20", "--store", url)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(timeout=1.5)
        owner.kill()
        output, _ = waiting.communicate(timeout=20)

    assert waiting.returncode == 0
    assert of(json.loads(output), "recovered") == ["s0000", "s0001"]
    assert not list(world.sessions)


def test_the_text_names_each_call_that_may_have_run_and_ends_with_tables(world: World) -> None:
    world.crashed("a")
    world.crashed("b", name="transfer\x1b[2J")
    world.torn("t")
    world.clean("c")

    result = run("recover", "--all")

    assert result.exit_code == 0
    assert "a: recovered; 1 call may have run, 1 did not start\n" in result.stdout
    assert "  call 4.1 refund (id id of refund): outcome unknown; check the state first\n" in result.stdout
    assert "\x1b" not in result.stdout
    assert "t: recovered\n" in result.stdout
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    assert ["recovered", "3"] in rows
    assert ["nothing to do", "1"] in rows
    assert ["calls to", "outcome unknown", "did not start (declared)", "did not start (inferred)"] in rows
    assert ["refund", "1", "0", "0"] in rows
    assert ["mail", "0", "2", "0"] in rows


def test_the_report_goes_to_a_new_file_beside_the_table(world: World, tmp_path: Path) -> None:
    world.crashed("a")
    world.damaged("b")

    result = run("recover", "--all", "--report", "report.json")
    report = json.loads((tmp_path / "report.json").read_text())

    assert "a: recovered" in result.stdout
    assert (of(report, "recovered"), of(report, "damaged")) == (["a"], ["b"])
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o600
    world.crashed("c")
    refused = run("recover", "--all", "--report", "report.json")
    assert refused.exit_code == 1
    assert "report.json" in refused.stderr
    assert run("plan", "c").exit_code == 3
    assert json.loads((tmp_path / "report.json").read_text()) == report
    assert run("recover", "c", "--report", "other.json").exit_code == 2


def test_a_file_without_an_id_is_recovered_by_its_path(world: World) -> None:
    path = world.crashed("e").rename(world.root / "Not Ours.jsonl")

    report = json.loads(run("recover", "--all", "--json").stdout)

    assert of(report, "recovered") == [str(path)]
    assert run("plan", str(path)).exit_code == 0


def test_accepting_losses_goes_on_behind_them_in_the_whole_fleet(world: World) -> None:
    world.damaged("a")
    world.damaged("b")

    assert run("recover", "--all").exit_code == 4
    report = json.loads(run("recover", "--all", "--accept-loss", "--json").stdout)

    assert of(report, "recovered") == ["a", "b"]
    # the requests stood behind the damage: nothing is said of calls that no sound record names
    assert [(entry["turns"], entry["calls"]) for entry in report["sessions"]] == [(1, []), (1, [])]
    assert run("recover", "--all").stdout == "nothing to do\n"


def test_a_store_that_cannot_be_listed_ends_the_run_with_what_was_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.crashed("a")

    def cut_off(_: Sessions) -> Iterator[str]:
        yield "a"
        raise StoreFailed("the server is gone", action="list", subject="it", hint="start it")

    monkeypatch.setattr(Sessions, "__iter__", cut_off)
    result = run("recover", "--all", "--json")
    report = json.loads(result.stdout)

    assert result.exit_code == 1
    assert of(report, "recovered") == ["a"]
    assert (report["finished"], report["error"]["code"]) == (False, "store_failed")
    assert json.loads(result.stderr)["error"]["message"] == "the server is gone"


def errors_of(done: "subprocess.CompletedProcess[bytes]") -> list[str]:
    return sorted(line for line in done.stderr.decode().splitlines() if line.startswith("error"))


def test_the_text_names_the_session_of_an_error_that_speaks_of_the_store(tmp_path: Path) -> None:
    with fleet_url("postgres", tmp_path) as url:
        crash(url, "s", 2)
        until_leases_end(url)
        read_only = f"{url}%20-cdefault_transaction_read_only%3Don"
        recovered = shell("recover", "--all", "--store", read_only)
        copied = shell("copy", read_only, f"sqlite:{tmp_path / 'copied.db'}")

    for done in (recovered, copied):
        assert done.returncode == 1
        first, second = errors_of(done)
        assert first.startswith("error store_failed: s0000: claim postgresql://")
        assert second.startswith("error store_failed: s0001: claim postgresql://")


def test_the_text_names_the_session_of_an_error_once(tmp_path: Path) -> None:
    with fleet_url("sqlite", tmp_path) as url:
        crash(url, "s", 1)
        damage(url, "s0000")
        done = shell("recover", "--all", "--store", url)

    assert done.returncode == 4
    (error,) = errors_of(done)
    assert error.count("s0000") == 1


def test_a_terminal_gets_a_bar_that_leaves_nothing_behind(world: World) -> None:
    for number in range(30):
        world.crashed(f"s{number:02}")

    code, shown = on_terminal("recover", "--all")

    assert code == 0
    assert "/30" in shown
    assert "30 recovered" in shown or "29 recovered" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert plain.count("recovered; 1 call may have run") == 30
    assert shown.rstrip().splitlines()[-1].split()[0] == "refund" or "mail" in shown.rstrip().splitlines()[-1]


def test_a_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    moments = iter([0.0, 1.0, 9.0, 11.0, 12.0, 21.5])
    with Progress("recover", lambda: 7 // 0, clock=lambda: next(moments)) as progress:
        for number in range(5):
            progress.advance(f"{number} recovered")

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "recover: 3 sessions done (2 recovered)",
        "recover: 5 sessions done (4 recovered)",
    ]


def test_looking_for_the_interrupted_keeps_only_what_it_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sessions that are not listed nothing is kept: the glances at them are gone when the next is made."""
    url = str(tmp_path / "sessions")
    clean(url, "c", 30)
    glance = ls._glance
    alive: list[int] = []
    seen: weakref.WeakSet[Glance] = weakref.WeakSet()

    class Watched(Glance):
        """A glance that a weak reference may watch."""

    def noting(sessions: Sessions, id: str, name: str) -> Glance:
        alive.append(len(seen))
        made = Watched(name, glance(sessions, id, name).state)
        seen.add(made)
        return made

    monkeypatch.setattr(ls, "_glance", noting)
    assert run("ls", "--interrupted", "--store", url).exit_code == 0

    assert len(alive) == 30
    assert max(alive) <= 2
