"""What the system does under us: the order in which things reach the disk, and calls that fail.

System calls are watched, and made to fail, with strace; where it is not installed those tests are
skipped and the order is still checked from inside the process.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph import errors
from omnigraph.errors import RecoveryRequired, StorageError
from omnigraph.storage import durability
from omnigraph.storage.control import ControlTable
from omnigraph.storage.tables import TableStorage
from omnigraph.write.sidecar import WriterKind
from tests.depth import IS_TORTURE, depth
from tests.recovery import fault_work as faults
from tests.recovery import work
from tests.recovery.staging import is_whole, kinds, new_graph, reopen
from tests.small_disk import PAGE, ROOMY, resize, used

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not installed")
ROOT = Path(__file__).parents[2]


def trace_write(options: list[str], path: str, writer: str, sync: str = "power") -> str:
    """One write of two tables in a process that strace watches; what it printed."""
    assert STRACE is not None
    code = (
        "from tests.recovery import fault_work\n"
        f"print(fault_work.write_durably({path!r}, {writer!r}, {sync!r}))\n"
    )
    done = subprocess.run(
        [STRACE, "-f", "-qq", "--seccomp-bpf", *options, sys.executable, "-c", code],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.stdout.strip()


# The order in which things reach the disk


def stage_of(path: str) -> str | None:
    """Which of the five stages of a write a path belongs to."""
    patterns = {
        "staged files": r"/(nodes|edges)/[^/]+/(data|_deletions)/",
        "sidecar": r"/__recovery(/|$)",
        "table manifest": r"/(nodes|edges)/[^/]+/_versions",
        "graph manifest": r"/__manifest/_versions",
    }
    return next((name for name, pattern in patterns.items() if re.search(pattern, path)), None)


ORDER = ["staged files", "sidecar", "table manifest", "graph manifest"]


def check_order(events: list[tuple[str, str]]) -> None:
    """Each stage is on the disk before the next one begins, and all before the acknowledgement.

    An event is (`sync`, path), (`appears`, path) or (`acknowledged`, "").
    """
    synced: dict[str, list[int]] = {name: [] for name in ORDER}
    appears: dict[str, list[int]] = {name: [] for name in ORDER}
    acknowledged = next(at for at, (what, _) in enumerate(events) if what == "acknowledged")
    for at, (what, path) in enumerate(events[:acknowledged]):
        stage = stage_of(path)
        if stage is not None:
            (synced if what == "sync" else appears)[stage].append(at)
    for stage in ORDER:
        assert synced[stage], f"the {stage} never reached the disk before the acknowledgement"
    # Two tables: the sync of each table's manifest follows its own commit, so compare the last.
    assert max(synced["staged files"]) < min(appears["sidecar"]), "files before the sidecar"
    assert max(appears["sidecar"]) < max(synced["sidecar"]), "the sidecar's name is synced"
    assert max(synced["sidecar"][:2]) < min(appears["table manifest"]), "sidecar before any HEAD"
    assert max(synced["table manifest"]) < max(appears["graph manifest"]), "HEADs before pins"
    assert max(appears["graph manifest"]) < max(synced["graph manifest"]), "pins before the answer"


_CALL = re.compile(r"(fsync|fdatasync|rename\w*|linkat|link|mkdir\w*)\((.*)\) += (\S+)")


def events_of(trace: str) -> Iterator[tuple[str, str]]:
    unfinished: dict[str, str] = {}
    for line in trace.splitlines():
        pid, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            unfinished[pid] = rest.removesuffix("<unfinished ...>").strip()
            continue
        resumed = re.match(r"\s*<\.\.\. \w+ resumed>(.*)", rest)
        found = _CALL.search(unfinished.pop(pid, "") + resumed[1] if resumed else rest)
        if found is None or found[3] != "0":
            continue
        call, arguments = found[1], found[2]
        if call in ("fsync", "fdatasync"):
            yield "sync", re.sub(r"^\d+<(.*)>$", r"\1", arguments)
        elif call.startswith("mkdir"):
            if ".acknowledged" in arguments:
                yield "acknowledged", ""
        else:
            yield "appears", re.findall(r'"([^"]*)"', arguments)[-1]


def trace_of(path: str, writer: str, sync: str, to: Path) -> list[tuple[str, str]]:
    calls = "trace=fsync,fdatasync,rename,renameat,renameat2,link,linkat,mkdir,mkdirat"
    said = trace_write(["-y", "-o", str(to), "-e", calls], path, writer, sync)
    assert said == "acknowledged"
    return list(events_of(to.read_text()))


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("writer", ["insert", "load merge", "delete"][: depth(1, 3)])
def test_a_write_reaches_the_disk_in_order_before_it_is_acknowledged(
    tmp_path: Path, writer: str
) -> None:
    graph = new_graph(tmp_path / "graph")

    check_order(trace_of(graph.uri, writer, "power", tmp_path / "trace"))


@needs_strace
@pytest.mark.slow
def test_without_durability_the_order_test_is_red(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "graph")
    events = trace_of(graph.uri, "insert", "process", tmp_path / "trace")

    with pytest.raises(AssertionError, match="never reached the disk"):
        check_order(events)


class Watch:
    """The same events, seen from inside the process."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, str]] = []
        fsync, replace = os.fsync, os.replace
        commit, merge = TableStorage.commit_staged, ControlTable.merge_rows

        def seen_fsync(descriptor: int) -> None:
            fsync(descriptor)
            self.events.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))

        def seen_replace(old: str, new: str) -> None:
            replace(old, new)
            self.events.append(("appears", new))

        def seen_commit(storage: TableStorage, staged: Any, **options: Any) -> Any:
            # The manifest appears inside the commit, and the commit syncs it before it returns.
            self.events.append(("appears", f"{staged.location.uri}/_versions/new"))
            return commit(storage, staged, **options)

        def seen_merge(table: ControlTable, *args: Any, **options: Any) -> Any:
            self.events.append(("appears", f"{table.uri}/_versions/new"))
            return merge(table, *args, **options)

        patch.setattr(os, "fsync", seen_fsync)
        patch.setattr(os, "replace", seen_replace)
        patch.setattr(TableStorage, "commit_staged", seen_commit)
        patch.setattr(ControlTable, "merge_rows", seen_merge)


