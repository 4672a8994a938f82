"""The core reaches no file, clock, random source, network, process or thread: seen from outside, in a fresh process."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import turnwal.core
from turnwal.core import fork

CORE = Path(fork.__file__).parent
MODULES = sorted(path.stem for path in CORE.glob("*.py"))

ALLOWED = {
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "functools",
    "hashlib",
    "json",
    "math",
    "re",
    "typing",
    "msgspec",
}
"""What a module of the core may import besides the core: values and functions of values, no door to the outside."""

SCENARIO = """
import sys
import builtins, time, random, os, socket, threading
from turnwal.core import chain, fork, keys, recovery
from turnwal.core.log import Log

heard = []
def refuse(name):
    def refused(*args, **kwargs):
        heard.append(name)
        raise AssertionError(name)
    return refused
for module, names in {
    time: ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep", "localtime", "gmtime"),
    random: ("random", "getrandbits", "randrange", "choice"),
    os: ("urandom", "getpid", "getcwd", "stat", "fsync", "write"),
    builtins: ("open", "print", "input"),
}.items():
    for name in names:
        setattr(module, name, refuse(f"{module.__name__}.{name}"))

def hook(event, args):
    if event.partition(".")[0] in BAD or event in ("open", "import", "exec", "compile"):
        heard.append((event, repr(args)[:80]))
BAD = {"os", "socket", "subprocess", "shutil", "tempfile", "glob", "sqlite3", "time", "ctypes", "fcntl", "mmap",
       "signal", "urllib", "http", "syslog", "_thread", "pathlib"}

def scenario():
    log = Log()
    log.append("turn_start", {"turn": 1, "dispatch": "durable"}, time=5)
    log.append("step_start", {"step": 1})
    asked = [{"type": "tool_call", "id": id, "name": "t", "arguments": '{"a":'} for id in ("a", "b", "\\ud83d")]
    log.append("assistant_message", {"parts": asked})
    log.append("tool_call", {"call": "2.0", "id": "a", "key": keys.idempotency_key(log.head.hash, 0)})
    said = [{"type": "text", "content": "\\ud83d\\u2028"}]
    log.append("tool_result", {"call": "2.0", "parts": said, "big": 10**3000})
    log.append("approval_request", {"call": "2.1"})
    log.append("damage", {"kind": "torn", "after": 5})
    assert recovery.interrupted(log) and recovery.open_turns(log)
    recovery.recover(log)
    log.append("user_message", {"parts": [], "replace": [2, len(log) - 1]})
    again = Log.read(log.lines())
    assert again.events == log.events and again.surface() and not recovery.plan(again)
    fork.check_boundary(again, len(again))
    fork.fork_data(id="f", nonce="0" * 32, parent="p", head=again.head)
    try:
        log.append("x.t", {"v": float("nan")})
    except Exception as error:
        str(error)
    else:
        raise SystemExit("NaN was taken")

scenario()  # once before the hook: what Python itself caches at first use is not the core's doing
sys.addaudithook(hook)
scenario()
found, heard[:] = list(heard), []
sys.stdout.write(repr(found))
"""


def test_a_whole_scenario_reaches_nothing_outside() -> None:
    done = subprocess.run([sys.executable, "-c", SCENARIO], capture_output=True, check=False, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "[]", "")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_the_core_imports_the_core_and_functions_of_values_only(module: str) -> None:
    tree = ast.parse((CORE / f"{module}.py").read_text("utf-8"))
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            named.add(str(node.module))

    assert {name for name in named if not name.startswith("turnwal.core")} <= ALLOWED


def test_importing_the_core_loads_nothing_of_the_layers_above_it() -> None:
    code = f"import sys; {'; '.join(f'import turnwal.core.{name}' for name in MODULES if name != '__init__')}"
    code += "; print(sorted(n for n in sys.modules if n.startswith('turnwal.') and not n.startswith('turnwal.core')))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"
    assert turnwal.core.__doc__
