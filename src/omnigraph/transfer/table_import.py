"""Table import: versions of tables that were made in another store, received into this one.

A version keeps its number, its transaction, row ids and row stamps; only the places of its files
are written anew. Versions of one lineage that are received together lie on a lineage of their own,
`__from/{transaction of the first}`, a fork of the newest version here that they came from. No
branch owns such a lineage, so the first write forks it. Files that the version they came from has
are shared; the others are copied to the new lineage, under names that are used once.

Where no version here is known that it came from, all of its files are copied, and the fork comes
from version 0 of the main lineage: there is none, so what it has in common with others is not
looked up there.

The name follows from what is received: when a transfer is repeated, it finds what it has copied.

A branch shows the greatest version of a table. One that is not greater than what the branch has
shown (upkeep counts on without commits) is shown under the next number, from a lineage
`__from/{transaction}.{number}` that came from the received one. So one transaction may have several
versions: where a name is taken by another of them, the received lineage has the number, too.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, SourceChanged
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import TableEntry
from omnigraph.manifest.branch_names import RECEIVED
from omnigraph.manifest.schemas import is_unique_path
from omnigraph.storage.checksums import Checksum
from omnigraph.storage.dataset_files import DatasetFile, is_recorded, read_records
from omnigraph.storage.durability import sync_paths, with_parents
from omnigraph.storage.file_copy import copy_file
from omnigraph.storage.handles import BranchInfo
from omnigraph.storage.lance_manifest import find_transaction_file, manifest_in
from omnigraph.storage.listing import Files, Listed
from omnigraph.storage.location import TableLocation, ref_file, version_file
from omnigraph.storage.placed_files import list_placed, place_files
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.version_identity import read_version
from omnigraph.transfer.result import TransferResult

Version: TypeAlias = tuple[str, str | None, int]
"""Path of a table, lineage and number of a version."""


@dataclass(slots=True)
class _Lineage:
    """A lineage that versions are received on, and the files that are known to it."""

    location: TableLocation
    parent: str | None
    parent_version: int
    first_version: int
    places: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Received:
    """A version as it is written down here."""

    lineage: _Lineage
    version: int
    data: bytes


class TableImport:
    """Brings versions of tables from one store to another; `moved` counts what was copied."""

    def __init__(
        self,
        source: TableStorage,
        target: TableStorage,
        is_named: Callable[[str], bool],
        is_same_table: Callable[[str], bool],
    ) -> None:
        """`is_named` tells whether the target has had a table at a path, and `is_same_table`
        whether both stores had one version of it at some time. Both read all branches."""
        self._source, self._target = source, target
        self._is_named, self._is_same_table = is_named, is_same_table
        self._from = Files(source.root.uri, source.storage_options)
        self._to = Files(target.root.uri, target.storage_options)
        self._same: dict[Version, TableEntry] = {}
        self._shared_paths: set[str] = set()
        self._alike: set[str] = set()
        self._unlike: set[str] = set()
        self._lineages: dict[tuple[str, str | None], _Lineage] = {}
        self._by_place: dict[TableLocation, _Lineage] = {}
        self._forks: dict[tuple[str, str], BranchInfo | None] = {}
        self._records: dict[str, Mapping[str, Checksum]] = {}
        self._received: dict[Version, _Received] = {}
        self.moved = TransferResult()

    # What both stores have

    def share(self, paths: Iterable[str]) -> None:
        """Note tables that a commit of both stores shows: they are the same in both."""
        self._shared_paths |= set(paths)

    def match(self, source: TableEntry, target: TableEntry | None) -> None:
        """Note what both stores show of a table at one commit: the same version, if it is."""
        paths = self._unlike
        if target is not None and source.table_path == target.table_path:
            for ours in self._with_origin(self._target, target):
                for theirs in self._with_origin(self._source, source):
                    uuid = theirs.transaction_uuid
                    if uuid is not None and (uuid, theirs.version) == (
                        ours.transaction_uuid,
                        ours.version,
                    ):
                        self._same.setdefault(_key(theirs), ours)
                        paths = self._alike
        paths.add(source.table_path)

    def has_origins(self, entries: Iterable[TableEntry]) -> bool:
        """Whether it is known of versions that both stores have them, or what they came from.

        The latter is so where both showed one version of the table wherever they were compared.
        """
        alike = self._alike - self._unlike
        return all(_key(each) in self._same or each.table_path in alike for each in entries)

    def _with_origin(self, tables: TableStorage, entry: TableEntry) -> list[TableEntry]:
        """A version, and the received one that it shows under another number."""
        fork = entry.table_branch
        if fork is None or not fork.startswith(RECEIVED) or "." not in fork:
            return [entry]
        info = tables.forks.find(tables.root.child(entry.table_path), fork)
        if info is None or entry.version != int(fork.rpartition(".")[2]):
            return [entry]
        return [
            entry,
            replace(entry, table_branch=info.parent_branch, version=info.parent_version),
        ]

    # Receiving

    def bring(self, entries: Iterable[TableEntry], *, is_final: bool) -> None:
        """Receive versions, those that others came from first.

        Without `is_final` only files are copied: nothing holds them yet, and a cleanup may come.
        """
        wanted = {_key(each): each for each in entries}
        for _, entry in sorted(wanted.items(), key=lambda each: (each[0][0], each[0][2])):
            if _key(entry) not in self._same:
                self._receive(entry)
        if is_final:
            for (path, _, _), received in self._received.items():
                self._require_files(path, received.lineage)
            for path in sorted({path for path, _, _ in self._received}):
                self._make_table(path)
            for (path, _, _), received in self._received.items():
                self._write_version(path, received)
            for received in self._received.values():
                self._write_ref(received.lineage)

    def _require_files(self, path: str, lineage: _Lineage) -> None:
        """Look for the files that were copied without a lock: a cleanup may have come since.

        Raises:
            SourceChanged: One is gone. The transfer is begun again.
        """
        prefix = f"{path}/{lineage.location.prefix}"
        there = self._to.list(prefix.rstrip("/"))
        folders = {name.rpartition("/")[0] for name in there}
        for file, branch in lineage.places.items():
            if (
                branch == lineage.location.branch
                and f"{prefix}{file}" not in there.keys() | folders
            ):
                raise SourceChanged(f"{self._to.uri}/{prefix}{file}")

    def _make_table(self, path: str) -> None:
        """Make the directory of a table that is new here one that Lance knows.

        Its main lineage has one empty version, which no branch shows and nothing comes from.
        """
        location = self._target.root.table(path)
        if not self._target.exists(location.uri):
            hit(Failpoint.TRANSFER_BEFORE_TABLE)
            self._target.create_table(location, pa.schema([pa.field("id", pa.utf8(), False)]))

    def find(self, entry: TableEntry) -> TableEntry:
        """The same version in this store, once it was received."""
        return replace(self._same[_key(entry)], table_key=entry.table_key)

    def _receive(self, entry: TableEntry) -> None:
        data = self._read_version(self._from, entry)
        lineage = self._find_lineage(entry)
        location, places = lineage.location, lineage.places
        prefix = f"{entry.table_path}/{location.prefix}"
        there = self._to.list(prefix.rstrip("/"))
        copied: dict[str, Checksum] = {}
        for file in list_placed(data, entry.table_branch):
            if file.path not in places:
                origin = f"{TableLocation('', file.branch).prefix}{file.path}"
                if not self._copy(entry.table_path, origin, prefix, file.path, there, copied):
                    raise SourceChanged(f"{self._from.uri}/{entry.table_path}/{origin}")
                places[file.path] = location.branch
        own = TableLocation("", entry.table_branch).prefix
        transaction = f"_transactions/{find_transaction_file(manifest_in(data))}"
        self._copy(entry.table_path, f"{own}{transaction}", prefix, transaction, there, copied)
        moved = place_files(data, location, entry.table_branch, lambda path, _: places[path])
        self._finish(entry.table_path, location, copied)
        self._received[_key(entry)] = _Received(lineage, entry.version, moved)
        self._same[_key(entry)] = replace(entry, table_branch=location.branch)

    def _write_version(self, dataset: str, received: _Received) -> None:
        """Write a version down, unless an earlier transfer has.

        Raises:
            SourceChanged: The lineage has another version of this number since it was chosen.
        """
        location, name = received.lineage.location, version_file(received.version)
        path = f"{location.prefix}{name}"
        there = self._find_version(location, received.version)
        if there is None or self._find_ref(location) is None:
            self._to.write(f"{dataset}/{path}", received.data)
            Recorder(self._to.storage_options).record_files(location.uri, [path])
        elif find_transaction_file(manifest_in(there)) != find_transaction_file(
            manifest_in(received.data)
        ):
            raise SourceChanged(f"{self._to.uri}/{dataset}/{path}")

    def _find_lineage(self, entry: TableEntry) -> _Lineage:
        """Where a version is received: with others of its lineage, or on a new one."""
        key = (entry.table_path, entry.table_branch)
        known = self._lineages.get(key)
        if known is not None and self._can_hold(known, entry):
            return known
        parent = self._find_parent(entry)
        if parent is None:
            self._refuse_other_table(entry)
        name = entry.transaction_uuid or f"version-{entry.version}"
        lineage = self._make_lineage(entry, name, parent)
        if not self._can_hold(lineage, entry):
            lineage = self._make_lineage(entry, f"{name}.{entry.version}", parent)
        self._lineages[key] = self._by_place[lineage.location] = lineage
        return lineage

    def _make_lineage(self, entry: TableEntry, name: str, parent: TableEntry | None) -> _Lineage:
        location = TableLocation(self._target.root.child(entry.table_path), f"{RECEIVED}{name}")
        if parent is None:
            return _Lineage(location, None, 0, entry.version)
        return _Lineage(
            location,
            parent.table_branch,
            parent.version,
            entry.version,
            self._places_of(parent),
        )

    def _can_hold(self, lineage: _Lineage, entry: TableEntry) -> bool:
        """Whether a version can be received on a lineage, which may be there already.

        A version may have been followed by different ones in different stores, and one transaction
        may have several versions. What comes to a lineage that is there has to come from where
        the lineage came from: only that is kept together with it.
        """
        location = lineage.location
        if self._by_place.get(location, lineage) is not lineage:
            return False
        there = self._find_version(location, entry.version)
        if there is not None:
            name = find_transaction_file(manifest_in(there)) or ""
            return name.endswith(f"-{entry.transaction_uuid}.txn")
        ref = self._find_ref(location)
        place = (lineage.parent, lineage.parent_version)
        return ref is None or (ref.parent_branch, ref.parent_version) == place

    def _find_version(self, location: TableLocation, version: int) -> bytes | None:
        """A version of this store as it is written down, None when there is none."""
        return read_version(Files(location.uri, self._to.storage_options), location, version)

    def _find_ref(self, location: TableLocation) -> BranchInfo | None:
        assert location.branch is not None
        return self._target.forks.find(location.uri, location.branch)

    def _refuse_other_table(self, entry: TableEntry) -> None:
        """Refuse a table that lies where this store has another one.

        Tables of types that are added lie at places that no other store uses. An earlier Omnigraph
        chose them by the name of the type alone.
        """
        path = entry.table_path
        is_known = path in self._shared_paths or is_unique_path(path) or not self._is_named(path)
        if not is_known and not self._is_same_table(path):
            raise ConflictError(
                f"'{entry.table_key}' is a table of its own in each store, at one place: both "
                "added the type with an earlier Omnigraph — nothing was published; export it from "
                "one of them, drop it there, pull and load it"
            )

    def _find_parent(self, entry: TableEntry) -> TableEntry | None:
        """The newest version here that a version of the source came from."""
        branch, version = entry.table_branch, entry.version
        while True:
            known = [
                number
                for path, lineage, number in self._same
                if (path, lineage) == (entry.table_path, branch) and number <= version
            ]
            if known:
                return self._same[entry.table_path, branch, max(known)]
            if branch is None:
                return None
            info = self._find_fork(entry.table_path, branch)
            if info is None:
                raise SourceChanged(f"{self._from.uri}/{entry.table_path}/{ref_file(branch)}")
            branch, version = info.parent_branch, min(version, info.parent_version)

    def _find_fork(self, path: str, branch: str) -> BranchInfo | None:
        if (path, branch) not in self._forks:
            uri = self._source.root.child(path)
            self._forks[path, branch] = self._source.forks.find(uri, branch)
        return self._forks[path, branch]

    def _places_of(self, entry: TableEntry) -> dict[str, str | None]:
        """Where the files of a version of this store lie; none when a cleanup has removed it."""
        known = (each for key, each in self._received.items() if self._same[key] == entry)
        try:
            data = next((each.data for each in known), None) or self._read_version(self._to, entry)
        except SourceChanged:
            return {}
        return {each.path: each.branch for each in list_placed(data, entry.table_branch)}

    # Under another number

    def renumber(self, entry: TableEntry, version: int) -> TableEntry:
        """Show a version on a lineage of its own, under its number or a greater one."""
        shown = replace(entry, version=version)
        name = f"{entry.transaction_uuid or uuid4().hex}.{version}"
        lineage = self._make_lineage(shown, name, entry)
        if not self._can_hold(lineage, shown):
            lineage = self._make_lineage(shown, f"{uuid4().hex}.{version}", entry)
        moved = place_files(
            self._read_version(self._to, entry),
            lineage.location,
            entry.table_branch,
            lambda _, where: where,
            version=version,
        )
        self._write_version(entry.table_path, _Received(lineage, version, moved))
        self._write_ref(lineage)
        return replace(shown, table_branch=lineage.location.branch)

    # Files

    def _copy(
        self,
        dataset: str,
        origin: str,
        prefix: str,
        path: str,
        there: Mapping[str, Listed],
        copied: dict[str, Checksum],
    ) -> bool:
        """Copy a file, or all below a directory, to `prefix`; False when the source has none.

        What is there under its name and size is not read again.
        """
        source = Files(f"{self._from.uri}/{dataset}", self._from.storage_options)
        found = dict(source.find(origin))
        if origin.endswith(".lance") and "/data/" in f"/{origin}":
            found |= source.list(os.path.splitext(origin)[0])  # large blobs
        start = origin.removesuffix(path)
        for each, listed in found.items():
            target = f"{prefix}{each.removeprefix(start)}"
            known = there.get(target)
            if known is not None and known.size == listed.size:
                continue
            hit(Failpoint.TRANSFER_BEFORE_FILE)
            file = DatasetFile(dataset, each, listed, self._read_records(dataset).get(each))
            checksum = copy_file(
                self._from, self._to, file, self._target.durability, target_path=target
            )
            copied[target.removeprefix(f"{dataset}/")] = checksum
            self.moved += TransferResult(1, listed.size)
        return bool(found)

    def _read_records(self, dataset: str) -> Mapping[str, Checksum]:
        if dataset not in self._records:
            uri = f"{self._from.uri}/{dataset}"
            self._records[dataset] = read_records(Files(uri, self._from.storage_options))
        return self._records[dataset]

    def _read_version(self, files: Files, entry: TableEntry) -> bytes:
        prefix = TableLocation("", entry.table_branch).prefix
        path = f"{entry.table_path}/{prefix}{version_file(entry.version)}"
        try:
            return files.read(path)
        except FileNotFoundError:
            raise SourceChanged(f"{files.uri}/{path}") from None

    def _finish(
        self, dataset: str, location: TableLocation, copied: Mapping[str, Checksum]
    ) -> None:
        """Sync the files that were received, and record them."""
        if self._to.is_local and self._target.durability == "power":
            top = f"{self._to.uri}/{dataset}"
            paths = {os.path.dirname(f"{top}/{each}") for each in copied}
            sync_paths(with_parents(paths, top) if paths else [])
        Recorder(self._to.storage_options).record_known(location.uri, copied)

    def _write_ref(self, lineage: _Lineage) -> None:
        """Make a lineage one that Lance knows: from here on its files are kept."""
        location, branch = lineage.location, lineage.location.branch
        if self._find_ref(location) is not None:
            return
        assert branch is not None
        parent = lineage.parent
        info = None if parent is None else self._target.forks.find(location.uri, parent)
        mapping = [] if info is None else [each.split(":") for each in info.identifier.split("/")]
        facts = {
            "parentBranch": parent,
            "identifier": {
                "version_mapping": [
                    *([int(at), token] for at, token in mapping),
                    [lineage.parent_version, uuid4().hex],
                ]
            },
            "parentVersion": lineage.parent_version,
            "createAt": int(time.time()),
            "manifestSize": 0,
            "metadata": {},
        }
        dataset = Files(location.uri, self._to.storage_options)
        recorder = Recorder(self._to.storage_options)
        # A transfer that died has copied files, and not lived to record them.
        own = {each for each in dataset.list(location.prefix.rstrip("/")) if is_recorded(each)}
        unknown = own - read_records(dataset).keys()
        recorder.record_files(location.uri, sorted(unknown))
        dataset.write(ref_file(branch), json.dumps(facts, indent=2).encode())
        recorder.record_fork(location, lineage.first_version, None)


def _key(entry: TableEntry) -> Version:
    return entry.table_path, entry.table_branch, entry.version
