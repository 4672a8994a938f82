"""`python -m tests.mutation`: change the code of the core in small ways, and see whether a test notices each.

`make mutation` runs it in an environment of its own; `[tool.mutmut]` in pyproject.toml says which modules, and which
tests. What survives has its row in docs/mutation.md. Exits 1 below 90 %, where a module was not tried, and where a
mutant survives in a function that has no row.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.crash.reporting import Report

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "mutation.md"
MUTANTS: Final = ROOT / "mutants" / "src" / "turnwal" / "core"
LEAST: Final = 0.9
"""The share of the mutants that tests have to notice."""
_SURVIVED: Final = (0, 33)
"""How mutmut has it: every test passed, or none runs the function."""
_NAME: Final = re.compile(r"turnwal\.core\.(\w+)\.x_?(?:ǁ(\w+)ǁ)?(\w+?)__mutmut_\d+")


def main(arguments: list[str] | None = None) -> int:
    """Run mutmut where it left off, and judge what it has found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="how many mutants at a time")
    parser.add_argument("--judge", action="store_true", help="judge what an earlier run found, and run nothing")
    options = parser.parse_args(arguments)
    print("no seed: mutants and tests are the same each time; to repeat: python -m tests.mutation")
    report = Report()
    if not options.judge:
        command = [str(Path(sys.executable).with_name("mutmut")), "run", "--max-children", str(options.jobs)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        report.held("mutmut came to its end; run again, it goes on where it was", holds=done.returncode == 0)
    judge(report, {path.name.partition(".")[0]: exits(path) for path in sorted(MUTANTS.glob("*.py.meta"))})
    print("everything held" if report.ok else "NOT EVERYTHING HELD")
    return 0 if report.ok else 1


def exits(meta: Path) -> Mapping[str, int | None]:
    """How the tests ended for each mutant of a module; None for one that was not tried."""
    found: Mapping[str, int | None] = json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
    return found


def judge(report: Report, found: Mapping[str, Mapping[str, int | None]]) -> None:
    """Say what of each module was noticed, and hold what has to be."""
    tried = {module: codes for module, codes in found.items() if codes}
    survivors: Counter[str] = Counter()
    for module, codes in tried.items():
        left = [name for name, code in codes.items() if code in _SURVIVED]
        survivors.update(map(function_of, left))
        report.line(module, f"{len(codes) - len(left):,} of {len(codes):,} noticed")
        report.held(f"all mutants of {module} were tried", holds=None not in codes.values())
    count = sum(map(len, tried.values()))
    noticed = count - survivors.total()
    report.line("noticed", f"{noticed:,} of {count:,}, {noticed / max(count, 1):.1%}")
    report.held(f"at least {LEAST:.0%}", holds=count > 0 and noticed >= LEAST * count)
    for function in sorted(unexplained(survivors, PAGE.read_text("utf-8"))):
        report.held(f"docs/mutation.md says why a mutant of {function} survives", holds=False)


def function_of(mutant: str) -> str:
    """The function that a mutant is one of, as the page has it: `scan.Scan.feed`."""
    match = _NAME.fullmatch(mutant)
    return mutant if match is None else ".".join(part for part in match.groups() if part)


def unexplained(functions: Iterable[str], page: str) -> set[str]:
    """Those that the page has no row for."""
    return set(functions) - set(re.findall(r"`([\w.]+)`", page))


if __name__ == "__main__":
    sys.exit(main())
