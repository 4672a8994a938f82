"""Measure the costs that the design allows, print the table and keep it in `bench/results/`.

`python -m bench [NAME …]` runs all or the named parts: starting, lines, appending, sqlite, postgres, opening, fleet,
reading, rendering, formats. What they wrote is removed at the end, and when they are interrupted.
"""

import json
import platform
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from bench.rows import Row, table

PARTS = ("starting", "lines", "appending", "sqlite", "postgres", "opening", "fleet", "reading", "rendering", "formats")
RESULTS = Path(__file__).parent / "results"


def main(names: list[str]) -> int:
    """Run the parts; 1 when a cost does not hold."""
    unknown = set(names) - set(PARTS)
    if unknown:
        print(f"no such part: {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=RESULTS.parent, prefix=".work-") as folder:
        for name in names or PARTS:
            for row in import_module(f"bench.{name}").measure(Path(folder)):
                rows.append(row)
                print(f"{row.what}: {row.ratio:.2f} × {row.beside}", file=sys.stderr, flush=True)
    where = f"{platform.system()} {platform.release()}, {platform.machine()}, Python {platform.python_version()}"
    head = f"Measured {time.strftime('%Y-%m-%d')} on {where}; `make bench` makes this table.\n\n"
    print(head + table(rows))
    if not names:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "costs.md").write_text(head + table(rows) + "\n", "utf-8")
        (RESULTS / "costs.json").write_text(json.dumps([row.to_json() for row in rows], indent=1) + "\n", "utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted; what was measured is thrown away", file=sys.stderr)
        sys.exit(130)
