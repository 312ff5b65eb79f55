"""Control tables: `__manifest` and the two history tables.

With `control_commits.py` the only module with inline commits of rows. `merge_rows` is the publish
primitive: a merge on the primary key at the version that was read, without retries. Lance then
refuses it when another writer has landed one of the same keys since, and lets disjoint ones
through. This holds only while the key has its primary-key mark, the merge does not use an index,
and it is executed in one call; losing any of the three fails silently.

A join over the whole table is the greater part of a merge. A caller that knows of all keys but one
that they are new has this one row replaced where it lies: of two writers that replace the same row
the second is refused as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import lance
import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.optimize import Compaction

from omnigraph.dataclass import dataclass
from omnigraph.errors import InvariantViolated, TableNotFound
from omnigraph.storage.appended_versions import Chains
from omnigraph.storage.blobs import PRIMARY_KEY
from omnigraph.storage.control_commits import ControlCommits, describe, publishing
from omnigraph.storage.counters import record
from omnigraph.storage.datasets import Opener, session
from omnigraph.storage.durability import Durability, sync_paths, sync_tree
from omnigraph.storage.filters import to_lance
from omnigraph.storage.forks import Forks
from omnigraph.storage.handles import BranchInfo, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import max_fragment_id
from omnigraph.storage.latest_versions import Latest, LatestVersions, may_be_newer
from omnigraph.storage.location import GraphRoot, TableLocation
from omnigraph.storage.operation_files import commit_files, list_compacted_files
from omnigraph.storage.power_cut import PowerCut
from omnigraph.storage.predicates import Compare, CompareOp, IsIn, Predicate
from omnigraph.storage.reads import UPDATED, Reads
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.text import open_text_store

STAMP = UPDATED


@dataclass(frozen=True, slots=True)
class ControlRows:
    """Rows of a control table and the version they were read at."""

    rows: pa.Table
    version: int


class ControlTable:
    """One control table on all of its branches. `branch=None` is the main lineage."""

    def __init__(
        self,
        root: GraphRoot,
        relative: str,
        *,
        key: str,
        storage_options: Mapping[str, str] | None = None,
        durability: Durability = "power",
    ) -> None:
        options = dict(storage_options or {})
        self.uri = root.child(relative)
        self.key = key
        self._is_local = root.is_local
        self._durability = durability
        self._opener = Opener(options)
        self._reads = Reads()
        self._recorder = Recorder(options)
        texts = open_text_store(root, options, durability)
        self._forks = Forks(self._opener, texts, durability, self._recorder)
        self.power_cut = PowerCut(self.uri, self._opener, self._forks)
        self._latest = LatestVersions(self.uri, is_local=root.is_local)
        self._commits = ControlCommits(
            key, self._opener, self._recorder, Chains(), root.is_local, self._is_power
        )

    @property
    def storage_options(self) -> Mapping[str, str]:
        return self._opener.storage_options

    # Creating

    def create(self, rows: pa.Table) -> int:
        """Create the table with its first rows; TableExists when there is one."""
        fields = [
            field.with_nullable(False).with_metadata({PRIMARY_KEY: "true"})
            if field.name == self.key
            else field
            for field in rows.schema
        ]
        schema = pa.schema(fields, metadata=rows.schema.metadata)
        with lance_errors("creating a control table", self.uri):
            dataset = self._opener.create(self.uri, rows.cast(schema))
            if self._is_power:
                sync_tree(self.uri)
        self._recorder.record_inline(TableLocation(self.uri), dataset)
        return int(dataset.version)

    def exists(self) -> bool:
        """Whether the table is there. A failure to find out is an error, not False."""
        if self.is_below_a_file():
            return False  # Lance tries again for seconds, and then reports a failed store
        try:
            head = self._opener.head(TableLocation(self.uri))
        except TableNotFound:
            return False
        # Of a creation that a power cut has interrupted the version may be there without its rows.
        return head.version > 1 or not self.power_cut.has_torn_rows(TableLocation(self.uri), head)

    def is_below_a_file(self) -> bool:
        """Whether something on the way to it is a file, so that there cannot be a table."""
        return TableLocation(self.uri).is_below_a_file()

    # Reading

    def latest_version(self, branch: str | None = None) -> int:
        """The latest version of a branch, freshly looked up."""
        known = self._latest.find(branch)
        if known is not None:
            return known.version
        attributes = self._latest.read_attributes(branch)
        dataset = self.power_cut.open_head(TableLocation(self.uri, branch))
        if attributes is not None:
            self._latest.put(branch, Latest(int(dataset.version), attributes))
        return int(dataset.version)

    def read(
        self,
        branch: str | None = None,
        version: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
    ) -> ControlRows:
        """Return the rows at a version, or at the latest, in one scan."""
        location = TableLocation(self.uri, branch)
        dataset = (
            self.power_cut.open_head(location)
            if version is None
            else self._opener.at(location, version)
        )
        handle = _to_handle(location, dataset)
        rows = self._reads.scan(handle, columns, predicate)
        record(control_reads=1)
        return ControlRows(rows, int(dataset.version))

    def read_stamped(
        self,
        branch: str | None,
        version: int,
        columns: Sequence[str],
        predicate: Predicate | None = None,
    ) -> pa.Table:
        """Rows at a version, and as `STAMP` the version of the table that wrote each of them."""
        location = TableLocation(self.uri, branch)
        dataset = self._opener.at(location, version)
        with lance_errors("reading a table", location, version):
            wanted = None if predicate is None else to_lance(predicate, dataset.schema)
            rows = dataset.scanner(columns=[*columns, STAMP], filter=wanted).to_table()
        record(control_reads=1)
        return rows

    def read_own(
        self, branch: str, version: int, columns: Sequence[str], predicate: Predicate
    ) -> pa.Table | None:
        """The rows in files that a branch has written itself, stamped.

        None when it has also removed rows that it came with.
        """
        location = TableLocation(self.uri, branch)
        dataset = self._opener.at(location, version)
        with lance_errors("reading a table", location, version):
            own = []
            for fragment in dataset.get_fragments():
                if any(file.base_id is None for file in fragment.metadata.files):
                    own.append(fragment)
                    continue
                deleted = fragment.metadata.deletion_file
                if deleted is not None and deleted.base_id is None:
                    return None
            wanted = to_lance(predicate, dataset.schema)
            scanner = dataset.scanner(columns=[*columns, STAMP], filter=wanted, fragments=own)
            rows = scanner.to_table() if own else None  # to Lance, no fragments are all of them
        record(control_reads=1)
        return rows

    def next_version(self, branch: str | None, version: int) -> int | None:
        """The earliest version after this one that is still there."""
        dataset = self._opener.head(TableLocation(self.uri, branch))
        with lance_errors("listing versions", self.uri):
            versions = (int(each["version"]) for each in dataset.version_refs())
            return min((each for each in versions if each > version), default=None)

    def fragment_count(self, branch: str | None = None) -> int:
        """The fragments of the latest version: every read and merge pays for each of them."""
        known = self._latest.find(branch)
        dataset = None if known is None else known.dataset
        if dataset is None:
            dataset = self._opener.head(TableLocation(self.uri, branch))
        with lance_errors("counting fragments", self.uri):
            return int(dataset.stats.dataset_stats(1)["num_fragments"])

    # Writing

    def merge_rows(
        self,
        rows: pa.Table,
        *,
        read_version: int,
        branch: str | None = None,
        replaced: str | None = None,
        on_visible: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Update the rows whose key is there, insert the others, in one commit.

        `read_version` is the version the caller's decision was made on. `replaced` is the only key
        that can be there already, if the caller knows of one. `on_visible` is told the new version
        as soon as other readers can see it, which is before it is durable.

        Raises:
            RowLevelCasContention: One of the keys was written since. Nothing was committed.
            RecoveryRequired: The rows are there, but could not be made durable.
        """
        location = TableLocation(self.uri, branch)
        known = self._latest.find(branch)
        dataset = known.dataset if known is not None and known.version == read_version else None
        if dataset is None:
            known, dataset = None, self._opener.at(location, read_version)
        schema = None if known is None else known.schema  # Lance makes it anew when it is asked
        if schema is None:
            schema = dataset.schema
            self._refuse_unfenced(schema)
        place = None
        if replaced is not None:
            place = known.places.get(replaced) if known is not None else None
            place = self._find_place(location, dataset, replaced) if place is None else place
        written = rows.cast(_to_written_schema(schema, rows))
        with publishing(location):
            if place is None:
                made = self._commits.merge(self._opener.at(location, read_version), written)
            else:
                made = self._commits.replace(
                    location, dataset, written, np.array([place], np.uint64), known is not None
                )
        version = int(made.dataset.version)
        attributes = self._latest.read_attributes(branch)
        if attributes is not None and version == read_version + 1:
            places, newest = dict[str, int](), None
            if replaced is not None and place is not None:
                newest = None if known is None else known.max_fragment_id
                # The rows are one fragment more, unless the ids are not known yet.
                newest = max_fragment_id(made.dataset) if newest is None else newest + 1
                position = written.column(self.key).to_pylist().index(replaced)
                places = {replaced: (newest << 32) + position}
            latest = Latest(version, attributes, made.dataset, schema, places, newest)
            self._latest.put(branch, latest)
        on_visible(version)
        self._commits.flush(location, made)
        record(control_merges=1)
        return version

    def replace_rows(
        self, removed: Collection[str], rows: pa.Table, *, read_version: int, branch: str
    ) -> int:
        """Remove the rows with these keys and add others, in one commit.

        Rows that stay keep their stamps. Two writers that remove the same row exclude one another.

        Raises:
            RowLevelCasContention: One of the rows was written since. Nothing was committed.
            RecoveryRequired: It is done, but could not be made durable.
        """
        location = TableLocation(self.uri, branch)
        dataset = self._opener.at(location, read_version)
        wanted = IsIn(self.key, pa.array(sorted(removed), pa.utf8()))
        places = self._reads.find_addresses(_to_handle(location, dataset), wanted)
        written = rows.cast(_to_written_schema(dataset.schema, rows))
        with publishing(location):
            made = self._commits.replace(location, dataset, written, places)
        self._latest.forget(branch)
        self._commits.flush(location, made)
        record(control_merges=1)
        return int(made.dataset.version)

    def delete_rows(self, predicate: Predicate, *, branch: str) -> int:
        """Remove rows of a branch that no reader has seen yet; returns its latest version."""
        location = TableLocation(self.uri, branch)
        with lance_errors("removing rows", location):
            dataset = self._opener.head(location)
            # Inline commit: the branch has no name yet, so nothing else writes or reads it.
            dataset.delete(to_lance(predicate, dataset.schema))
            self._commits.sync(location, describe(dataset))
        self._latest.forget(branch)
        return int(dataset.version)

    def make_durable(self, branch: str | None = None) -> None:
        """Sync the latest version of a branch.

        Raises:
            RecoveryRequired: It is there, but could not be made durable.
        """
        location = TableLocation(self.uri, branch)
        self._commits.flush(location, describe(self._opener.head(location)))

    def append(self, rows: pa.Table) -> int:
        """Add rows at the end; not fenced by key."""
        location = TableLocation(self.uri)
        with lance_errors("appending", location):
            head = self._opener.head(location)
            # Inline commit: history follows what is published; a lost row is written again.
            dataset = lance.write_dataset(
                rows.cast(_to_written_schema(head.schema, rows)),
                head,
                mode="append",
                session=session(),
            )
            self._commits.sync(location, describe(dataset))
        record(control_appends=1)
        return int(dataset.version)

    def compact(self, branch: str | None = None) -> int:
        """Merge small fragments into few; the rows stay. Returns the latest version."""
        location = TableLocation(self.uri, branch)
        dataset = self._opener.head(location)
        before = int(dataset.version)
        with lance_errors("compacting", location):
            results = [each.execute(dataset) for each in Compaction.plan(dataset, {}).tasks]
            if results:
                # No sidecar speaks of a compaction: its rows have to be safe before its version.
                if self._is_power:
                    sync_paths(list_compacted_files(results, location.physical_uri))
                with self.power_cut.mark_unfinished(branch):
                    # Inline commit: it changes no row, and the caller holds the publish turn.
                    Compaction.commit(dataset, results)
                    dataset = self._opener.head(location)
                    if self._is_power:
                        sync_paths(self._list_version_files(location, before, dataset))
                self._recorder.record_inline(location, dataset, since=before)
        record(control_compactions=1)
        return int(dataset.version)

    # Schema metadata

    def metadata(self) -> dict[str, str]:
        """The schema-level metadata of the latest version."""
        return dict(self.power_cut.open_head(TableLocation(self.uri)).schema_metadata)

    def set_metadata(self, values: Mapping[str, str]) -> int:
        """Set schema-level metadata in one commit, keeping the other keys."""
        with self._updating_head("writing schema metadata") as dataset:
            # Inline commit: a stamp has no staged form, and writing it twice changes nothing.
            dataset.update_schema_metadata(dict(values))
        return int(dataset.version)

    def primary_key(self) -> list[str]:
        """The columns marked as primary key; merges are fenced only on `[key]`."""
        return _primary_key(self._opener.head(TableLocation(self.uri)).schema)

    def set_primary_key(self) -> int:
        """Mark the key column of a table that has no primary key yet."""
        with self._updating_head("marking the primary key") as dataset:
            # Inline commit: a key mark has no staged form, and setting it twice changes nothing.
            dataset.update_field_metadata({self.key: {PRIMARY_KEY: "true"}})
        return int(dataset.version)

    @contextmanager
    def _updating_head(self, action: str) -> Iterator[LanceDataset]:
        """Give the latest version to an inline commit; it is marked until it is durable."""
        location = TableLocation(self.uri)
        dataset = self._opener.head(location)
        with lance_errors(action, location), self.power_cut.mark_unfinished():
            yield dataset
            self._commits.sync(location, describe(dataset))

    # Branches

    def create_branch(self, branch: str, *, source: str | None, version: int) -> None:
        """Fork `branch` from an exact version of `source`; ForkExists when the name is taken."""
        self._forks.create(TableLocation(self.uri, source), version, branch)

    def branch_names(self) -> set[str]:
        """The names of the live branches; the main lineage is not one."""
        return self._forks.names(self.uri) - self.power_cut.hidden_branches

    def list_changed_branches(self, since_ns: int | None) -> set[str]:
        """The live branches to which a file system has added a version since a time.

        None stands for the beginning. An object store does not tell: there it is all of them.
        """
        names = self.branch_names()
        if since_ns is None or not self._is_local:
            return names
        return {name for name in names if may_be_newer(TableLocation(self.uri, name), since_ns)}

    def find_branch(self, branch: str) -> BranchInfo | None:
        """One live branch, or None."""
        is_hidden = branch in self.power_cut.hidden_branches
        return None if is_hidden else self._forks.find(self.uri, branch)

    def delete_branch(self, branch: str) -> None:
        """Delete a branch; BranchNotFound when there is none."""
        self._forks.delete(self.uri, branch)

    def delete_branch_tree(self, branch: str) -> None:
        """Remove files of an unfinished branch that no ref names."""
        self._forks.delete_tree(self.uri, branch)

    # Inside

    @property
    def _is_power(self) -> bool:
        return self._is_local and self._durability == "power"

    def _refuse_unfenced(self, schema: pa.Schema) -> None:
        marked = _primary_key(schema)
        if marked != [self.key]:
            raise InvariantViolated(
                f"the key of '{self.uri}' should be ['{self.key}'] but is {marked}: concurrent "
                "publishes would duplicate rows — reopen the graph read-write to migrate it"
            )

    def _list_version_files(
        self, location: TableLocation, before: int, head: LanceDataset
    ) -> list[str]:
        """The files of every version after `before`, without their rows."""
        between = [self._opener.at(location, each) for each in range(before + 1, head.version)]
        return [path for each in [*between, head] for path in commit_files(location, each)]

    def _find_place(self, location: TableLocation, dataset: LanceDataset, key: str) -> int | None:
        """The address of a row; None when it is not there."""
        handle = _to_handle(location, dataset)
        wanted = Compare(self.key, CompareOp.EQ, pa.scalar(key))
        found = self._reads.find_addresses(handle, wanted)
        return int(found[0]) if len(found) == 1 else None


def _to_handle(location: TableLocation, dataset: LanceDataset) -> TableHandle:
    with lance_errors("reading the columns of a table", location, dataset.version):
        return TableHandle(location, dataset.version, dataset.schema, 0, dataset)


def _primary_key(schema: pa.Schema) -> list[str]:
    name = PRIMARY_KEY.encode()
    return [field.name for field in schema if (field.metadata or {}).get(name) == b"true"]


def _to_written_schema(stored: pa.Schema, rows: pa.Table) -> pa.Schema:
    return pa.schema([stored.field(name) for name in rows.column_names])
