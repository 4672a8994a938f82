"""Running a command under `strace`, and its lines as calls.

Promises: a call is told as it is entered and as it is left, each at its place among those of all threads and processes;
every byte that was written stands in it.

Does not: know what a call means; `recording` does.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final


class Unrecordable(RuntimeError):
    """A workload that cannot be recorded, and why."""


_CALLS: Final = (
    "openat,open,creat,openat2,mknod,mknodat,mkdir,mkdirat,link,linkat,symlink,symlinkat,rename,renameat,renameat2,"
    "unlink,unlinkat,rmdir,read,readv,write,writev,pwrite64,pwritev,pwritev2,lseek,ftruncate,truncate,fallocate,fsync,"
    "fdatasync,sync,syncfs,mmap,dup,dup2,dup3,fcntl,close,close_range,clone,clone3,fork,vfork,execve,sendfile,"
    "copy_file_range,splice,io_uring_setup,io_submit,chdir,fchdir"
)
_LINE: Final = re.compile(r"(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)", re.DOTALL)
_UNFINISHED: Final = " <unfinished ...>"
_RESULT: Final = re.compile(r"(.*)\) += (-?\d+|\?|0x[0-9a-f]+)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entered:
    """A call begins; its arguments as far as they are known by then."""

    thread: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Left:
    """A call has returned, or never will (`result` None)."""

    thread: int
    name: str
    arguments: str
    result: int | None
    rest: str
    """What stands behind the result: the path of a descriptor, the name of an error."""


def traced(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    inject: Sequence[str] = (),
    timeout: float | None = None,
) -> tuple[int, str, list[Entered | Left]]:
    """Run a command; returns its exit code, what it wrote to its standard error, and its calls.

    Each of `inject` is an expression of `strace`, such as `fdatasync:error=EIO:when=3`. Raises `Unrecordable` where
    there is no `strace`, where it may not trace, and where the command runs under eatmydata, which makes syncs nothing.
    """
    given = dict(os.environ if env is None else env)
    if "eatmydata" in given.get("LD_PRELOAD", ""):
        raise Unrecordable("LD_PRELOAD names eatmydata, under which a sync does nothing; take it away")
    strace = shutil.which("strace")
    if strace is None:
        raise Unrecordable("there is no strace; install it (Debian, Ubuntu: apt-get install strace)")
    with tempfile.TemporaryDirectory(prefix="turnwal-trace-") as directory:
        trace, said = Path(directory, "trace"), Path(directory, "stdout")
        options = ["-f", "--seccomp-bpf", "-y", "-xx", "-s", str(1 << 28), "-e", "signal=none", "-o", str(trace)]
        # what is read is of no interest, only how much
        options += ["-e", "raw=read,readv", "-e", "trace=" + ",".join("?" + name for name in _CALLS.split(","))]
        options += [option for expression in inject for option in ("-e", f"inject={expression}")]
        with said.open("wb") as out:
            # a file, since a write to a pipe may be cut short
            done = subprocess.run(  # noqa: S603 - the command is the caller's
                [strace, *options, "--", *command],
                cwd=cwd,
                env=given,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=timeout,
                check=False,
            )
        error = done.stderr.decode("utf-8", "replace")
        if not trace.exists() or not trace.stat().st_size:
            raise Unrecordable(f"strace could not run it: {error.strip() or done.returncode}")
        with trace.open(encoding="ascii", errors="replace", newline="\n") as lines:
            return done.returncode, error, list(calls(lines))


def calls(lines: Iterator[str]) -> Iterator[Entered | Left]:
    """The calls that the lines of a trace tell of."""
    begun: dict[int, str] = {}
    for line in lines:
        found = _LINE.match(line.rstrip("\n"))
        if found is None:
            continue  # an exit, or a signal
        thread, resumed, name, text = int(found[1]), found[2], found[3], found[4]
        if text.endswith(_UNFINISHED):
            begun[thread] = text.removesuffix(_UNFINISHED)
            yield Entered(thread, name, begun[thread])
            continue
        if resumed is not None:
            text = begun.pop(thread, "") + text
        end = _RESULT.fullmatch(text)
        if end is None:
            raise Unrecordable(f"strace wrote a line that cannot be read: {line[:200]!r}")
        if resumed is None:
            yield Entered(thread, name, end[1])
        if end[2] == "?" and "ERESTART" in end[3]:
            continue  # it is made again
        yield Left(thread, resumed or name, end[1], None if end[2] == "?" else int(end[2], 0), end[3])


_SPLIT: Final = re.compile(r"[(){}\[\]]|, ")


def split(arguments: str) -> list[str]:
    """The arguments of a call, each as it was printed."""
    parts: list[str] = []
    depth = begin = 0
    for found in _SPLIT.finditer(arguments):
        if found[0] == ", ":
            if not depth:
                parts.append(arguments[begin : found.start()])
                begin = found.end()
        else:
            depth += 1 if found[0] in "({[" else -1
    return [*parts, arguments[begin:]]


def text_of(argument: str) -> bytes:
    """The bytes of a printed string. Raises `Unrecordable` where they were cut."""
    if not argument.startswith('"') or not argument.endswith('"'):
        raise Unrecordable(f"a string that was cut, or none at all: {argument[:80]!r}")
    return bytes.fromhex(argument[1:-1].replace("\\x", ""))


def path_of(argument: str) -> str | None:
    """The path that a printed descriptor leads to, None where none is told."""
    begin = argument.find("<")
    if begin < 0 or ">" not in argument:
        return None
    inside = argument[begin + 1 : argument.rindex(">")]
    try:
        return os.fsdecode(bytes.fromhex(inside.replace("\\x", "")))
    except ValueError:
        return None  # a pipe, a socket, or a file that has no name any more
