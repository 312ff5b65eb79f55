"""Console: run `omnigraph` commands of a shell without starting an interpreter for each.

`commands()` is a folder for the front of `PATH`. The `omnigraph` in it hands its arguments, folder,
environment and streams to a server that has imported everything and never used Lance; the server
forks a process for each command, so that commands share nothing but what they leave on the disk.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import marshal
import os
import pkgutil
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import TextIO

# Neither `site` nor anything of the standard library that takes long to import.
_COMMAND = """#!{python} -IS
import array, marshal, os, sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
server = socket(AF_UNIX, SOCK_STREAM)
server.connect({address!r})
server.sendmsg([b"."], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ))))
server.shutdown(1)
code = server.recv(1)
sys.exit(code[0] if code else 137)
"""


@cache
def commands() -> Path:
    """A folder with an `omnigraph` that a server of this process runs."""
    folder = Path(tempfile.mkdtemp(prefix="og"))
    address = str(folder / "socket")
    command = folder / "omnigraph"
    command.write_text(_COMMAND.format(python=sys.executable, address=address))
    command.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-c", "import tests.console as console; console.main()", address],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.stdout.close()

    def stop() -> None:
        assert server.stdin is not None
        server.stdin.close()
        server.wait()
        shutil.rmtree(folder)

    atexit.register(stop)
    return folder


def _serve(address: str) -> None:
    """Fork for each connection, and tell it how its command ended; until the input ends."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == 0:
                    return
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    child = _start(connection)
                    ended = os.pidfd_open(child)
                    selector.register(ended, selectors.EVENT_READ, (child, connection))
                else:
                    selector.unregister(key.fileobj)
                    os.close(key.fd)
                    _answer(*key.data)


def _start(connection: socket.socket) -> int:
    """Run one command in a child."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    arguments, folder, environment = marshal.loads(b"".join(parts))
    child = os.fork()
    if child == 0:
        connection.close()
        _run(arguments, folder, environment, streams)
    for stream in streams:
        os.close(stream)
    return child


def _answer(child: int, connection: socket.socket) -> None:
    """Send the exit code of a command that has ended."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with connection, contextlib.suppress(OSError):
        connection.sendall(bytes([code if code >= 0 else 128 - code]))


def _run(
    arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]
) -> None:
    """Be the command, as if an interpreter had just been started for it; never returns."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["omnigraph", *arguments]
    is_buffered = not environment.get("PYTHONUNBUFFERED")
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = _text(1, is_buffered)
    sys.stderr = _text(2, is_buffered=False)
    code = 1
    try:
        from omnigraph.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)


def _text(descriptor: int, is_buffered: bool) -> TextIO:
    raw = io.FileIO(descriptor, "w", closefd=False)
    if is_buffered:
        return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")
    return io.TextIOWrapper(raw, encoding="utf-8", write_through=True)


def _import_everything() -> None:
    from omnigraph import cli

    for module in pkgutil.iter_modules(cli.__path__, f"{cli.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("tests.warm")
    # Lance warns of every fork. It is right about processes that have used it; this one has not.
    warnings.filterwarnings("ignore", message="lance is not fork-safe")


def main() -> None:
    _import_everything()
    _serve(sys.argv[1])
