"""Tracer: run a command and record what it and all its children do below one directory.

    python -m tests.power.tracer <recording> <directory> <command> ...

A call is looked at when it starts (its buffers and file descriptors are those it will use) and
kept when it has returned without an error.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.power import ptrace
from tests.power.calls import MARKS, Call, save

AT_REMOVEDIR = 0x200
_AT_FDCWD = -100
_WITH_DIRECTORY = frozenset(
    ["openat", "openat2", "mkdirat", "unlinkat", "renameat", "renameat2", "linkat", "symlinkat"]
)
_ANY_CHILD = 0x40000000  # __WALL: threads as well

Finish = Callable[[int], Iterator[Call]]
"""From what a call returned to its effects."""


class Tracer:
    """Follows one command to its end; `calls` is then the recording."""

    def __init__(self, top: str) -> None:
        self.top = os.path.realpath(top)
        self.calls: list[Call] = []
        self._pending: dict[int, Finish] = {}
        self._seen: set[int] = set()

    def run(self, command: list[str]) -> int:
        """Run to the end of the last child; returns the exit status of the command."""
        first = ptrace.spawn(command)
        self._seen.add(first)
        outcome = 1
        while True:
            try:
                pid, status = os.waitpid(-1, _ANY_CHILD)
            except ChildProcessError:
                return outcome
            if os.WIFSTOPPED(status):
                self._resume(pid, status)
            elif pid == first:
                outcome = os.waitstatus_to_exitcode(status)

    def _resume(self, pid: int, status: int) -> None:
        how, forwarded = ptrace.CONT, 0
        number, event = os.WSTOPSIG(status), status >> 16
        try:
            if event == ptrace.EVENT_SECCOMP:
                finish = self._start(pid, ptrace.call_at(pid))
                if finish is not None:
                    self._pending[pid] = finish
                    how = ptrace.SYSCALL
            elif number == ptrace.SYSCALL_STOP:
                self._finish(pid)
            elif event == 0 and pid in self._seen:
                forwarded = number
            # Anything else is the first stop of a new thread, or news of a fork or exec.
            self._seen.add(pid)
            ptrace.request(how, pid, 0, forwarded)
        except ProcessLookupError:
            self._pending.pop(pid, None)  # killed while it was stopped

    def _finish(self, pid: int) -> None:
        finish = self._pending.pop(pid, None)
        if finish is not None:
            result = ptrace.result_at(pid)
            if result >= 0:
                self.calls += finish(result)

    def _start(self, pid: int, stop: ptrace.Stop) -> Finish | None:
        """What to make of a call once it has returned; None when it is not about our files."""
        name, a = stop.name, stop.arguments
        match name:
            case "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2":
                return self._write(pid, name, a)
            case "sendfile" | "copy_file_range":
                return self._copy(pid, a[0] if name == "sendfile" else a[2])
            case "fsync" | "fdatasync":
                return self._sync(pid, a[0])
            case "sync" | "syncfs":
                return lambda _: iter([Call("sync", path="/")])
            case "ftruncate" | "fallocate":
                return self._truncate(pid, name, a)
            case _:
                return self._path_call(pid, name, a)

    # Calls on descriptors

    def _write(self, pid: int, name: str, a: tuple[int, ...]) -> Finish | None:
        found = self._file(pid, a[0])
        if found is None:
            return None
        data = _vector(pid, a[1], a[2]) if "v" in name else _memory(pid, a[1], a[2])
        offset: int | None = a[3] if name.startswith("p") else _position(pid, a[0])
        return lambda written: iter(
            [Call("write", inode=found, offset=offset, data=data[:written])]
        )

    def _copy(self, pid: int, descriptor: int) -> Finish | None:
        found = self._file(pid, descriptor)
        path = f"/proc/{pid}/fd/{descriptor}"
        if found is None:
            return None
        return lambda _: iter([Call("write", inode=found, data=Path(path).read_bytes())])

    def _sync(self, pid: int, descriptor: int) -> Finish | None:
        path = self._below(_link(f"/proc/{pid}/fd/{descriptor}"))
        if path is None:
            return None
        facts = os.stat(f"/proc/{pid}/fd/{descriptor}")
        if stat.S_ISDIR(facts.st_mode):
            return lambda _: iter([Call("sync", path=path)])
        return lambda _: iter([Call("sync", inode=facts.st_ino)])

    def _truncate(self, pid: int, name: str, a: tuple[int, ...]) -> Finish | None:
        found = self._file(pid, a[0])
        if found is None:
            return None
        path = f"/proc/{pid}/fd/{a[0]}"
        return lambda _: iter([Call("truncate", inode=found, offset=os.stat(path).st_size)])

    def _file(self, pid: int, descriptor: int) -> int | None:
        place = f"/proc/{pid}/fd/{descriptor}"
        return os.stat(place).st_ino if self._below(_link(place)) is not None else None

    # Calls on paths

    def _path_call(self, pid: int, name: str, a: tuple[int, ...]) -> Finish | None:
        is_relative = name in _WITH_DIRECTORY
        if name.startswith("symlink"):
            a = a[1:]  # the first argument is text
        first, rest = (
            (self._path(pid, a[0], a[1]), a[2:])
            if is_relative
            else (self._path(pid, _AT_FDCWD, a[0]), a[1:])
        )
        if name.startswith("mkdir") and first.startswith(MARKS):
            self.calls.append(Call("mark", path=first.removeprefix(MARKS)))
            return None
        path = self._below(first)
        match name.removesuffix("2").removesuffix("at") if is_relative else name:
            case "open" | "creat" if path is not None:
                flags = os.O_TRUNC if name == "creat" else rest[0]
                if name == "openat2":
                    (flags,) = struct.unpack("<Q", _memory(pid, rest[0], 8))
                return self._created(pid, path, cuts=bool(flags & os.O_TRUNC))
            case "mkdir" | "rmdir" as kind if path is not None:
                return lambda _: iter([Call(kind, path)])
            case "unlink" if path is not None:
                is_directory = name == "unlinkat" and bool(rest[0] & AT_REMOVEDIR)
                return lambda _: iter([Call("rmdir" if is_directory else "unlink", path)])
            case "rename" | "link" as kind:
                directory, address = rest[:2] if is_relative else (_AT_FDCWD, rest[0])
                target = self._below(self._path(pid, directory, address))
                assert (path is None) == (target is None), f"{first} crosses the directory"
                if path is None or target is None:
                    return None
                return lambda _: iter([Call(kind, path, target)])
            case "truncate" if path is not None:
                inode = os.stat(first).st_ino
                return lambda _: iter([Call("truncate", inode=inode, offset=rest[0])])
        assert path is None or not name.startswith("symlink"), f"{name} of {first}"
        return None

    def _created(self, pid: int, path: str, *, cuts: bool) -> Finish:
        def finish(descriptor: int) -> Iterator[Call]:
            facts = os.stat(f"/proc/{pid}/fd/{descriptor}")
            if stat.S_ISREG(facts.st_mode):
                yield Call("create", path, inode=facts.st_ino)
                if cuts:
                    yield Call("truncate", inode=facts.st_ino, offset=0)

        return finish

    def _path(self, pid: int, directory: int, address: int) -> str:
        path = os.fsdecode(_string(pid, address))
        signed = struct.unpack("<i", struct.pack("<I", directory & 0xFFFFFFFF))[0]
        start = f"/proc/{pid}/cwd" if signed == _AT_FDCWD else f"/proc/{pid}/fd/{signed}"
        full = path if path.startswith("/") else os.path.join(_link(start), path)
        return os.path.normpath(full)

    def _below(self, path: str) -> str | None:
        """The path relative to the directory; None when it is not in it."""
        if path == self.top:
            return "."
        return path[len(self.top) + 1 :] if path.startswith(f"{self.top}/") else None


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _position(pid: int, descriptor: int) -> int | None:
    """Where the next write of a descriptor goes; None when it appends."""
    lines = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().splitlines()
    facts = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return None if int(facts["flags"], 8) & os.O_APPEND else int(facts["pos"])


def _memory(pid: int, address: int, length: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(length) or b""


def _string(pid: int, address: int) -> bytes:
    found = b""
    while b"\0" not in found:
        # Never across a page that may not be there.
        found += _memory(pid, address + len(found), 4096 - (address + len(found)) % 4096)
    return found.partition(b"\0")[0]


def _vector(pid: int, address: int, count: int) -> bytes:
    pairs = struct.iter_unpack("<QQ", _memory(pid, address, 16 * count))
    return b"".join(_memory(pid, start, length) for start, length in pairs)


def main() -> int:
    recording, directory, *command = sys.argv[1:]
    tracer = Tracer(directory)
    outcome = tracer.run(command)
    save(Path(recording), tracer.calls)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
