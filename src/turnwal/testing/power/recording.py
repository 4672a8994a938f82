"""Recording what a workload does to a directory: the calls of its processes, as operations on nodes.

Promises: whatever changes a file or a name below the directory is in the recording, or `Unrecordable` is raised: memory
that is mapped and written, calls that copy inside the kernel, and files that come from elsewhere are not seen by
`strace`. Nothing is left out in silence but what `ignore` names.

Does not: record modes, owners, times and locks, which say nothing of content.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from turnwal.testing.power.operations import (
    ROOT,
    Change,
    Mark,
    Move,
    Name,
    Operation,
    Recording,
    Resize,
    SyncBegins,
    SyncEnds,
    SyncFails,
    Tree,
    Unname,
    Write,
)
from turnwal.testing.power.processes import OUTPUT, Opened, Processes
from turnwal.testing.power.tracing import Entered, Left, Unrecordable, path_of, split, text_of, traced

IGNORED: Final = ("*-shm",)
"""SQLite's index of its `-wal` is mapped memory that is never synced and is made anew from the `-wal` after a crash."""

_RINGS: Final = frozenset({"io_uring_setup", "io_submit"})
_SYNCS: Final = frozenset({"fsync", "fdatasync", "sync", "syncfs"})


def record(
    command: Sequence[str],
    directory: str | os.PathLike[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    ignore: Sequence[str] = IGNORED,
    inject: Sequence[str] = (),
    check: bool = True,
    timeout: float | None = None,
) -> Recording:
    """Run a command under `strace` and return what it does to a directory that is there already.

    The lines that it writes to its standard output are its marks: `print("ACK 5", flush=True)` behind what makes 5
    durable. `ignore` are patterns of file names; `inject` are faults in the words of `strace`. Raises `Unrecordable`
    where it cannot be recorded, and with `check` where it does not exit with 0.
    """
    root = Path(os.path.realpath(directory))
    place = Path.cwd() if cwd is None else Path(cwd)
    recorder = Recorder(root, ignore=ignore, cwd=os.path.realpath(place))
    code, error, calls = traced(command, cwd=place, env=env, inject=inject, timeout=timeout)
    if check and code:
        raise Unrecordable(f"the workload exited with {code}: {error.strip()[-2000:]}")
    for call in calls:
        recorder.see(call)
    return recorder.recording(tuple(command), code)


class Recorder:
    """Turns calls into operations."""

    def __init__(self, root: Path, *, ignore: Sequence[str] = IGNORED, cwd: str = "/") -> None:
        """Begin with what a directory holds now."""
        self._root = str(root)
        self._ignore = ignore
        self._before = Tree()
        self._next = ROOT + 1
        self._take_in(root, ROOT)
        self._now = self._before.copy()
        self._operations: list[Operation] = []
        self._processes = Processes(cwd)
        self._syncs: dict[int, int] = {}
        """The number of the sync that a thread is in."""
        self._said = b""

    def recording(self, command: tuple[str, ...], code: int) -> Recording:
        """What was recorded."""
        # a file that is made later has nothing in it until it is written to
        made = dict.fromkeys(self._now.contents.keys() - self._before.contents.keys(), b"")
        before = Tree(self._before.names, self._before.contents | made)
        return Recording(before, tuple(self._operations), code, command)

    def see(self, call: Entered | Left) -> None:
        """Take in the next call."""
        if isinstance(call, Entered):
            self._processes.entered(call)
            if call.name in _SYNCS:
                self._sync_begins(call)
            elif call.name == "write" and (words := split(call.arguments)) and self._opened(call, words[0]) is OUTPUT:
                # as it begins: from then on somebody may have read it
                self._say(text_of(words[1]))
            return
        if call.name in _SYNCS:
            self._sync_ends(call)
            return
        if call.result is not None and call.result < 0:
            return
        words = split(call.arguments)
        if call.name in _RINGS:
            raise Unrecordable(f"{call.name}: what is written through it is not seen; have the workload do without")
        handler = getattr(self, f"_{call.name.rstrip('46')}", None)
        if handler is not None:
            handler(call, words)
        else:
            self._processes.left(call, words)

    # Content

    def _write(self, call: Left, words: list[str]) -> None:
        opened = self._opened(call, words[0])
        if opened is not None and opened is not OUTPUT:
            self._append(opened, text_of(words[1])[: call.result])

    def _writev(self, call: Left, words: list[str]) -> None:
        opened = self._opened(call, words[0])
        if opened is OUTPUT:
            self._say(_vector(words[1]))
        elif opened is not None:
            self._append(opened, _vector(words[1])[: call.result])

    def _pwrite(self, call: Left, words: list[str]) -> None:
        self._write_at(call, words, text_of(words[1]))

    def _pwritev(self, call: Left, words: list[str]) -> None:
        self._write_at(call, words, _vector(words[1]))

    def _pwritev2(self, call: Left, words: list[str]) -> None:
        self._write_at(call, words, _vector(words[1]))

    def _write_at(self, call: Left, words: list[str], data: bytes) -> None:
        opened = self._opened(call, words[0])
        if opened is not None:
            # Linux appends there, whatever offset is given
            offset = self._size(opened.node) if opened.append else int(words[3])
            self._do(Write(opened.node, offset, data[: call.result]))

    def _append(self, opened: Opened, data: bytes) -> None:
        offset = self._size(opened.node) if opened.append else opened.offset
        self._do(Write(opened.node, offset, data))
        opened.offset = offset + len(data)

    def _ftruncate(self, call: Left, words: list[str]) -> None:
        opened = self._opened(call, words[0])
        if opened is not None:
            self._do(Resize(opened.node, int(words[1])))

    def _truncate(self, call: Left, words: list[str]) -> None:
        node = self._node(self._path(call, words[0]))
        if node is not None:
            self._do(Resize(node, int(words[1])))

    def _fallocate(self, call: Left, words: list[str]) -> None:
        opened = self._opened(call, words[0])
        if opened is None or words[1] == "FALLOC_FL_KEEP_SIZE":
            return
        if words[1] != "0":
            raise Unrecordable(f"fallocate with {words[1]} is not known here; have the workload do without")
        self._do(Resize(opened.node, int(words[2]) + int(words[3]), grow=True))

    def _sendfile(self, call: Left, words: list[str]) -> None:
        self._copied(call, words[0], words[1], words[2])

    def _copy_file_range(self, call: Left, words: list[str]) -> None:
        self._copied(call, words[2], words[0], words[1] if words[3] == "NULL" else "NULL")

    def _splice(self, call: Left, words: list[str]) -> None:
        self._copied(call, words[2], words[0], "NULL")

    def _copied(self, call: Left, target: str, source: str, offset: str) -> None:
        """Take in what the kernel copied by itself: it is read from where it came from, if that can be known."""
        opened = self._opened(call, target)
        if opened is None or opened is OUTPUT or not call.result:
            return
        path, begin = path_of(source), offset.removeprefix("[").partition("]")[0]
        if path is None or not begin.isdecimal():
            raise Unrecordable(f"{call.name} copies inside the kernel; have the workload read and write instead")
        inner = self._opened(call, source)
        whole = Path(path).read_bytes() if inner is None else self._now.contents[inner.node]
        data = whole[int(begin) : int(begin) + call.result]
        if len(data) != call.result:
            raise Unrecordable(f"{path} was copied and has changed since")
        self._append(opened, data)

    def _mmap(self, call: Left, words: list[str]) -> None:
        opened = self._opened(call, words[4])
        if opened is not None and "PROT_WRITE" in words[2] and "MAP_SHARED" in words[3]:
            path = path_of(words[4])
            raise Unrecordable(f"{path} is written through mapped memory, which strace does not see; see `ignore`")

    # Names

    def _open(self, call: Left, words: list[str]) -> None:
        self._open_as(call, words[1])

    def _openat(self, call: Left, words: list[str]) -> None:
        self._open_as(call, words[2])

    def _openat2(self, call: Left, words: list[str]) -> None:
        self._open_as(call, words[2])

    def _creat(self, call: Left, _: list[str]) -> None:
        self._open_as(call, "O_WRONLY|O_CREAT|O_TRUNC")

    def _open_as(self, call: Left, flags: str) -> None:
        path = path_of(call.rest)
        opened: Opened | None = None
        if path is not None and self._is_below(path) and "O_PATH" not in flags and not self._is_ignored(path):
            if any(flag in flags for flag in ("O_TMPFILE", "O_SYNC", "O_DSYNC")):
                raise Unrecordable(f"{path} is opened with {flags}, which is not known here")
            opened = Opened(self._named(path, flags), append="O_APPEND" in flags)
        self._processes.opens(call, opened, exec_closes="O_CLOEXEC" in flags)

    def _named(self, path: str, flags: str) -> int:
        node = self._node(path)
        if node is None:
            if "O_CREAT" not in flags:
                raise Unrecordable(f"{path} came from somewhere that was not recorded")
            node = self._make(path, is_file=True)
        elif "O_TRUNC" in flags and self._size(node):
            self._do(Resize(node, 0))
        return node

    def _mkdir(self, call: Left, words: list[str]) -> None:
        self._make(self._path(call, words[0]))

    def _mkdirat(self, call: Left, words: list[str]) -> None:
        self._make(self._path(call, words[1], words[0]))

    def _mknod(self, call: Left, words: list[str]) -> None:
        self._make(self._path(call, words[0]), is_file=True)

    def _mknodat(self, call: Left, words: list[str]) -> None:
        self._make(self._path(call, words[1], words[0]), is_file=True)

    def _link(self, call: Left, words: list[str]) -> None:
        self._link_as(self._path(call, words[0]), self._path(call, words[1]))

    def _linkat(self, call: Left, words: list[str]) -> None:
        self._link_as(self._path(call, words[1], words[0]), self._path(call, words[3], words[2]))

    def _symlink(self, call: Left, words: list[str]) -> None:
        self._refuse_symlink(self._path(call, words[1]))

    def _symlinkat(self, call: Left, words: list[str]) -> None:
        self._refuse_symlink(self._path(call, words[2], words[1]))

    def _rename(self, call: Left, words: list[str]) -> None:
        self._move(self._path(call, words[0]), self._path(call, words[1]))

    def _renameat(self, call: Left, words: list[str]) -> None:
        self._move(self._path(call, words[1], words[0]), self._path(call, words[3], words[2]))

    def _renameat2(self, call: Left, words: list[str]) -> None:
        if "RENAME_EXCHANGE" in words[4] or "RENAME_WHITEOUT" in words[4]:
            raise Unrecordable(f"renameat2 with {words[4]} is not known here")
        self._renameat(call, words)

    def _unlink(self, call: Left, words: list[str]) -> None:
        self._unname(self._path(call, words[0]))

    def _rmdir(self, call: Left, words: list[str]) -> None:
        self._unname(self._path(call, words[0]))

    def _unlinkat(self, call: Left, words: list[str]) -> None:
        self._unname(self._path(call, words[1], words[0]))

    def _make(self, path: str, *, is_file: bool = False) -> int:
        node = self._next
        if self._is_below(path) and not self._is_ignored(path):
            self._next += 1
            directory, name = self._place(path)
            if is_file:
                self._now.contents[node] = b""
            self._do(Name(directory, name, node))
        return node

    def _link_as(self, path: str, second: str) -> None:
        node = self._node(path)
        if self._is_below(second) and not self._is_ignored(second):
            if node is None:
                raise Unrecordable(f"{second} is a second name of a file that was not recorded ({path})")
            self._do(Name(*self._place(second), node))

    def _refuse_symlink(self, path: str) -> None:
        if self._is_below(path):
            raise Unrecordable(f"{path} is a symbolic link, which is not known here")

    def _move(self, path: str, new: str) -> None:
        node = self._node(path)
        if self._is_below(new) and not self._is_ignored(new):
            if node is None:
                raise Unrecordable(f"{new} was moved here from where it was not recorded ({path})")
            self._do(Move(*self._place(path), *self._place(new), node))
        elif node is not None:
            self._do(Unname(*self._place(path)))

    def _unname(self, path: str) -> None:
        if self._node(path) is not None:
            self._do(Unname(*self._place(path)))

    # Syncs and marks

    def _sync_begins(self, call: Entered) -> None:
        node = None
        if call.name in ("fsync", "fdatasync"):
            opened = self._opened(call, split(call.arguments)[0])
            if opened is None or opened is OUTPUT:
                return
            node = opened.node
        self._syncs[call.thread] = number = len(self._operations)
        self._operations.append(SyncBegins(number, node))

    def _sync_ends(self, call: Left) -> None:
        number = self._syncs.pop(call.thread, None)
        if number is None or call.result is None:
            return
        if call.result < 0:
            self._operations.append(SyncFails(number))
        elif "INJECTED" not in call.rest:  # a sync that was only said to be made
            self._operations.append(SyncEnds(number))

    def _say(self, data: bytes) -> None:
        *lines, self._said = (self._said + data).split(b"\n")
        self._operations.extend(Mark(line.decode("utf-8", "replace")) for line in lines)

    # Paths

    def _do(self, change: Change) -> None:
        self._now.apply(change)
        self._operations.append(change)

    def _size(self, node: int) -> int:
        return len(self._now.contents.get(node, b""))

    def _opened(self, call: Entered | Left, word: str) -> Opened | None:
        """What a descriptor leads to, None for what is not recorded."""
        opened = self._processes.opened(call.thread, word)
        path = path_of(word)
        foreign = opened is not OUTPUT and path is not None and not self._is_below(path) and path != self._root
        return None if foreign else opened

    def _path(self, call: Left, word: str, at: str = "") -> str:
        base = (path_of(at) if at else None) or self._processes.cwd(call.thread)
        whole = Path(os.path.normpath(Path(base, os.fsdecode(text_of(word)))))
        # the last name is what is changed, whatever it leads to
        return str(Path(os.path.realpath(whole.parent), whole.name))

    def _is_below(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root + "/")

    def _is_ignored(self, path: str) -> bool:
        return any(fnmatch(path.rpartition("/")[2], pattern) for pattern in self._ignore)

    def _place(self, path: str) -> tuple[int, str]:
        directory, name = os.path.split(path)
        node = self._node(directory)
        if node is None:
            raise Unrecordable(f"{directory} came from somewhere that was not recorded")
        return node, name

    def _node(self, path: str) -> int | None:
        if not self._is_below(path):
            return None
        node: int | None = ROOT
        for name in path[len(self._root) :].split("/"):
            if name and node is not None:
                node = self._now.names.get((node, name))
        return node

    def _take_in(self, directory: Path, node: int) -> None:
        for path in sorted(directory.iterdir()):
            if self._is_ignored(str(path)):
                continue
            if path.is_symlink():
                self._refuse_symlink(str(path))
            inner, self._next = self._next, self._next + 1
            self._before.names[node, path.name] = inner
            if path.is_dir():
                self._take_in(path, inner)
            else:
                self._before.contents[inner] = path.read_bytes()


def _vector(word: str) -> bytes:
    """The bytes of a printed vector of buffers."""
    parts = word.split("iov_base=")[1:]
    return b"".join(text_of(part[: part.index(", iov_len")]) for part in parts)
