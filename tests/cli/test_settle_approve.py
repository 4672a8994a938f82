import json

import pytest

from tests.cli.worlds import World, holder, rot, run


def last_event(world: World, session: str) -> dict[str, object]:
    value: dict[str, object] = json.loads(world.path(session).read_bytes().splitlines()[-1])
    return value


def test_an_outcome_is_appended_with_its_evidence(world: World) -> None:
    path = world.crashed()
    run("recover", "crashed")
    before = path.read_bytes()

    result = run("settle", "crashed", "4.1", "happened", "--evidence", "receipt 8", "--by", "ada")

    assert (result.exit_code, result.stdout) == (0, "crashed: call 4.1 refund happened (seq 14)\n")
    event = last_event(world, "crashed")
    assert event["type"] == "tool_outcome"
    assert {"call": "4.1", "outcome": "happened", "evidence": "receipt 8", "by": "ada"}.items() <= event["data"].items()  # type: ignore[attr-defined]
    assert path.read_bytes().startswith(before)
    assert "outcome            4.1 refund, happened, by ada, evidence receipt 8" in run("show", "crashed").stdout


def test_settle_prints_json(world: World) -> None:
    world.crashed()
    run("recover", "crashed")

    value = json.loads(run("settle", "crashed", "4.2", "did_not_happen", "--json").stdout)

    head = run("head", "crashed").stdout.strip()
    assert value == {"session": "crashed", "call": "4.2", "outcome": "did_not_happen", "seq": 14, "head": head}


def test_a_grant_and_a_denial_answer_the_question(world: World) -> None:
    key = world.waiting("a")
    world.waiting("b")

    granted = run("approve", "a", key, "--by", "ada")
    denied = run("approve", "b", key, "--deny", "--text", "too dear", "--by", "ada")

    assert (granted.exit_code, granted.stdout) == (0, "a: call 4.0 pay granted (seq 10)\n")
    assert last_event(world, "a")["data"] == {
        "call": key,
        "id": "id of pay",
        "name": "pay",
        "decision": "granted",
        "by": "ada",
    }
    assert (denied.exit_code, denied.stdout) == (0, "b: call 4.0 pay denied (seq 11)\n")
    assert last_event(world, "b")["data"]["parts"] == [{"type": "text", "content": "too dear"}]  # type: ignore[index]


def test_a_question_is_answered_once(world: World) -> None:
    key = world.waiting()
    run("approve", "waiting", key)
    before = world.path("waiting").read_bytes()

    again = run("approve", "waiting", key, "--deny")

    assert again.exit_code == 1
    assert again.stderr.startswith("error refused: ")
    assert world.path("waiting").read_bytes() == before


@pytest.mark.parametrize("arguments", [["settle", "crashed", "4.1", "happened"], ["approve", "crashed", "4.1"]])
def test_interrupted_work_is_to_be_recovered_first(world: World, arguments: list[str]) -> None:
    path = world.crashed()
    before = path.read_bytes()

    result = run(*arguments)

    assert result.exit_code == 3
    assert result.stderr.startswith("error interrupted: ")
    assert "`turnwal recover` appends it" in result.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("tail", [b'{"seq":9,"pr', b'{"seq":10,"pr', b"\0" * 700], ids=["torn", "corrupt", "nul"])
@pytest.mark.parametrize(
    "verb", [["settle", "s", "4.0", "happened"], ["approve", "s", "4.0"]], ids=["settle", "approve"]
)
def test_a_tail_that_is_no_record_is_to_be_recovered_first(world: World, verb: list[str], tail: bytes) -> None:
    world.waiting("s")
    with world.path("s").open("ab") as file:
        file.write(tail)
    before = world.path("s").read_bytes()

    result = run(*verb)

    assert result.exit_code == 3
    assert result.stderr.startswith("error interrupted: open s: it holds interrupted work: a tail that is no record")
    assert world.path("s").read_bytes() == before
    told = run("recover", "s").stdout
    assert ("finding  doubtful_call at seq 4: call 4.0 waits" in told) is not tail.startswith(b'{"seq":9')
    if "doubtful_call" in told:
        # what went bad may be a grant, and the dispatch behind it
        doubted = world.path("s").read_bytes()
        for deny in ((), ("--deny",)):
            refused = run("approve", "s", "4.0", *deny)
            assert refused.exit_code == 1
            assert refused.stderr.startswith("error refused: write call 4.0: what is lost of the log may be a dispatch")
            assert "hint: look where it acts, then `settle` it: as `did_not_happen`" in refused.stderr
        assert world.path("s").read_bytes() == doubted
        assert run("settle", "s", "4.0", "did_not_happen", "--by", "ada").exit_code == 0
        assert "doubtful_call" not in run("plan", "s").stdout
    assert run("approve", "s", "4.0").exit_code == 0


