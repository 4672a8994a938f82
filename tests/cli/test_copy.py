"""`turnwal copy` between stores of every kind, killed in the middle, and beside live owners."""

import json
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

import turnwal
from tests.cli.fleets import agents, clean, crash, damage, every_store, fleet_url, lines, of, start
from tests.cli.worlds import World, holder, run, shell

KINDS = ["file", "sqlite", "postgres"]
REPORT = {"sessions", "looked_at", "copied", "there", "empty", "alive", "conflict", "damaged", "failed"}
REPORT |= {"events", "bytes", "finished", "error"}


def exported(url: str) -> dict[str, bytes]:
    """What `turnwal export` writes of each session."""
    with turnwal.open_store(url) as store:
        return {id: b"".join(line + b"\n" for line in store.export(id)) for id in list(store)}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_all_sessions_are_copied_byte_for_byte(source: str, target: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        one = stack.enter_context(fleet_url(source, tmp_path / "one"))
        other = stack.enter_context(fleet_url(target, tmp_path / "other"))
        (tmp_path / "one").mkdir()
        (tmp_path / "other").mkdir()
        clean(one, "c", 3)
        with turnwal.open_store(one) as store:
            session = store.session("C A P S/ünd\n", tags=["odd"]).open()
            session.append("x.note", {"text": "\udcff\u2028 " + "long " * 50_000})
            session.close()

        done = run("copy", one, other, "--json")
        again = run("copy", one, other, "--json")
        report = json.loads(done.stdout)

        assert done.exit_code == again.exit_code == 0
        assert set(report) == REPORT
        assert exported(other) == exported(one)
        assert len(exported(other)) == 4
        assert report["bytes"] == sum(map(len, exported(one).values()))
        assert report["events"] == sum(entry["events"] for entry in report["sessions"])
        with turnwal.open_store(other) as store:
            assert {entry["session"]: entry["head"] for entry in report["sessions"]} == {
                id: str(store.glance(id).head) for id in store
            }
        assert (report["copied"], report["there"]) == (4, 0)
        assert (json.loads(again.stdout)["copied"], json.loads(again.stdout)["there"]) == (0, 4)
        assert json.loads(again.stdout)["sessions"] == []


@every_store
def test_a_copy_that_was_killed_goes_on_and_ends_complete(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        source = f"sqlite:{tmp_path / 'source.db'}"
        crash(source, "s", 120)
        clean(source, "c", 20)
        for _ in range(2):
            killed = start("copy", source, url)
            assert killed.stdout is not None
            for _ in range(15):
                killed.stdout.readline()
            killed.send_signal(signal.SIGKILL)
            killed.communicate(timeout=20)
            assert killed.returncode == -signal.SIGKILL
        between = exported(url)
        done = shell("copy", source, url, "--json")
        report = json.loads(done.stdout)
        whole = exported(source)

        assert done.returncode == 0
        assert 15 < len(between) < 140
        assert between.items() < whole.items()
        assert report["there"] == len(between)
        assert report["copied"] == 140 - len(between)
        assert exported(url) == whole
        interrupted = [
            row["session"] for row in json.loads(run("ls", "--interrupted", "--json", "--store", url).stdout)
        ]
        assert interrupted == sorted(id for id in whole if id.startswith("s"))


def test_ctrl_c_ends_a_copy_with_what_was_done(tmp_path: Path) -> None:
    source, target = f"sqlite:{tmp_path / 'source.db'}", f"sqlite:{tmp_path / 'target.db'}"
    crash(source, "s", 200)
    process = start("copy", source, target, "--json")
    assert process.stdout is not None
    begun = [process.stdout.readline() for _ in range(10)]
    process.send_signal(signal.SIGINT)
    rest, error = process.communicate(timeout=30)
    report = json.loads(b"".join(begun) + rest)

    assert (process.returncode, error) == (130, b"")
    assert report["finished"] is False
    assert of(report, "copied") == sorted(exported(target))
    assert 8 < report["copied"] < 200


def test_ctrl_c_in_the_middle_of_a_session_leaves_nothing_of_it(tmp_path: Path) -> None:
    with turnwal.open_store(tmp_path / "source") as source, turnwal.open_store(tmp_path / "target") as target:
        for id in ("a", "b", "c"):
            with source.session(id) as session:
                for number in range(50):
                    session.append("x.note", {"number": number})
        asked = iter(range(1_000))

        copies = list(source.copy_all(target, stop=lambda: next(asked) > 70))

        assert [(copy.session, copy.outcome) for copy in copies] == [("a", "copied")]
        assert list(target) == ["a"]
        assert [copy.outcome for copy in source.copy_all(target)] == ["there", "copied", "copied"]


def test_named_sessions_alone_are_copied(world: World) -> None:
    for id in ("a", "b", "c"):
        world.clean(id)

    result = run("copy", str(world.root), "other", "a", "c", "nobody")

    assert result.exit_code == 1
    assert result.stderr.startswith("error session_not_found: ")
    assert sorted(turnwal.open_store("other")) == ["a", "c"]


def test_another_history_under_the_id_is_a_conflict_and_is_left_alone(world: World) -> None:
    for id in ("ahead", "behind", "other", "same", "z"):
        world.clean(id)
    (other := World(Path("other"))).clean("other", user="somebody else")
    for id in ("ahead", "behind", "same"):
        run("copy", str(world.root), "other", id)
    for root, id in ((other.root, "ahead"), (world.root, "behind")):
        with turnwal.open_store(root).session(id) as session, session.turn(user="more"):
            pass
    other.empty("z")
    before = {path.name: path.read_bytes() for path in other.root.glob("*.jsonl")}

    result = run("copy", str(world.root), "other", "--json")
    report = json.loads(result.stdout)

    assert result.exit_code == 1
    assert of(report, "conflict") == ["ahead", "behind", "other", "z"]
    told = {entry["session"]: entry["error"]["message"] for entry in report["sessions"]}
    assert told["ahead"] == "it went on there: it has 11 events, here 7"
    assert told["behind"] == "only its first 7 events are there"
    assert told["other"].startswith("another history is there under this id")
    assert "never began" in told["z"]
    assert (report["there"], report["copied"]) == (1, 0)
    assert {path.name: path.read_bytes() for path in other.root.glob("*.jsonl")} == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_session_under_the_id_is_named_with_a_way_out(kind: str, tmp_path: Path) -> None:
    source = f"sqlite:{tmp_path / 'source.db'}"
    clean(source, "c", 1)
    (id,) = exported(source)
    with fleet_url(kind, tmp_path) as target, turnwal.open_store(target) as store:
        claim = store.store.claim(id, owner="the beginner")
        owned = json.loads(run("copy", source, target, "--json").stdout)["sessions"][0]
        claim.release()
        (free,) = json.loads(run("copy", source, target, "--json").stdout)["sessions"]

        assert owned["outcome"] == free["outcome"] == "conflict"
        told = "an empty session is there under this id: it never began"
        assert free["error"]["message"] == told
        assert owned["error"]["message"].startswith(f"{told}, and ")
        assert "the beginner" in owned["error"]["message"]
        assert "turnwal export" in free["error"]["hint"]
        # and it is a way out
        assert run("export", id, "-o", str(tmp_path / "out.jsonl"), "--store", source).exit_code == 0
        assert run("import", str(tmp_path / "out.jsonl"), f"{id}-2", "--store", target).exit_code == 0
        assert lines(store, f"{id}-2") == lines(turnwal.open_store(source), id)


def test_a_session_at_work_is_left_out_or_copied_as_a_snapshot(world: World) -> None:
    world.clean("a")
    with holder(world, "held"):
        without = run("copy", str(world.root), "other", "--json")
        snapshot = run("copy", str(world.root), "snapshots", "--copied", "--json")
        again = run("copy", str(world.root), "snapshots", "--copied", "--json")
        exact = run("copy", str(world.root), "snapshots", "--json")
    afterwards = run("copy", str(world.root), "other", "--json")

    assert without.exit_code == 5
    report = json.loads(without.stdout)
    assert (of(report, "copied"), of(report, "alive")) == (["a"], ["held"])
    assert "the night shift" in report["sessions"][1]["holder"]
    assert snapshot.exit_code == again.exit_code == 0
    assert of(json.loads(snapshot.stdout), "copied") == ["a", "held"]
    assert json.loads(again.stdout)["there"] == 2
    last = Path("snapshots/held.jsonl").read_bytes().splitlines()[-1]
    assert json.loads(last)["type"] == "session_copied"
    assert exact.exit_code == 5
    assert afterwards.exit_code == 0
    assert of(json.loads(afterwards.stdout), "copied") == ["held"]
    # the owner is gone: what was a snapshot is another history than what is there now
    later = json.loads(run("copy", str(world.root), "snapshots", "--json").stdout)
    assert of(later, "conflict") == ["held"]


def test_a_session_that_crashed_is_owned_while_it_is_copied(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.crashed("a")
    source, target = turnwal.open_store(world.root), turnwal.open_store("other")
    owners = []
    put = target.store.put

    def watched(session: str, lines: object) -> object:
        def looking() -> object:
            for line in lines:  # type: ignore[attr-defined]
                owners.append(source.store.probe("a").owner)
                yield line

        return put(session, looking())  # type: ignore[arg-type]

    monkeypatch.setattr(target.store, "put", watched)
    assert [copy.outcome for copy in source.copy_all(target)] == ["copied"]

    assert len(owners) == 8
    assert None not in owners
    assert source.store.probe("a").owner is None


@every_store
def test_damaged_ones_are_passed_by(kind: str, tmp_path: Path) -> None:
    with fleet_url(kind, tmp_path) as url:
        clean(url, "c", 3)
        damage(url, "c0001")
        result = run("copy", url, str(tmp_path / "target"), "--json")
        again = run("copy", url, str(tmp_path / "target"))

    assert result.exit_code == again.exit_code == 4
    report = json.loads(result.stdout)
    assert (of(report, "copied"), of(report, "damaged")) == (["c0000", "c0002"], ["c0001"])
    assert sorted(turnwal.open_store(tmp_path / "target")) == ["c0000", "c0002"]
    assert again.stderr.startswith("error damaged: ")


def test_odd_files_are_each_told(world: World) -> None:
    world.torn("torn")
    world.too_new("newer")
    world.empty("empty")
    world.damaged_start("headless")
    world.clean("e").rename(stray := world.root / "Not Ours.jsonl")

    result = run("copy", str(world.root), "other", "--json")
    report = json.loads(result.stdout)
    again = json.loads(run("copy", str(world.root), "other", "--json").stdout)

    assert result.exit_code == 4
    assert {entry["session"]: entry["outcome"] for entry in report["sessions"]} == {
        "torn": "copied",
        "newer": "failed",
        "empty": "empty",
        "headless": "damaged",
        str(stray): "failed",
    }
    copied = Path("other/torn.jsonl").read_bytes()
    assert json.loads(copied.splitlines()[-1])["type"] == "damage"
    assert again["there"] == 1
    assert Path("other/torn.jsonl").read_bytes() == copied


def test_what_does_not_read_back_is_no_success(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that says yes and keeps something else."""
    world.clean("a")
    source, target = turnwal.open_store(world.root), turnwal.open_store("other")
    put = target.store.put

    def lying(session: str, lines: object) -> object:
        head = put(session, lines)  # type: ignore[arg-type]
        path = Path("other/a.jsonl")
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
        return head

    monkeypatch.setattr(target.store, "put", lying)
    (copy,) = source.copy_all(target)

    assert copy.outcome == "failed"
    assert getattr(copy.error, "code", "") == "head_mismatch"


def test_the_text_ends_with_a_table_and_the_report_goes_to_a_file(world: World) -> None:
    world.clean("a")
    world.clean("b")
    run("copy", str(world.root), "other", "a")

    result = run("copy", str(world.root), "other", "--report", "report.json")

    assert result.exit_code == 0
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    assert rows[0][0].startswith("b: copied; 7 events, head 7:")
    assert ["copied", "1"] in rows
    assert ["there already", "1"] in rows
    assert rows[-1][0].startswith("7 events, ")
    assert of(json.loads(Path("report.json").read_text()), "copied") == ["b"]


def test_a_store_without_sessions_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    result = run("copy", "nothing", "other")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "no session in nothing\n"
    assert not Path("other").exists()


def test_two_copies_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), f"sqlite:{tmp_path / 'target.db'}"
    clean(source, "c", 60)
    runs = [start("copy", source, target, "--json") for _ in range(2)]
    ended = [(*process.communicate(timeout=50), process.returncode) for process in runs]

    assert [(error, code) for _, error, code in ended] == [(b"", 0)] * 2
    reports = [json.loads(output) for output, _, _ in ended]
    assert sorted(id for report in reports for id in of(report, "copied")) == sorted(exported(source))
    assert exported(target) == exported(source)


def test_a_live_agent_goes_on_beside_a_snapshot_of_many(tmp_path: Path) -> None:
    source, target = f"sqlite:{tmp_path / 'source.db'}", str(tmp_path / "target")
    with agents(source, "s", 20), turnwal.open_store(source) as store:
        result = run("copy", source, target, "--copied", "--json")
        originals = {id: lines(store, id) for id in store}
    report = json.loads(result.stdout)

    assert result.exit_code == 0
    assert report["copied"] == 20
    with turnwal.open_store(target) as copies:
        for id, original in originals.items():
            assert lines(copies, id)[:-1] == original
        risks = {call["data"]["metadata"]["risk"] for id in copies for call in _lost(target, id)}
    # nobody knows whether the original goes on
    assert risks == {"tool_outcome_unknown"}


def _lost(url: str, id: str) -> list[dict[str, dict[str, dict[str, str]]]]:
    plan = json.loads(run("plan", id, "--json", "--store", url).stdout)
    return [repair for repair in plan["repairs"] if repair["type"] == "tool_result"]
