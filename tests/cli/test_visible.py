"""What a log holds never reaches a terminal as a control character."""

import json
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.worlds import ATTACK, World, add_line, asking, cut_off, environment, holder, run, shell
from turnwal.cli.visible import cut, visible

HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def harmless(text: str) -> bool:
    return all(char == "\n" or unicodedata.category(char) not in HIDDEN for char in text)


@given(st.text(st.characters()))
def test_what_is_shown_is_one_plain_line(text: str) -> None:
    assert not {unicodedata.category(char) for char in visible(text)} & HIDDEN


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M", "Zs"])))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b1m", "\\x9b1m"),
        ("\u202egnp", "\\u202egnp"),
        ("\ud83d", "\\ud83d"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve 東京 🙂", "naïve 東京 🙂"),
    ],
)
def test_escapes_name_the_character(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(("width", "shown"), [(3, "abc"), (2, "a…"), (1, "…"), (0, "…")])
def test_cut_counts_code_points(width: int, shown: str) -> None:
    assert cut("abc", width) == shown


def attacked(world: World) -> str:
    """A session with the attack in every field that a writer can fill; returns its id."""
    id = f"id{ATTACK}"
    with world.sessions.session(id, agent=ATTACK, owner=ATTACK, cwd=ATTACK) as session:
        with session.turn(user=ATTACK) as turn, turn.step() as step:
            first, second, third, asked = step.assistant(
                {
                    "parts": [
                        {"type": "text", "content": ATTACK},
                        {"type": "reasoning", "content": ATTACK},
                        {"type": ATTACK, "x": ATTACK},
                        asking(ATTACK, ATTACK),
                        {**asking(ATTACK), "id": ATTACK},
                        asking(ATTACK),
                        asking(ATTACK),
                    ],
                    "model": ATTACK,
                }
            )
            asked.ask({ATTACK: ATTACK})
            first.dispatch()
            first.result(ATTACK, is_error=True)
            second.reject(ATTACK)
            third.dispatch()
            third.result("ok", metadata={"risk": ATTACK, "basis": ATTACK})
        session.append("x." + ATTACK, {ATTACK: [ATTACK]})
        session.append("user_message", {"parts": []}, run=ATTACK)
        session.append("request_header", {"model": ATTACK, "provider": ATTACK})
        session.call(first.call_key).settle("unknown", evidence=ATTACK, by=ATTACK)
        turn = session.open_turn(user=ATTACK)
        step = turn.step().__enter__()
        call, _ = step.assistant({"parts": [asking(ATTACK, ATTACK), asking(ATTACK, ATTACK)]})
        call.dispatch()
        session.append("turn_start", {"turn": 1, "label": ATTACK, "serves": ATTACK}, run=ATTACK)
        kept = len(session)
    path = next(world.root.glob("*.jsonl"))
    cut_off(path, kept)
    add_line(path, "tool_call", {"call": ATTACK, "id": ATTACK, "name": ATTACK, "child": {"session": ATTACK}})
    add_line(path, "tool_result", {"call": ATTACK, "id": ATTACK})
    return id


VERBS = [
    ["ls"],
    ["show", "ID"],
    ["plan", "ID"],
    ["verify", "ID"],
    ["head", "ID"],
    ["fork", "ID", "new\x1b", "--at", "5"],
    ["settle", "ID", ATTACK, "happened"],
    ["approve", "ID", "4.\x1b"],
    ["export", "ID", "-o", "out\x1b"],
    ["recover", "ID"],
    ["show", "ID"],
    ["import", "missing\x1b"],
    ["show", f"not there {ATTACK}"],
    [f"no verb {ATTACK}"],
    ["show", f"--no-option{ATTACK}", "x"],
    ["ls", "--store", f"scheme{ATTACK}:x"],
    ["ls", "--store", f"nope:{ATTACK}"],
    ["verify", "ID", "--expect", ATTACK],
]


def test_no_verb_lets_a_control_character_through(world: World) -> None:
    id = attacked(world)
    for verb in VERBS:
        arguments = [id if word == "ID" else word for word in verb]
        for form in ([], ["--json"]):
            result = run(*arguments, *form)
            assert "unexpected" not in result.stderr, verb
            for text in (result.stdout, result.stderr):
                assert harmless(text), (verb, form, text)
                assert not form or text.isascii()


def test_json_gives_back_what_was_recorded(world: World) -> None:
    id = attacked(world)

    lines = [json.loads(line) for line in run("show", id, "--json").stdout.splitlines()]

    assert lines[0]["session"]["session"] == id
    assert next(line for line in lines if line["kind"] == "event")["event"]["data"]["agent"] == ATTACK


def test_a_holder_cannot_write_on_the_screen_of_whom_it_keeps_out(world: World) -> None:
    with holder(world, "held", owner=ATTACK.replace("\0", "")):
        for verb in (["recover", "held"], ["plan", "held"], ["show", "held"], ["ls"]):
            result = run(*verb)
            assert harmless(result.stdout)
            assert harmless(result.stderr)


def test_what_the_terminal_cannot_encode_is_escaped(world: World) -> None:
    world.clean(user="naïve 東京 🙂")

    result = shell("show", "clean", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert result.returncode == 0
    assert b"na\\xefve \\u6771\\u4eac \\U0001f642" in result.stdout


def test_arguments_that_are_no_utf8_are_answered(world: World) -> None:
    world.clean()

    result = shell("show", b"\xff\xfe\x1b")

    assert result.returncode == 1
    assert result.stderr.startswith(b"error session_not_found: ")
    assert b"\x1b" not in result.stderr


_TERMINAL = """
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    import fcntl, struct, termios
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execv(sys.executable, [sys.executable, "-m", "turnwal", *sys.argv[1:]])
seen = b""
while True:
    try:
        chunk = os.read(fd, 65536)
    except OSError:
        break
    if not chunk:
        break
    seen += chunk
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def on_terminal(*arguments: str, **env: str) -> tuple[int, str]:
    """Run on a pseudo-terminal of 80 columns."""
    result = subprocess.run(
        [sys.executable, "-c", _TERMINAL, *arguments],
        capture_output=True,
        env=environment({"TERM": "xterm-256color", **env}),
        check=False,
        timeout=30,
    )
    return result.returncode, result.stdout.decode().replace("\r\n", "\n")


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def test_a_terminal_gets_colour_and_lines_that_fit(world: World) -> None:
    world.crashed()
    world.clean(user="w" * 500)

    _, text = on_terminal("show", "clean")
    plain = COLOUR.sub("", text)

    assert COLOUR.search(text)
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= 80
    assert "w…" in plain
    for verb in (["ls"], ["plan", "crashed"]):
        plain = COLOUR.sub("", on_terminal(*verb)[1])
        assert "\x1b" not in plain
        assert max(map(len, plain.splitlines())) <= 80


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_a_terminal_shows_the_whole_sentence_of_a_rule(world: World, columns: str) -> None:
    world.crashed()

    code, text = on_terminal("plan", "crashed", COLUMNS=columns)

    assert code == 3
    assert "The call was dispatched, or may have been the one that was." in COLOUR.sub("", text)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_a_narrow_terminal_cuts_neither_the_name_nor_the_state(world: World, columns: str) -> None:
    world.crashed("c" * 20)
    world.damaged("d" * 150)
    world.clean("東京" * 40)

    lines = COLOUR.sub("", on_terminal("ls", COLUMNS=columns)[1]).splitlines()

    assert any(line.startswith("c" * 20 + " ") and "interrupted" in line for line in lines)
    assert any(line.startswith("d" * 19 + "…  damaged") or "d" * 20 in line for line in lines)
    assert any("readable records follow" in line for line in lines)
    if columns == "80":
        assert {
            line.index(state) for line in lines for state in ("interrupted ", "damaged ") if state in line[:40]
        } == {22}


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colour_gets_no_escape(world: World, env: dict[str, str]) -> None:
    world.crashed()

    for verb in (["ls"], ["show", "crashed"], ["plan", "crashed"], ["verify", "crashed"]):
        assert "\x1b" not in on_terminal(*verb, **env)[1]


def test_a_terminal_obeys_nothing_of_a_log(world: World) -> None:
    id = attacked(world)
    id = id.replace("\0", "")
    world.path("x")
    path = next(world.root.glob("*.jsonl"))
    for verb in (["ls"], ["show", str(path)], ["plan", str(path)], ["verify", str(path)]):
        text = COLOUR.sub("", on_terminal(*verb)[1])
        assert harmless(text), verb


def test_markup_of_the_terminal_library_is_text(world: World) -> None:
    world.clean(user="[red]not red[/red] :smile: [link=http://x]y[/link]")

    assert "[red]not red[/red] :smile: [link=http" in COLOUR.sub("", on_terminal("show", "clean", COLUMNS="200")[1])


def test_lines_are_not_exported_to_a_terminal(world: World) -> None:
    world.clean()

    code, text = on_terminal("export", "clean")

    assert code == 2
    assert "say -o FILE" in text
    assert '"seq"' not in text


def test_a_pipe_gets_no_escape_whatever_the_environment_says(world: World) -> None:
    world.crashed()

    for env in ({"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1", "TERM": "xterm"}):
        assert b"\x1b" not in shell("ls", env=env).stdout
