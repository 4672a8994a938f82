"""SQLite databases as tools leave them: made with the standard library, left as a killed process leaves them."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path


def database(path: Path, script: str, fill: Callable[[sqlite3.Connection], None]) -> Path:
    """A database made by a script and filled; a file of its own."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    with connection:
        fill(connection)
    connection.close()
    return path


def left_in_wal(path: Path, statements: str) -> None:
    """Run statements in WAL mode in a process that dies without closing, so that they are in the `-wal` alone."""
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA journal_mode = WAL'); c.execute('PRAGMA wal_autocheckpoint = 0')\n"
        "c.executescript(sys.argv[2])\n"
        "os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path), statements], check=False)
    assert done.returncode == 9
    assert os.path.getsize(f"{path}-wal") > 0  # noqa: PTH202 - the name of the database with a suffix


@contextmanager
def open_elsewhere(path: Path, statement: str) -> Iterator[None]:
    """A block in which another process has the database open and has run a statement."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute(sys.argv[2]); print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), statement], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield
        assert other.stdin is not None
        other.stdin.close()


@contextmanager
def changed_elsewhere(path: Path, *, killed: bool) -> Iterator[None]:
    """A block in which another process has written half of a change to a database with a rollback journal, or has died
    in the middle of it.
    """
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('pragma cache_size = 2'); c.execute('begin immediate'); c.execute('update t set a = 7')\n"
        "print('changed', flush=True); sys.stdin.read(); os._exit(9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"changed\n"
        assert os.path.getsize(f"{path}-journal") > 0  # noqa: PTH202 - the name of the database with a suffix
        if killed:
            other.kill()
            other.wait()
        yield
        other.kill()


@contextmanager
def changing_elsewhere(path: Path) -> Iterator[None]:
    """A block in which another process makes one change after the other in a database with a rollback journal."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "print('begun', flush=True)\n"
        "while True: c.execute('update t set a = a + 1 where rowid = 1')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"begun\n"
        yield
        other.kill()


def held(path: Path) -> AbstractContextManager[None]:
    """A block in which another process holds the database for itself alone."""
    return open_elsewhere(path, "begin exclusive")
