"""A child of an owner: refused on every store, and however it ends, its parent goes on owning.

Each parent has an interpreter of its own, so that a child can end as a program does: with its `atexit`, its garbage
and its destructors.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.store.server import fresh_schema
from turnwal.core.errors import SessionHeld
from turnwal.store.urls import open_store

PARENT = """
import gc, os, sys, warnings
from tests.store.building import batch_behind, head_of, lines_of, log_of
from turnwal.core.chain import EMPTY
from turnwal.core.errors import OwnershipLost, SessionHeld
from turnwal.core.errors import SessionHeld
from turnwal.store.urls import open_store

warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the child lacks; it needs none
store = open_store(sys.argv[1])
claim = store.claim("s", owner="the parent")
lines = lines_of(log_of(3))
claim.append(lines, EMPTY)
head = head_of(lines)

def refused(act, *kinds):
    try:
        act()
    except kinds:
        return
    raise AssertionError("a forked child was not refused")

for ending in sys.argv[2:]:
    if os.fork() == 0:
        if ending == "lets go of everything":
            claim.release()
            store.close()
            del claim, store
            gc.collect()
        elif ending != "does nothing":
            batch = batch_behind(head, 1)
            refused(lambda: claim.append(batch, head), OwnershipLost)
            refused(lambda: store.claim("s"), OwnershipLost, SessionHeld)
            refused(lambda: open_store(sys.argv[1]).claim("s"), SessionHeld)
        if ending == "is killed":
            os.kill(os.getpid(), 9)
        if ending == "raises":
            sys.stderr = open(os.devnull, "w")
            raise RuntimeError("the child's own")
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.wait()[1])
    assert code == {"is killed": -9, "raises": 1}.get(ending, 0), (ending, code)
    print(ending, flush=True)
    sys.stdin.readline()
    batch = batch_behind(head, 2)
    claim.append(batch, head)
    head = head_of(batch)
store.close()
print(head.count)
"""

ENDINGS = ["does nothing", "is refused", "lets go of everything", "raises", "is killed"]


@pytest.fixture(params=["file", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        paths = {"file": f"file:{tmp_path / 'sessions'}", "sqlite": f"sqlite:{tmp_path / 'agents.db'}"}
        yield paths.get(request.param) or stack.enter_context(fresh_schema())


def test_a_child_is_refused_and_takes_nothing_with_it(url: str) -> None:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PARENT, url, *ENDINGS]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        with closing(open_store(url)) as store:
            for ending in ENDINGS:
                assert parent.stdout.readline() == f"{ending}\n", parent.communicate()
                assert (store.probe("s").owner or "").startswith("the parent")
                with pytest.raises(SessionHeld):
                    store.claim("s")
                parent.stdin.write("\n")
                parent.stdin.flush()
            assert parent.communicate(timeout=30) == ("14\n", "")
            assert len(list(store.read("s"))) == 14
            store.claim("s").release()
