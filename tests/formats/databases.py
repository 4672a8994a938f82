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


def held(path: Path) -> AbstractContextManager[None]:
    """A block in which another process holds the database for itself alone."""
    return open_elsewhere(path, "begin exclusive")