@pytest.mark.parametrize("writer", ["insert", "update", "delete", "load append", "load overwrite"])
def test_every_writer_syncs_each_stage_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    graph = reopen(new_graph(tmp_path / "graph"), durability="power", self_care=False)
    watch = Watch(monkeypatch)

    work.WRITERS[writer](graph, 2)

    check_order([*watch.events, ("acknowledged", "")])


def test_a_writer_that_does_not_sync_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = reopen(new_graph(tmp_path / "graph"), durability="process", self_care=False)
    watch = Watch(monkeypatch)

    work.WRITERS["insert"](graph, 2)

    with pytest.raises(AssertionError, match="never reached the disk"):
        check_order([*watch.events, ("acknowledged", "")])


# Calls that fail

# `write` is not among them: it would also break the pipes that threads wake each other with. Writes
# that fail are below, on a disk that is full.
FAILURES = {
    "linkat": ("ENOSPC", "EIO", "EACCES"),
    "rename": ("EACCES", "ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "mkdir": ("EIO", "EACCES", "ENOSPC"),
}
WHICH = ("1", "2", "4", "8", "1+", "3+")
"""The k-th call of its kind in a thread fails; with `+`, and all that follow it."""

SAMPLE = [
    ("insert", "linkat", "EIO", "1"),  # strace counts by thread: no later one is sure to come
    ("delete", "rename", "EACCES", "1"),
    ("branch insert", "fsync", "EIO", "2"),
    ("apply schema", "linkat", "ENOSPC", "1+"),
]
SAMPLE_WRITERS = (
    "load merge",
    "branch insert",
    "branch delete",
    "merge",
    "apply schema",
    "optimize",
)


def fault_cells() -> list[tuple[str, str, str, str]]:
    """(writer, call, error, which one); the errors take turns along the writers."""
    if not IS_TORTURE:
        return SAMPLE
    return [
        (writer, call, kinds[(row + column) % len(kinds)], which)
        for row, writer in enumerate(faults.WRITERS)
        for call, kinds in FAILURES.items()
        for column, which in enumerate(WHICH)
    ]


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize(("writer", "call", "error", "which"), fault_cells())
def test_a_system_call_that_fails_is_a_typed_error_and_a_whole_graph(
    tmp_path: Path, writer: str, call: str, error: str, which: str
) -> None:
    """Afterwards the same command succeeds."""
    path = str(tmp_path / "graph")
    faults.build(path, writer)
    old, new = faults.shown(path), after(tmp_path, writer)
    trace = tmp_path / "trace"
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={which}"]

    said = trace_write(["-o", str(trace), *inject], path, writer)

    if "(INJECTED)" not in trace.read_text():
        assert IS_TORTURE, "a cell of the sample is one that is reached"
        pytest.skip(f"{writer} makes fewer than {which} calls of {call} in a thread")
    assert said == "acknowledged" or hasattr(errors, said.partition(":")[0]), said
    recovered = work.open_graph(path)
    shown = faults.shown(path)
    assert shown in may_show(writer, said.partition(":")[0], old, new)
    is_whole(recovered)
    if said != "acknowledged" and shown == old:
        faults.WRITERS[writer].run(recovered)
        assert faults.shown(path) == new
    is_whole(work.open_graph(path))


def may_show(writer: str, said: str, old: object, new: object) -> list[object]:
    """What a graph may show after a write that ended so, whenever one looks."""
    if said == "acknowledged":
        return [new]
    # Branches are made and removed by one call, cleanup shows nothing: no protocol speaks of them.
    is_sure = said != "RecoveryRequired" and faults.WRITERS[writer].kind is not None
    return [old] if is_sure else [old, new]


def test_every_kind_of_writer_has_fault_cells() -> None:
    kinds = {faults.WRITERS[writer].kind for writer in faults.WRITERS} - {None}

    assert kinds == set(WriterKind)


def after(tmp_path: Path, writer: str) -> object:
    """What the writer shows when nothing fails."""
    path = str(tmp_path / "whole")
    faults.build(path, writer)
    faults.WRITERS[writer].run(work.open_graph(path))
    return faults.shown(path)


@pytest.mark.slow
@pytest.mark.parametrize("writer", faults.WRITERS if IS_TORTURE else SAMPLE_WRITERS)
def test_at_whatever_page_the_disk_runs_out_a_writer_ends_old_or_new(
    disk: Path, tmp_path: Path, writer: str
) -> None:
    """Afterwards, with room, the same command succeeds."""
    resize(disk, ROOMY)
    path, new = str(disk / "graph"), after(tmp_path, writer)
    failures = 0
    for pages in range(0, 64, 2) if IS_TORTURE else (0, 14):
        faults.build(path, writer)
        graph, old = work.open_graph(path, durability="power"), faults.shown(path)
        resize(disk, used(disk) + pages * PAGE)
        try:
            faults.WRITERS[writer].run(graph)
            expected = [new]
        except (StorageError, RecoveryRequired) as error:
            failures, expected = failures + 1, may_show(writer, type(error).__name__, old, new)
        assert faults.shown(path) in expected
        resize(disk, ROOMY)
        recovered = work.open_graph(path)
        assert faults.shown(path) in expected
        is_whole(recovered)
        if faults.shown(path) == old:
            faults.WRITERS[writer].run(recovered)
        assert faults.shown(path) == new
        is_whole(work.open_graph(path))
    # What only removes must work on a full disk: it is how one gets room.
    assert bool(failures) == (writer not in ("branch delete", "cleanup"))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_publish_that_cannot_be_flushed_is_not_said_to_be_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """It is visible and may be lost: the caller is told to reopen, and both ends are whole."""
    graph = reopen(new_graph(tmp_path / "graph"), durability="power", self_care=False)
    real = durability.sync_path

    def fails(path: str) -> None:
        if "/__manifest/_versions" in path:
            raise OSError(code, os.strerror(code), path)
        real(path)

    monkeypatch.setattr(durability, "sync_path", fails)
    with pytest.raises(RecoveryRequired, match="may have taken effect"):
        work.WRITERS["insert"](graph, 2)
    monkeypatch.undo()

    recovered = reopen(graph)
    assert kinds(recovered) == ["RolledForward"]
    is_whole(recovered)
