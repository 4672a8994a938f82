"""The figures of all peers as a page: one table for costs, one for what a kill leaves."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.peers.work import MESSAGE_BYTES, SIZES, TIMES, TOOLS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "peers.md"
FIGURES: Final = ROOT / "bench" / "results" / "peers.json"
_HEAD: Final = """# Beside what people use today

The same work by each: messages of {bytes:,} bytes are appended one at a time to a session that already holds 10, 1,000
or 10,000 of them, and the session is loaded as it would be to go on. Appends are medians of {times}, as multiples of a
bare `write` and `fdatasync` of as many bytes on the same disk right before and behind ({low:.0f} to {high:.0f} µs).
**Syncs** are those of one append, counted by `strace`: with none, what was acknowledged is gone when the machine stops.
Servers sync for themselves, so none is counted and no bytes are told for PostgreSQL. Each runs with its defaults: those
on SQLite are fully durable by default, those that keep plain files have no such mode, and turnwal has no other, so a
second row for full durability would repeat the first.

Measured {where}. `make bench-peers` makes this page and the plots, each
peer in an environment of its own.

![Appending and loading by length of the session](peers.svg)

## Costs

| what | version | syncs | append at 10 | at 1,000 | at 10,000 | load 10 | 1,000 | 10,000 | bytes a message |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
_CRASH: Final = """
LangGraph keeps the whole list of messages in every checkpoint, so each append writes all of it again, and the bytes of
a message grow with the session; the figure is that of a session of 300. Strands and OpenHands keep a file for each
message, which takes a block of the disk. Agent Framework reads its file before each append. DBOS keeps steps, not
messages: its figures are those of a workflow with as many steps, each returning one message.

## After a kill

An agent asks for three tools at once: `look`, `charge` and `mail`. The process is killed inside `charge`, when the two
others have ended. A second process then goes on as the documentation of each says, with a model that only answers.

| what | `look` ran | `charge` ran | `mail` ran | what the model, or the caller, is told |
| --- | ---: | ---: | ---: | --- |
"""


def write(found: Sequence[dict[str, Any]], where: str, *, keep: bool) -> None:
    """Print the page, and keep it where everything was measured."""
    page = told(found, where)
    print(page)
    if keep:
        PAGE.write_text(page, "utf-8")
        FIGURES.write_text(json.dumps({"where": where, "peers": found}, indent=1) + "\n", "utf-8")


def told(found: Sequence[dict[str, Any]], where: str) -> str:
    """The page."""
    bare = [value for peer in found for value in peer["bare_us"].values()]
    head = _HEAD.format(bytes=MESSAGE_BYTES, times=TIMES, low=min(bare), high=max(bare), where=where)
    return head + "".join(map(_costs, found)) + _CRASH + "".join(map(_left, found))


def _costs(peer: dict[str, Any]) -> str:
    appends = [f"{peer['append_us'][size] / peer['bare_us'][size]:,.1f} ×" for size in SIZES]
    loads = [f"{peer['load_ms'][size]:,.1f} ms" for size in SIZES]
    syncs = "server" if peer["syncs"] is None else f"{peer['syncs']:.1f}"
    weight = "" if peer["bytes"] is None else f"{peer['bytes']:,.0f}"
    return _row(peer["name"], peer["version"], syncs, *appends, *loads, weight)


def _left(peer: dict[str, Any]) -> str:
    crash = peer["crash"]
    return _row(peer["name"], *(str(crash["effects"][name]) for name in TOOLS), crash["told"])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"
