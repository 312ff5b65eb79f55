"""Contents: everything that one state of a graph consists of, while others write to it.

The states of all branches are read first, then the files are listed: what a state needs was there
before it could be read. Versions that no branch has shown by then are left out, and with them
every write in flight. A cleanup may remove files in between; then a copy fails with SourceChanged
and the contents are read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, SourceChanged
from omnigraph.manifest import ManifestState
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.contract import FILES, SOURCE_FILE, build_contract_texts, load_contract
from omnigraph.manifest.model import MANIFEST_TABLE, Snapshot
from omnigraph.manifest.rows import default_path
from omnigraph.manifest.schema_files import load_accepted_contract
from omnigraph.storage.control import ControlTable
from omnigraph.storage.dataset_files import DatasetFile, list_files
from omnigraph.storage.listing import Files
from omnigraph.storage.location import VERSIONS
from omnigraph.write.environment import WriteEnvironment

ATTEMPTS_MAX = 8
_LEFT_BEHIND = frozenset(
    {
        "__derived",
        "__load",
        "__locks",
        "__quarantine",
        "__recovery",
        "__remotes",
        "__cleanup.json",
        "__clone.json",
        "__history.json",
        "__location.json",
    }
)
"""What is derived, of this machine, or about the relation to other stores."""
_PINS = ["table_key", "location", "table_version", "table_branch", "object_type"]


@dataclass(frozen=True, slots=True)
class Source:
    """A graph that is copied from. It is only read."""

    environment: WriteEnvironment
    manifest: ControlTable
    projections: tuple[ControlTable, ...]

    @property
    def files(self) -> Files:
        tables = self.environment.tables
        return Files(tables.root.uri, tables.storage_options)


@dataclass(frozen=True, slots=True)
class Contents:
    """One state of a graph. Files are copied in their order, then the texts; the last is the claim
    of a graph to be one (`_schema.pg`)."""

    graph_id: str
    heads: Mapping[str, str]
    commit_ids: frozenset[str]
    files: tuple[DatasetFile, ...] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def paths(self) -> set[str]:
        return {file.path for file in self.files} | set(self.texts)


def read_contents(source: Source) -> Contents:
    """Read what a graph consists of now.

    Raises:
        SourceChanged: Files went while they were listed; read again.
        ConflictError: The schema keeps changing.
    """
    environment, coordinator = source.environment, source.environment.coordinator
    for _ in range(ATTEMPTS_MAX):
        before = tuple(environment.texts.read_text_if_exists(name) for name in FILES)
        at_root = load_contract(environment.texts)
        contract = load_accepted_contract(environment.texts, coordinator, None)
        states = [coordinator.fresh(branch) for branch in coordinator.branches()]
        if states[0].schema_hash not in (None, contract.catalog.shape_hash):
            continue  # a schema change has come in between
        files = [file for each in _list_datasets(source, states) for file in each]
        texts = dict(_read_texts(source))
        if tuple(texts[name].decode() for name in FILES) != before:
            continue
        if (contract.schema_id, before) != (at_root.schema_id, at_root.texts):
            # A change died between its publish and its files: the copy gets those that it left out.
            accepted = build_contract_texts(contract.source, contract.catalog)
            texts |= {name: text.encode() for name, text in accepted.items()}
        return Contents(
            graph_id=_find_first_commit(states[0]),
            heads={state.branch: state.head.commit_id for state in states},
            commit_ids=frozenset(_list_commit_ids(states)),
            files=tuple(sorted(files, key=_order)),
            texts=dict(sorted(texts.items(), key=lambda each: each[0] == SOURCE_FILE)),
        )
    raise ConflictError("the schema of the source keeps changing — nothing was copied; try again")


def _order(file: DatasetFile) -> tuple[bool, str]:
    """The versions of the manifest come last: without them there is nothing to open."""
    return (file.dataset == MANIFEST_TABLE and file.relative.startswith(VERSIONS), file.path)


def _find_first_commit(main: ManifestState) -> str:
    """The commit that made the graph. All copies have it, and no other graph."""
    ids = main.commit_rows["object_id"].take(pc.sort_indices(main.commit_rows["table_version"]))
    return str(ids[0].as_py())


def _list_commit_ids(states: Iterable[ManifestState]) -> Iterator[str]:
    for state in states:
        yield from state.commit_rows["object_id"].to_pylist()
        yield from state.ancestor_rows["object_id"].to_pylist()


def _list_datasets(source: Source, states: list[ManifestState]) -> Iterator[list[DatasetFile]]:
    lineages = _find_lineages(source, states)
    lineages[MANIFEST_TABLE] = {lance_branch(state.branch): state.version for state in states}
    for table in source.projections:
        if table.exists():
            lineages[table.uri.rpartition("/")[2]][None] = table.latest_version()
    for dataset, wanted in sorted(lineages.items()):
        yield list_files(source.files, dataset, wanted)


def _find_lineages(
    source: Source, states: list[ManifestState]
) -> defaultdict[str, dict[str | None, int]]:
    """Path of a table → the lineages that some state shows, each with its latest such version."""
    found: defaultdict[str, dict[str | None, int]] = defaultdict(dict)

    def add(path: str, branch: str | None, version: int) -> None:
        found[path][branch] = max(version, found[path].get(branch, 0))

    for state in states:
        rows = source.manifest.read(lance_branch(state.branch), state.version, columns=_PINS).rows
        for row in rows.filter(pc.equal(rows["object_type"], "table_version")).to_pylist():
            path = row["location"] or default_path(row["table_key"])
            add(path, row["table_branch"], row["table_version"])
    coordinator = source.environment.coordinator
    kept: list[Snapshot] = [*coordinator.retained, *(state for _, state in coordinator.tags)]
    for snapshot in kept:
        for entry in snapshot.entries.values():
            add(entry.table_path, entry.table_branch, entry.version)
    for lineages in found.values():
        # Of a table that came from another store no branch may show the main lineage: Lance needs
        # it to know the others.
        lineages.setdefault(None, 1)
    return _drop_removed(source, found)


def _drop_removed(
    source: Source, found: defaultdict[str, dict[str | None, int]]
) -> defaultdict[str, dict[str | None, int]]:
    """Leave out the forks that a manifest of the past names and that are gone by now."""
    tables = source.environment.tables
    for path, lineages in found.items():
        if any(each is not None for each in lineages):
            there = tables.forks.names(tables.root.child(path))
            for branch in [each for each in lineages if each is not None and each not in there]:
                del lineages[branch]
    return found


def _read_texts(source: Source) -> Iterator[tuple[str, bytes]]:
    """The small files of the graph itself, by their path."""
    files, texts = source.files, source.environment.texts
    names = {uri.rpartition("/")[2] for uri in texts.store.list_dir(files.uri)}
    folders = {
        each
        for each in texts.store.list_folders(files.uri)
        if each.startswith("__") and each != MANIFEST_TABLE
    }
    paths = {each for each in names if each.startswith("_") and not each.endswith(".staging")}
    for folder in folders - _LEFT_BEHIND:
        paths |= set(files.list(folder))
    for path in sorted(paths - _LEFT_BEHIND | set(FILES)):
        if "#" in path:
            continue
        try:
            yield path, files.read(path)
        except FileNotFoundError:
            raise SourceChanged(f"{files.uri}/{path}") from None
