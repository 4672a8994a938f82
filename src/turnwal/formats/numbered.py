"""Records that are files of their own in a folder, each a JSON object, in the order of the number in their names.

Promises: a file is read whole or named as what is wrong with it; none over `RECORD_MAX` is read, and no link followed.
"""

import re
from pathlib import Path
from typing import Any, Final

import msgspec

from turnwal.formats.items import Fault
from turnwal.formats.lenient import value_of
from turnwal.formats.lines import LINE_MAX

RECORD_MAX: Final = LINE_MAX
"""Bytes of a file."""


def numbered(folder: Path, name: re.Pattern[str]) -> list[tuple[int, Path]]:
    """The files whose names match, by the number that is the first group: by letters 10 would come before 2."""
    if not folder.is_dir():
        return []
    matches = ((name.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match is not None)


def record(path: Path) -> dict[str, Any] | Fault:
    """The object in a file, or why there is none. Raises `OSError`."""
    if path.is_symlink():
        return Fault("corrupt", path.name, "it is a link, which is not followed")
    size = path.stat().st_size
    if size > RECORD_MAX:
        return Fault("too_long", path.name, f"it has {size:,} bytes")
    content = path.read_bytes()
    try:
        value = value_of(content)
    except msgspec.MsgspecError:
        if content and not content.strip(b"\0"):
            return Fault("nul_run", path.name, f"{size:,} zero bytes")
        return Fault("torn", path.name, f"its {size:,} bytes are no whole JSON object")
    return value if isinstance(value, dict) else Fault("corrupt", path.name, "it is no JSON object")


def found_in(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None."""
    try:
        value = record(path)
    except OSError:
        return None
    return None if isinstance(value, Fault) else value
