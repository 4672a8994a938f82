"""The processes of a workload, as far as its files need them: what each descriptor leads to, and where each process is.

Promises: a descriptor leads to what it was opened on, whatever became of the name since; threads share descriptors,
forked children have their own, and where a position is shared it is shared here.

Does not: know descriptors of anything but files below the recorded directory, and the standard output.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnwal.testing.power.tracing import Entered, Left, Unrecordable, path_of, text_of

_BIRTHS: Final = frozenset({"clone", "clone3", "fork", "vfork"})


@dataclass(slots=True, eq=False)
class Opened:
    """What the system calls an open file description."""

    node: int
    append: bool = False
    offset: int = 0


OUTPUT: Final = Opened(-1)
"""The standard output of the workload."""


@dataclass(slots=True)
class _Descriptor:
    opened: Opened
    exec_closes: bool = False


class _Process:
    def __init__(self, cwd: str, descriptors: dict[int, _Descriptor]) -> None:
        self.cwd = cwd
        self.descriptors = descriptors

    def child(self) -> "_Process":
        inherited = {number: _Descriptor(each.opened, each.exec_closes) for number, each in self.descriptors.items()}
        return _Process(self.cwd, inherited)


class Processes:
    """The threads that live, and the process of each."""

    def __init__(self, cwd: str) -> None:
        """Begin before the first call; whoever makes it is the workload."""
        self._first = _Process(cwd, {1: _Descriptor(OUTPUT)})
        self._of: dict[int, _Process] = {}
        self._bearing: dict[int, bool] = {}
        """The threads inside a call that makes another, and whether that shares their descriptors."""

    def entered(self, call: Entered) -> None:
        """Take in the beginning of a call."""
        if call.thread not in self._of:
            self._adopt(call.thread)
        if call.name in _BIRTHS:
            self._bearing[call.thread] = "CLONE_FILES" in call.arguments

    def left(self, call: Left, words: list[str]) -> None:
        """Take in the end of a call that changes descriptors, positions or processes, and succeeded."""
        result = call.result
        if call.name in _BIRTHS:
            self._born(call.thread, result)
        elif result is None:
            return
        elif call.name in ("read", "readv", "lseek"):
            self._moved(call, words, result)
        elif call.name in ("dup", "dup2", "dup3"):
            self._duplicated(call, words[0], result)
        elif call.name == "fcntl":
            self._controlled(call, words, result)
        elif call.name in ("close", "close_range"):
            self._closed(call, words)
        elif call.name == "execve":
            process = self._of[call.thread]
            kept = {number: each for number, each in process.descriptors.items() if not each.exec_closes}
            self._of[call.thread] = _Process(process.cwd, kept)
        elif call.name in ("chdir", "fchdir"):
            process = self._of[call.thread]
            named = path_of(words[0]) if call.name == "fchdir" else os.fsdecode(text_of(words[0]))
            process.cwd = os.path.realpath(Path(process.cwd, named or ""))

    def opens(self, call: Left, opened: Opened | None, *, exec_closes: bool) -> None:
        """Say what a new descriptor leads to, None for what is not recorded."""
        self._put(call, call.result, opened, exec_closes=exec_closes)

    def opened(self, thread: int, word: str) -> Opened | None:
        """What a printed descriptor leads to, None for what is not recorded."""
        number = _number(word)
        found = self._of[thread].descriptors.get(number) if number >= 0 else None
        return None if found is None else found.opened

    def cwd(self, thread: int) -> str:
        """Where a process is."""
        return self._of[thread].cwd

    def _adopt(self, thread: int) -> None:
        """Find the parent of a thread that was heard of before the call that made it returned."""
        if not self._of:
            self._of[thread] = self._first
            return
        if not self._bearing:
            raise Unrecordable(f"process {thread} came from nowhere")
        parent, shared = next(iter(self._bearing.items()))
        self._of[thread] = self._of[parent] if shared else self._of[parent].child()

    def _born(self, parent: int, child: int | None) -> None:
        shared = self._bearing.pop(parent, False)
        if child is not None and child not in self._of:
            self._of[child] = self._of[parent] if shared else self._of[parent].child()

    def _closed(self, call: Left, words: list[str]) -> None:
        descriptors = self._of[call.thread].descriptors
        if call.name == "close":
            descriptors.pop(_number(words[0]), None)
        elif "CLOEXEC" not in words[2]:
            first, last = int(words[0], 0), int(words[1], 0)
            for number in [each for each in descriptors if first <= each <= last]:
                del descriptors[number]

    def _moved(self, call: Left, words: list[str], result: int) -> None:
        opened = self.opened(call.thread, words[0])
        if opened is not None:
            opened.offset = result if call.name == "lseek" else opened.offset + result

    def _duplicated(self, call: Left, word: str, result: int, *, exec_closes: bool = False) -> None:
        self._put(call, result, self.opened(call.thread, word), exec_closes=exec_closes)

    def _controlled(self, call: Left, words: list[str], result: int) -> None:
        opened = self.opened(call.thread, words[0])
        match words[1]:
            case "F_DUPFD" | "F_DUPFD_CLOEXEC":
                self._duplicated(call, words[0], result, exec_closes="CLOEXEC" in words[1])
            case "F_SETFL" if opened is not None:
                opened.append = "O_APPEND" in words[2]
            case "F_SETFD" if opened is not None:
                self._of[call.thread].descriptors[_number(words[0])].exec_closes = "FD_CLOEXEC" in words[2]
            case _:
                pass

    def _put(self, call: Left, number: int | None, opened: Opened | None, *, exec_closes: bool) -> None:
        descriptors = self._of[call.thread].descriptors
        if number is None:
            return
        if opened is None:
            descriptors.pop(number, None)
        else:
            descriptors[number] = _Descriptor(opened, exec_closes)


def _number(word: str) -> int:
    """The number of a printed descriptor, -1 for what is none."""
    digits = word.partition("<")[0]
    try:
        return int(digits, 0)
    except ValueError:
        return -1
