"""Fuzzing that coverage guides: one process of libFuzzer a target, and what it has found.

What reached new code is kept below `.fuzz/corpus`, so that a later run goes on where this one ended.
"""

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.crash.reporting import Report

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = ROOT / ".fuzz" / "corpus"
_LENGTH_MAX: Final = 256
_DONE: Final = re.compile(r"Done (\d+) runs")
_SLACK_S: Final = 120
"""What a process may take beyond its time: instrumenting takes longer than most inputs."""
_MISSING: Final = (
    "atheris is not there: `make fuzz` installs it, from wheels for CPython 3.11 to 3.14 on Linux (x86-64). Without it "
    "leave --guided out: a seed then decides what is tried"
)


def campaign(report: Report, names: list[str], seconds: float, seed: int) -> None:
    """Fuzz these targets for so long in all."""
    if find_spec("atheris") is None:
        report.held(_MISSING, holds=False)
        return
    for name in names:
        _one(report, name, max(1, round(seconds / len(names))), seed)


def _one(report: Report, name: str, seconds: int, seed: int) -> None:
    corpus = CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="turnwal-fuzz-") as directory:
        command = [
            *(sys.executable, "-m", "tests.fuzz.guided", name, str(corpus)),
            f"-max_total_time={seconds}",
            f"-max_len={_LENGTH_MAX}",
            f"-seed={seed % 2**31 or 1}",
            f"-artifact_prefix={directory}/",
            "-timeout=0",  # the processor's time is watched, not the wall's
            "-rss_limit_mb=0",
            "-verbosity=1",
            "-print_final_stats=0",
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds + _SLACK_S,
            check=False,
        )
        crashes = [path.read_bytes() for path in Path(directory).iterdir()]
    runs = _DONE.search(done.stderr)
    report.line(name, f"{int(runs[1]) if runs else 0:,} inputs, {len(list(corpus.iterdir())):,} of them kept")
    if done.returncode == 0 and not crashes:
        report.held(f"{name}: some inputs", holds=runs is not None and int(runs[1]) > 1)
        return
    print((done.stdout + done.stderr)[-4_000:])
    for data in crashes:
        print(f"  to repeat: python -m tests.fuzz --only {name} --input {data.hex()}")
    report.violations([f"{name}: see above"])
