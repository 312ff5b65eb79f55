"""Prepared load: a load that is checked over one snapshot, ready to be staged for a commit."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.catalog import Catalog, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import TableEntry
from omnigraph.pipeline.columns import CheckPlan
from omnigraph.pipeline.engine import CONCURRENCY, CONCURRENCY_VARIABLE, setting
from omnigraph.pipeline.key_items import CommittedRows, read_addresses
from omnigraph.pipeline.model import LoadMode, StagedPart
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.scan import Pin, open_pinned, pin_handle
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.scratch import MovedFiles, Scratch
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.unattached import MarkedRows, UnattachedFragments, mark_deleted
from omnigraph.write.touched import TouchedTables

_NO_ADDRESSES = np.empty(0, np.uint64)


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """A load that is checked over one snapshot. Staging adopts its files, or writes its rows.

    `replaced` are addresses of rows that a merge replaces; of a large load, files of them.
    """

    tables: TableStorage
    check: CheckPlan
    mode: LoadMode
    read_versions: Mapping[str, int]
    replaced: Mapping[str, np.ndarray]
    replaced_in: tuple[CommittedRows, ...]
    runner: Runner
    scratch: Scratch | None
    reporter: Reporter

    @property
    def is_strict(self) -> bool:
        return self.mode is LoadMode.OVERWRITE

    def list_pins(self) -> dict[str, TableEntry]:
        keys = self.check.list_table_keys()
        missing = [key for key in keys if key not in self.check.entries]
        if missing:
            raise ConflictError(
                f"table '{missing[0]}' is not in the manifest any more — refresh and retry"
            )
        return {key: self.check.entries[key] for key in sorted(keys)}

    def stage(self, handles: Mapping[str, TableHandle]) -> dict[str, StagedTransaction]:
        """One transaction per table. Several tables are staged at a time; commits take turns."""
        self.reporter.stage("writing", len(handles))
        for key, handle in handles.items():
            self._announce(key, handle)
        hit(Failpoint.LOAD_BEFORE_COMMIT)
        if self.scratch is None:
            return {key: self._stage_rows(key, handle) for key, handle in handles.items()}
        marked = self._mark_replaced(handles)
        workers = min(setting(CONCURRENCY_VARIABLE, CONCURRENCY), max(1, len(handles)))
        with ThreadPoolExecutor(workers) as pool:
            staged = pool.map(self._stage, handles, handles.values(), map(marked.get, handles))
            return dict(zip(handles, staged, strict=True))

    def _announce(self, key: str, handle: TableHandle) -> None:
        if self.scratch is not None:
            names = tuple(
                name for each in self._collect_fragments(key).fragments for name in each.file_names
            )
            location = handle.location
            self.scratch.announce(MovedFiles(location.uri, location.branch, handle.version, names))

    def _mark_replaced(self, handles: Mapping[str, TableHandle]) -> dict[str, list[MarkedRows]]:
        """Mark the rows that a merge replaces: here, or by a task for the fragments of a file."""
        marked: dict[str, list[MarkedRows]] = {
            key: [mark_deleted(handles[key], addresses)]
            for key, addresses in self.replaced.items()
            if len(addresses)
        }
        pins = {key: pin_handle(self.tables, handle) for key, handle in handles.items()}
        items = [(pins[item.table_key], item) for item in self.replaced_in]
        results = self.runner.map(partial(_mark_item, self.check), items, self.reporter)
        for item, result in zip(self.replaced_in, results, strict=True):
            marked.setdefault(item.table_key, []).append(result)
        return marked

    def _stage(
        self, key: str, handle: TableHandle, marked: list[MarkedRows] | None
    ) -> StagedTransaction:
        unattached = self._collect_fragments(key)
        match self.mode:
            case LoadMode.OVERWRITE:
                return self.tables.unattached.stage_overwrite(handle, unattached)
            case LoadMode.MERGE if marked:
                return self.tables.unattached.stage_replace(handle, unattached, marked)
            case LoadMode.APPEND | LoadMode.MERGE:
                return self.tables.unattached.stage_append(handle, unattached)

    def _stage_rows(self, key: str, handle: TableHandle) -> StagedTransaction:
        rows, replaced = self._rows(key), self.replaced.get(key, _NO_ADDRESSES)
        match self.mode:
            case LoadMode.OVERWRITE:
                return self.tables.rows.stage_overwrite(handle, rows)
            case LoadMode.MERGE if len(replaced):
                return self.tables.rows.stage_replace(handle, rows.to_batches(), replaced)
            case LoadMode.APPEND | LoadMode.MERGE:
                return self.tables.rows.stage_append(handle, rows)

    def _parts(self, key: str) -> list[StagedPart]:
        return [part for part in self.check.parts if part.table_key == key]

    def _collect_fragments(self, key: str) -> UnattachedFragments:
        fragments = tuple(each for part in self._parts(key) for each in part.fragments)
        return UnattachedFragments(arrow_schema(self.check.catalog.entity(key)), fragments)

    def _rows(self, key: str) -> pa.Table:
        parts = [part.rows for part in self._parts(key) if part.rows is not None]
        return pa.concat_tables(parts)


def _mark_item(check: CheckPlan, target: tuple[Pin, CommittedRows]) -> MarkedRows:
    pin, item = target
    return mark_deleted(open_pinned(pin)[1], read_addresses(check, item))


def find_touched(written: frozenset[str], mode: LoadMode, catalog: Catalog) -> TouchedTables:
    """The loaded tables, and those that endpoint checks look at."""
    read: set[str] = set()
    for edge in catalog.edges.values():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key in written:
            read |= ends
        elif mode is LoadMode.OVERWRITE and ends & written:
            read.add(edge.table_key)
    return TouchedTables(written, frozenset(read - written))
