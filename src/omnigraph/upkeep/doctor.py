"""Doctor: the state of a graph and of its machine, with advice. Reads only."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.display import Grid, Sheet, show_html, show_text
from omnigraph.json_form import JsonForm
from omnigraph.manifest import MAIN
from omnigraph.storage.control import ControlTable
from omnigraph.storage.location import GraphRoot
from omnigraph.upkeep.index_work import plan_indexes, to_index_specs
from omnigraph.version import INTERNAL_SCHEMA_VERSION, __version__
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.fork import open_pin
from omnigraph.write.schema_lock import LOCK_REF
from omnigraph.write.sidecar_files import list_sidecars

PACKAGES = ("pylance", "pyarrow", "numpy", "pyspark")
FRAGMENTS_WORTH_MERGING = 32
DISK_FREE_SHARE_MIN = 0.05
NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")


@dataclass(frozen=True, slots=True)
class TableHealth(JsonForm):
    """One table of main: its size and how far its indexes reach."""

    table_key: str
    rows: int
    fragments: int
    small_fragments: int
    deleted_rows: int
    head_is_pin: bool
    indexes_missing: tuple[str, ...]
    indexes_lagging: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DoctorReport(JsonForm):
    """The state of a graph. `advice` is what to do about it, the most urgent first."""

    uri: str
    versions: dict[str, str]
    java: str | None
    file_system: str | None
    disk_free_bytes: int | None
    disk_total_bytes: int | None
    branches: int
    commits: int
    manifest_fragments: int
    pending_recovery: tuple[str, ...]
    schema_change_pending: bool
    advice: tuple[str, ...]
    tables: tuple[TableHealth, ...]

    def make_sheet(self) -> Sheet:
        facts = {
            "versions": ", ".join(f"{name} {value}" for name, value in self.versions.items()),
            "branches": self.branches,
            "commits": self.commits,
            "pending recovery": len(self.pending_recovery) or None,
        }
        tables = [
            (each.table_key, each.rows, each.fragments, ", ".join(each.indexes_missing))
            for each in self.tables
        ]
        grids = [Grid(("table", "rows", "fragments", "indexes missing"), tables)]
        if self.advice:
            grids.insert(0, Grid(("advice",), [(each,) for each in self.advice]))
        return Sheet(f"doctor: {self.uri}", facts, grids)

    __repr__ = show_text
    _repr_html_ = show_html


def examine(environment: WriteEnvironment, catalog: Catalog, history: ControlTable) -> DoctorReport:
    """Look at everything that makes a graph slow or stuck."""
    root = environment.tables.root
    coordinator = environment.coordinator
    tables = tuple(_tables(environment, catalog))
    pending = tuple(list_sidecars(environment.texts))
    free, total = _disk(root)
    report = DoctorReport(
        uri=str(root),
        versions=_versions(),
        java=_java(),
        file_system=_file_system(root),
        disk_free_bytes=free,
        disk_total_bytes=total,
        branches=len(coordinator.branches()),
        commits=coordinator.fresh(MAIN).commit_rows.num_rows,
        manifest_fragments=coordinator.fragment_count(MAIN),
        pending_recovery=pending,
        schema_change_pending=environment.texts.exists(LOCK_REF),
        advice=(),
        tables=tables,
    )
    return replace(report, advice=tuple(_advice(report)))


def _tables(environment: WriteEnvironment, catalog: Catalog) -> Iterator[TableHealth]:
    storage = environment.tables
    for key, entry in environment.coordinator.fresh(MAIN).entries.items():
        entity = catalog.by_table_key(key)
        if entity is None:
            continue
        handle = open_pin(storage, entry)
        state = storage.table_state(handle)
        plan = plan_indexes(storage, handle, to_index_specs(entity))
        yield TableHealth(
            table_key=key,
            rows=handle.row_count,
            fragments=state.fragment_count,
            small_fragments=state.small_fragments,
            deleted_rows=state.deleted_rows,
            head_is_pin=storage.head_version(handle.location) == entry.version,
            indexes_missing=tuple(spec.column for spec in plan.missing),
            indexes_lagging=tuple(spec.column for spec in (*plan.anew, *plan.extended)),
        )


def _advice(report: DoctorReport) -> Iterator[str]:
    if report.pending_recovery:
        yield "an interrupted write is pending: the next write, or an open read-write, recovers it"
    if report.schema_change_pending:
        yield "a schema change is in progress or was interrupted: the next write or open ends it"
    drifted = [each.table_key for each in report.tables if not each.head_is_pin]
    if drifted and not report.pending_recovery:
        yield f"{', '.join(drifted)}: HEAD is ahead of the pin; run `omnigraph repair`"
    free, total = report.disk_free_bytes, report.disk_total_bytes
    if free is not None and total and free < DISK_FREE_SHARE_MIN * total:
        yield "the disk is nearly full: run `omnigraph cleanup` or free some space"
    if report.file_system in NETWORK_FILE_SYSTEMS:
        yield f"{report.file_system} is a network file system: write from one machine only"
    slow = [e.table_key for e in report.tables if e.small_fragments > FRAGMENTS_WORTH_MERGING]
    lagging = [e.table_key for e in report.tables if e.indexes_missing or e.indexes_lagging]
    if slow or report.manifest_fragments > 2 * FRAGMENTS_WORTH_MERGING:
        yield f"many small fragments in {', '.join(slow) or '__manifest'}: run `omnigraph optimize`"
    elif lagging:
        yield f"indexes of {', '.join(lagging)} are incomplete: run `omnigraph optimize`"
    if report.java is None:
        yield "no Java was found: large loads with Spark need Java 17 or newer"


def _versions() -> dict[str, str]:
    found = {
        "omnigraph": __version__,
        "format": str(INTERNAL_SCHEMA_VERSION),
        "python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _java() -> str | None:
    """Where Java is; whether it is new enough is for the load that needs it."""
    home = os.environ.get("JAVA_HOME")
    if home and os.path.exists(os.path.join(home, "bin", "java")):
        return os.path.join(home, "bin", "java")
    return shutil.which("java")


def _disk(root: GraphRoot) -> tuple[int | None, int | None]:
    if not root.is_local:
        return None, None
    usage = shutil.disk_usage(root.local_path)
    return usage.free, usage.total


def _file_system(root: GraphRoot) -> str | None:
    """The kind of file system the graph is on, where the system says so."""
    if not root.is_local or not sys.platform.startswith("linux"):
        return None
    best, kind = "", None
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, mount, found, *_ = line.split()
            inside = root.local_path == mount or root.local_path.startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best):
                best, kind = mount, found
    return kind
