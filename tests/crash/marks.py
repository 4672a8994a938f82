"""Marks that outlive a killed process: one write call each, at the end of a file. The page cache survives the kill."""

import os
from collections import Counter
from pathlib import Path


class Marks:
    """An append-only file of lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, line: str) -> None:
        os.write(self._descriptor, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


def lines(path: Path) -> list[str]:
    """The whole lines of a file of marks; none when it is absent."""
    return path.read_text("utf-8").split("\n")[:-1] if path.exists() else []


def counted(path: Path) -> Counter[str]:
    """How often each line stands there."""
    return Counter(lines(path))
