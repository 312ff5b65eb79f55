"""ptrace and seccomp through libc: stop a process, and all it starts, at a few system calls.

A seccomp filter lets every other call pass at full speed, and opens that neither create nor cut a
file too, so that a traced JVM is hardly slower. Linux 5.3 or newer on x86_64 or aarch64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.restype = ctypes.c_long
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

TRACEME, CONT, SYSCALL, SETOPTIONS, GET_SYSCALL_INFO = 0, 7, 24, 0x4200, 0x420E
# sysgood, fork, vfork, clone, exec, seccomp, and the end of the tracee with its tracer
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000
EVENT_SECCOMP = 7
SYSCALL_STOP = signal.SIGTRAP | 0x80

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NUMBERS = {
    "x86_64": {
        "write": 1,
        "open": 2,
        "pwrite64": 18,
        "writev": 20,
        "sendfile": 40,
        "fsync": 74,
        "fdatasync": 75,
        "truncate": 76,
        "ftruncate": 77,
        "rename": 82,
        "mkdir": 83,
        "rmdir": 84,
        "creat": 85,
        "link": 86,
        "unlink": 87,
        "symlink": 88,
        "sync": 162,
        "openat": 257,
        "mkdirat": 258,
        "unlinkat": 263,
        "renameat": 264,
        "linkat": 265,
        "symlinkat": 266,
        "fallocate": 285,
        "pwritev": 296,
        "syncfs": 306,
        "renameat2": 316,
        "copy_file_range": 326,
        "pwritev2": 328,
        "openat2": 437,
    },
    "aarch64": {
        "mkdirat": 34,
        "unlinkat": 35,
        "symlinkat": 36,
        "linkat": 37,
        "renameat": 38,
        "truncate": 45,
        "ftruncate": 46,
        "fallocate": 47,
        "openat": 56,
        "write": 64,
        "writev": 66,
        "pwrite64": 68,
        "pwritev": 70,
        "sendfile": 71,
        "sync": 81,
        "fsync": 82,
        "fdatasync": 83,
        "syncfs": 267,
        "renameat2": 276,
        "copy_file_range": 285,
        "pwritev2": 287,
        "openat2": 437,
    },
}
_OPEN_FLAGS_AT = {"open": 1, "openat": 2}

NAMES: dict[int, str] = {
    number: name for name, number in _NUMBERS.get(platform.machine(), {}).items()
}


def why_not() -> str | None:
    """Why calls cannot be recorded here; None when they can."""
    if platform.system() != "Linux" or not NAMES:
        return f"no call table for {platform.system()} on {platform.machine()}"
    pid = os.fork()
    if pid == 0:
        try:
            _become_tracee()
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    if os.WIFSTOPPED(status):
        try:
            request(SETOPTIONS, pid, 0, OPTIONS)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        except OSError as error:
            return f"ptrace is not permitted here: {error}"
    return "ptrace is not permitted here"


def request(what: int, pid: int, address: int | None = 0, data: object = 0) -> int:
    """One ptrace request; OSError when it is refused."""
    ctypes.set_errno(0)
    value = data if not isinstance(data, int) else ctypes.c_void_p(data)
    result = int(LIBC.ptrace(what, pid, ctypes.c_void_p(address), value))
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def spawn(command: Sequence[str]) -> int:
    """Start a command as a tracee that stops at the calls of `NAMES`; returns its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            _become_tracee()
            _install_filter()
            os.execvp(command[0], list(command))
        finally:
            os._exit(127)
    os.waitpid(pid, 0)
    request(SETOPTIONS, pid, 0, OPTIONS)
    request(CONT, pid)
    return pid


@dataclass(frozen=True, slots=True)
class Stop:
    """A call at its start: its name and arguments."""

    name: str
    arguments: tuple[int, ...]


def call_at(pid: int) -> Stop:
    """The call that a tracee is about to make."""
    raw = _info(pid)
    number, *arguments = struct.unpack_from("<7Q", raw, 24)
    return Stop(NAMES[number], tuple(arguments))


def result_at(pid: int) -> int:
    """What a call has returned; negative when it failed."""
    (value,) = struct.unpack_from("<q", _info(pid), 24)
    return int(value)


def _info(pid: int) -> bytes:
    buffer = ctypes.create_string_buffer(128)
    request(GET_SYSCALL_INFO, pid, 128, ctypes.cast(buffer, ctypes.c_void_p))
    return buffer.raw


def _become_tracee() -> None:
    if LIBC.ptrace(TRACEME, 0, None, None) != 0:
        os._exit(126)
    os.kill(os.getpid(), signal.SIGSTOP)


def _install_filter() -> None:
    program = _filter_program()
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: a short and, after padding, a pointer
    packed = struct.pack("<H6xQ", len(program) // 8, ctypes.addressof(buffer))
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    assert LIBC.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert LIBC.prctl(set_seccomp, mode_filter, packed, 0, 0) == 0


def _filter_program() -> bytes:
    """BPF: trace the calls of `NAMES`, opens only with O_CREAT or O_TRUNC; allow the rest."""
    load, equal, any_bit, leave = 0x20, 0x15, 0x45, 0x06
    allow, trace = 0x7FFF0000, 0x7FF00000
    # The offsets of struct seccomp_data: the number at 0, the architecture at 4, arguments from 16.
    lines = [
        (load, 0, 0, 4),
        (equal, 1, 0, _AUDIT_ARCH[platform.machine()]),
        (leave, 0, 0, allow),
        (load, 0, 0, 0),
    ]
    for number, name in NAMES.items():
        place = _OPEN_FLAGS_AT.get(name)
        if place is None:
            lines += [(equal, 0, 1, number), (leave, 0, 0, trace)]
        else:
            lines += [
                (equal, 0, 4, number),
                (load, 0, 0, 16 + 8 * place),
                (any_bit, 0, 1, os.O_CREAT | os.O_TRUNC),
                (leave, 0, 0, trace),
                (leave, 0, 0, allow),
            ]
    lines.append((leave, 0, 0, allow))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


if __name__ == "__main__":
    print(why_not() or "")
