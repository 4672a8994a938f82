"""`python -m bench.peers`: measure each peer in an environment of its own, and write the table and the plots.

Needs the environments that `make bench-peers` makes under `.peers/`. Each peer runs in a process of its own; the bare
disk is measured beside it at the same moments, so that ratios can be compared although the weather changes.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.peers import telling
from tests.store.server import fresh_schema, running_server

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENTS: Final = ROOT / ".peers"
PEERS: Final = {
    "turnwal_store": ("file", "sqlite", "postgres"),
    "langgraph": ("sqlite", "postgres"),
    "openai_agents": ("sqlite",),
    "dbos": ("sqlite", "postgres"),
    "strands": ("file",),
    "google_adk": ("sqlite",),
    "agent_framework": ("file",),
    "openhands": ("file",),
}
"""The modules beside this one, and the stores of each that are measured."""
_SYNC: Final = re.compile(r"\b(fsync|fdatasync|sync_file_range|msync)\(")
_SYNCED: Final = (10, 30)
"""Two numbers of appends; the difference between their syncs is what appends alone cost."""


def main(arguments: list[str] | None = None) -> int:
    """Measure the named peers, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--only", choices=PEERS, action="append", help="one peer; may be repeated")
    options = parser.parse_args(arguments)
    if shutil.which("strace") is None:
        print("strace is needed to count syncs: apt-get install strace", file=sys.stderr)
        return 2
    found = []
    with running_server() as server, tempfile.TemporaryDirectory(dir=ROOT / "bench", prefix=".peers-") as name:
        for module in options.only or PEERS:
            for store in PEERS[module]:
                folder = Path(name) / f"{module}-{store}"
                folder.mkdir()
                with fresh_schema(server) as url:
                    place = Place(module, store, folder, url if store == "postgres" else "")
                    found.append(place.everything())
                print(f"{found[-1]['name']}: measured", file=sys.stderr, flush=True)
                shutil.rmtree(folder)
    where = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    telling.write(found, f"{time.strftime('%Y-%m-%d')} on {where}", keep=not options.only)
    return 0


class Place:
    """One peer with one of its stores, in a folder."""

    def __init__(self, module: str, store: str, folder: Path, url: str) -> None:
        self._module = module
        self._store = store
        self._folder = folder
        self._url = url

    def everything(self) -> dict[str, Any]:
        """All figures of the peer."""
        figures: dict[str, Any] = self._json("measure", self._folder / "measure")
        for of_sizes in ("append_us", "bare_us", "load_ms"):
            figures[of_sizes] = {int(size): value for size, value in figures[of_sizes].items()}
        figures["bytes"] = None if self._url else self._json("bytes", self._folder / "bytes")
        figures["syncs"] = None if self._url else self._syncs()
        figures["crash"] = self._crash()
        return figures

    def _command(self, *words: object) -> list[str]:
        python = ENVIRONMENTS / self._module / "bin" / "python"
        # turnwal is measured as it stands here
        return [
            sys.executable if self._module == "turnwal_store" else str(python),
            "-m",
            "bench.peers.one",
            self._module,
            self._store,
            *map(str, words),
        ]

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            "TURNWAL_BENCH_URL": self._url,
            "PYTHONWARNINGS": "ignore",
        }

    def _run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=ROOT, env=self._environment(), capture_output=True, text=True, check=False, timeout=1800
        )

    def _json(self, *words: object) -> Any:
        done = self._run(self._command(*words))
        if done.returncode != 0:
            raise RuntimeError(f"{self._module} {self._store} {words[0]}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def _syncs(self) -> float:
        """Syncs of an append, as the kernel saw them."""
        counted = []
        for times in _SYNCED:
            trace = self._folder / f"trace-{times}"
            command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o", str(trace)]
            done = self._run([*command, *self._command("append", self._folder / f"syncs-{times}", times)])
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            counted.append(sum(bool(_SYNC.search(line)) for line in trace.read_text(errors="replace").splitlines()))
        return (counted[1] - counted[0]) / (_SYNCED[1] - _SYNCED[0])

    def _crash(self) -> Any:
        """What is left after a kill inside the second of three tools that run side by side."""
        folder = self._folder / "crash"
        folder.mkdir()
        played = self._run(self._command("play", folder))
        if played.returncode != -signal.SIGKILL or not (folder / "killed").exists():
            raise RuntimeError(f"{self._module} was not killed in a tool: {played.returncode} {played.stderr}")
        return self._json("resume", folder)


if __name__ == "__main__":
    sys.exit(main())