@pytest.mark.parametrize("outcome", ["happened", "unknown"])
def test_f18_a_waiting_call_that_may_have_run_is_closed_by_what_was_learnt(world: World, outcome: str) -> None:
    world.waiting("s")
    with world.path("s").open("ab") as file:
        file.write(b"\0" * 700)
    run("recover", "s")

    assert run("settle", "s", "4.0", outcome, "--by", "ada").exit_code == 0

    answer, void, learnt = [json.loads(line) for line in world.path("s").read_bytes().splitlines()[-3:]]
    assert answer["data"]["metadata"]["risk"] == "tool_outcome_unknown"
    assert (void["type"], void["data"]["decision"]) == ("approval_response", "void")
    assert (learnt["type"], learnt["data"]["outcome"]) == ("tool_outcome", outcome)
    assert "doubtful_call" not in run("plan", "s").stdout
    assert json.loads(run("verify", "s", "--json").stdout)["findings"][1:] == []
    assert run("approve", "s", "4.0").stderr.startswith("error refused: write call 4.0: it has a result already")


@pytest.mark.parametrize("verb", [["settle", "s", "0.0", "happened"], ["approve", "s", "0.0"]])
def test_an_empty_session_is_not_begun(world: World, verb: list[str]) -> None:
    world.empty("s")

    result = run(*verb)

    assert result.exit_code == 1
    assert result.stderr.startswith("error empty_session: ")
    assert world.path("s").read_bytes() == b""


@pytest.mark.parametrize("verb", [["settle", "held", "0.0", "happened"], ["approve", "held", "0.0"]])
def test_a_live_owner_is_left_alone(world: World, verb: list[str]) -> None:
    with holder(world, "held"):
        result = run(*verb)

    assert result.exit_code == 5
    assert json.loads(run("ls", "--json").stdout)[0]["state"] == "interrupted"


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["settle", "s", "4.0", "happened"], 1, "refused"),
        (["settle", "s", "9.9", "happened"], 1, "call_not_found"),
        (["settle", "s", "what", "happened"], 1, "invalid_name"),
        (["settle", "s", "4.0", "maybe"], 2, "usage"),
        (["settle", "s", "4.0"], 2, "usage"),
        (["approve", "s", "9.9"], 1, "call_not_found"),
        (["approve", "s", "4.0", "--text", "no"], 2, "usage"),
        (["approve", "nobody", "4.0"], 1, "session_not_found"),
    ],
)
def test_what_cannot_be_done_says_why(world: World, arguments: list[str], code: int, error: str) -> None:
    world.waiting("s")
    before = world.path("s").read_bytes()

    result = run(*arguments)

    assert result.exit_code == code
    assert result.stderr.startswith(f"error {error}: ")
    assert "hint: " in result.stderr
    assert world.path("s").read_bytes() == before


def test_f18_a_call_before_old_damage_is_found_where_the_loss_is_accepted(world: World) -> None:
    world.crashed("s")
    run("recover", "s")
    key = world.waiting("s")
    world.clean("s", turns=2)
    # what is lost belongs to a turn that ended; it stands behind both calls
    rot(world.path("s"), int(key.split(".")[0]) + 8)

    for verb in (("settle", "s", "4.1", "happened"), ("approve", "s", key)):
        refused = run(*verb)
        assert (refused.exit_code, "--accept-loss" in refused.stderr) == (4, True)
        assert f"line {int(key.split('.')[0]) + 9}" in refused.stderr
        assert run(*verb, "--accept-loss").exit_code == 0

    assert last_event(world, "s")["type"] == "approval_response"
