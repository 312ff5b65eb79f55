"""Verify files: compare every file with its record, and name the branches a difference affects.

Looks at all datasets below the root, in a manifest or not, before anything is read through Lance: a
file that is known to be damaged need not be decoded. Then the files that each branch needs are
listed, so that a finding can name the branches, the commit and the rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.index.derived import DerivedStore
from omnigraph.manifest import MAIN, GraphCommit
from omnigraph.manifest.contract import find_damaged_texts
from omnigraph.manifest.schemas import find_damaged_schemas
from omnigraph.storage.content import (
    MISSING,
    DatasetContent,
    FileProblem,
    Spread,
    inspect_dataset,
    latest_version_file,
    spread_over_threads,
)
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.location import TableLocation, parse_version, version_file
from omnigraph.storage.version_files import VersionFile, list_needed_files
from omnigraph.upkeep.findings import Finding, Severity
from omnigraph.write.environment import WriteEnvironment

BACKUP = "restore the files from a backup"
MOVED = "if the graph was moved, open it read-write once; otherwise restore it from a backup"
RECORD = "`omnigraph verify --content --record` records them as they are now"
CLEANUP = "run `omnigraph cleanup` again"
CONTROL_TABLES = ("__manifest", "_graph_commits.lance", "_graph_commit_recoveries.lance")
IDS_SHOWN = 3
_ROWS = ("version", "data", "deletion")

UNREADABLE = (OmnigraphError, ValueError, LookupError, TypeError, pa.ArrowException)
"""What comes of decoding damaged rows: our own errors, and those of JSON, text and Arrow."""


def reason_of(error: Exception) -> str:
    """The reason to report for an error that damaged rows have led to."""
    return error.message if isinstance(error, OmnigraphError) else "its rows cannot be decoded"


@dataclass(frozen=True, slots=True)
class Need:
    """A branch that shows a version which needs a file."""

    table_key: str
    branch: str
    handle: TableHandle
    file: VersionFile


class FileCheck:
    """The files of a graph in one verification."""

    def __init__(
        self,
        environment: WriteEnvironment,
        *,
        content: bool,
        spread: Spread = spread_over_threads,
    ) -> None:
        self._environment = environment
        self._tables = environment.tables
        self._content = content
        self._spread = spread
        self._needs: dict[str, list[Need]] = defaultdict(list)
        self._keys: dict[str, str] = {}
        self._commits: dict[str, list[GraphCommit]] = {}
        self.datasets: dict[str, DatasetContent] = {}

    def inspect(self) -> None:
        """Compare every dataset with its records. Comes before anything is read."""
        controls = [self._tables.root.child(name) for name in CONTROL_TABLES]
        for uri in [*controls, *self._tables.dataset_uris()]:
            self.datasets[uri] = inspect_dataset(
                uri, self._tables.storage_options, content=self._content, spread=self._spread
            )

    @property
    def files_checked(self) -> int:
        return sum(len(each.recorded) for each in self.datasets.values())

    @property
    def bytes_compared(self) -> int:
        return sum(each.bytes_read for each in self.datasets.values())

    # Files that branches need

    def manifest_problem(self, branch: str) -> str | None:
        """A damaged file that the manifest of a branch needs; None when it can be read."""
        location = self._tables.root.table("__manifest", None if branch == MAIN else branch)
        content = self.datasets[location.uri]
        latest = latest_version_file(content.listed, location.prefix)
        if latest is None or latest in content.corrupt_paths:
            return latest or f"{location.prefix}_versions"
        version = parse_version(latest)
        assert version is not None
        handle = self._tables.open_at(location, version)
        return self.note("__manifest", branch, handle)

    def note(self, table_key: str, branch: str, handle: TableHandle) -> str | None:
        """Remember what a branch needs; the first file with rows that is damaged, or None."""
        uri = handle.location.uri
        self._keys[uri] = table_key
        damaged = None
        for file in list_needed_files(handle):
            self._needs[file.uri].append(Need(table_key, branch, handle, file))
            if damaged is None and file.kind in _ROWS and self._is_damaged(file, uri):
                damaged = file.uri
        return damaged

    def version_problem(self, location: TableLocation, version: int) -> str | None:
        """Why a version must not be opened; None when nothing is known against it."""
        name = f"{location.prefix}{version_file(version)}"
        content = self.datasets.get(location.uri)
        if content is None or name not in content.corrupt_paths:
            return None
        return "is damaged" if name in content.listed else MISSING

    def names_ref(self, fork: TableLocation) -> bool:
        """Whether a fork has its ref."""
        content = self.datasets.get(fork.uri)
        return content is None or fork.prefix not in content.ownerless

    def knows(self, uri: str) -> bool:
        """Whether a problem of this file, or below this directory, is reported here."""
        return any(
            f"{dataset}/{problem.path}" == uri or f"{dataset}/{problem.path}".startswith(f"{uri}/")
            for dataset, content in self.datasets.items()
            for problem in content.problems
        )

    def _is_damaged(self, file: VersionFile, uri: str) -> bool:
        content = self.datasets.get(uri)
        if content is None or not content.problems:
            return False
        return any(file.uri in _owners(f"{uri}/{path}") for path in content.corrupt_paths)

    # Findings

    def findings(self) -> Iterator[Finding]:
        """One finding per file that is not as it was written, and what could not be compared."""
        for name, wrong in self._find_damaged_texts().items():
            file = self._tables.root.child(name)
            message = f"the file '{file}' {wrong}"
            yield Finding("content", name, message, BACKUP, file=file)
        yield from self._check_derived() if self._content else ()
        lacking = self.find_unrecorded() if self._content else {}
        for uri, content in self.datasets.items():
            if content.unreadable is not None:
                message = f"its files cannot be listed: {content.unreadable}"
                yield Finding("files", self._subject(uri), message, BACKUP, file=uri)
            for problem in content.problems:
                yield self._problem(uri, problem)
            yield from self._remarks(uri, content, lacking.get(uri))

    def _find_damaged_texts(self) -> dict[str, str]:
        texts, coordinator = self._environment.texts, self._environment.coordinator
        named: set[str] = set()
        with suppress(*UNREADABLE):  # then the manifest is a finding of its own
            states = [coordinator.fresh(branch) for branch in coordinator.branches()]
            named = {state.schema_id for state in states if state.schema_id is not None}
        return (
            find_damaged_texts(texts)
            | find_damaged_schemas(texts, named)
            | coordinator.retained.find_damaged()
            | coordinator.tags.find_damaged()
            | coordinator.request_events.find_damaged()
        )

    def _check_derived(self) -> Iterator[Finding]:
        root = self._tables.root
        if not root.is_local:
            return
        damaged = DerivedStore(Path(root.local_path), is_writable=False).find_damage()
        for file, problem in damaged.items():
            fix = f"remove '{file.rpartition('/')[0]}': it is built again"
            message = f"the file '{file}' {problem}"
            yield Finding("content", "'__derived'", message, fix, file=file)

    def find_unrecorded(self) -> dict[str, list[str]]:
        """Dataset → paths below it that a branch needs and no record names."""
        by_dataset: dict[str, set[str]] = defaultdict(set)
        for uri, needs in self._needs.items():
            dataset = needs[0].handle.location.uri
            if dataset in self.datasets and uri.startswith(f"{dataset}/"):
                by_dataset[dataset].add(uri[len(dataset) + 1 :])
        lacking = {each: self._lacking(each, paths) for each, paths in by_dataset.items()}
        return {dataset: paths for dataset, paths in lacking.items() if paths}

    def _lacking(self, dataset: str, needed: set[str]) -> list[str]:
        """Files that are there, that a version names by `needed`, and that no record names."""
        content = self.datasets[dataset]
        free = content.listed.keys() - content.recorded.keys()
        return sorted(each for each in free if not needed.isdisjoint(_owners(each)))

    def _remarks(
        self, uri: str, content: DatasetContent, lacking: list[str] | None
    ) -> Iterator[Finding]:
        subject, warning = self._subject(uri), Severity.WARNING
        if content.is_being_cleaned:
            message = "a clean-up of it was interrupted; what it removed is not missed"
            yield Finding("content", subject, message, CLEANUP, warning)
        for prefix in content.ownerless:
            branch = prefix.removeprefix("tree/").rstrip("/")
            message = f"the files of '{uri}/{prefix}' have no ref, so branch '{branch}' is not seen"
            fix = f"if '{branch}' was not just created or deleted, {BACKUP}"
            yield Finding("files", subject, message, fix, warning, file=f"{uri}/{prefix}")
        if lacking:
            message = f"{len(lacking)} of its files have no checksum, '{lacking[0]}' for one"
            yield Finding("content", subject, message, RECORD, warning)

    def _problem(self, uri: str, problem: FileProblem) -> Finding:
        file = f"{uri}/{problem.path}"
        needs = [need for owner in _owners(file) for need in self._needs.get(owner, ())]
        branches = tuple(dict.fromkeys(need.branch for need in needs))
        commit = self._commit(uri, problem, branches)
        rows = next((need.file.rows for need in needs if need.file.rows is not None), None)
        return Finding(
            "content" if self._content else "files",
            self._subject(uri),
            f"the file '{file}' {problem.problem}; {self._concern(needs, branches, commit, rows)}",
            MOVED if problem.is_moved else BACKUP,
            branch=next((each for each in branches if MAIN not in branches), None),
            file=file,
            branches=branches,
            commit=commit,
            rows=rows,
        )

    def _concern(
        self, needs: list[Need], branches: tuple[str, ...], commit: str | None, rows: int | None
    ) -> str:
        since = f" since commit {commit}" if commit else ""
        if not branches:
            return f"no branch shows it now, older commits{since} do"
        shown = ", ".join(f"'{each}'" for each in branches)
        if rows is None:
            return f"shown by {shown}{since}"
        deleted = "deleted " if needs[0].file.kind == "deletion" else ""
        return f"{rows} {deleted}rows{self._ids(needs[0])}, shown by {shown}{since}"

    def _ids(self, need: Need) -> str:
        if need.file.fragment_id is None or "id" not in need.handle.schema.names:
            return ""
        try:
            rows = self._tables.reads.scan(
                need.handle, ["id"], fragment_ids=[need.file.fragment_id], limit=IDS_SHOWN
            )
        except UNREADABLE:
            return ""
        ids = rows["id"].to_pylist()
        return f" from {', '.join(map(repr, ids))} on" if ids else ""

    def _commit(self, uri: str, problem: FileProblem, branches: tuple[str, ...]) -> str | None:
        """The commit that first showed the version which wrote a file."""
        inside = problem.path.split("/")
        own = MAIN if inside[0] != "tree" else problem.path[5:].partition("/_")[0]
        key = self._keys.get(uri)
        if problem.version is None or key is None:
            return None
        for branch in (*branches, own):
            found = self._first_showing(branch, key, problem.version)
            if found is not None:
                return found
        return None

    def _first_showing(self, branch: str, table_key: str, version: int) -> str | None:
        commits = self._oldest_first(branch)
        first = bisect_left(commits, version, key=lambda each: self._version_at(each, table_key))
        # Upkeep makes versions without a commit: then the head shows them.
        return commits[min(first, len(commits) - 1)].commit_id if commits else None

    def _version_at(self, commit: GraphCommit, table_key: str) -> int:
        if table_key == "__manifest":
            return commit.manifest_version
        try:
            snapshot = self._environment.coordinator.commit_states.get(commit)
        except UNREADABLE:
            return 0  # removed by a clean-up: older than what is left
        entry = snapshot.entries.get(table_key)
        return 0 if entry is None else entry.version

    def _oldest_first(self, branch: str) -> list[GraphCommit]:
        if branch not in self._commits:
            try:
                found = list(self._environment.coordinator.commits(branch))
            except UNREADABLE:
                found = []
            self._commits[branch] = found[::-1]
        return self._commits[branch]

    def _subject(self, uri: str) -> str:
        name = uri.removeprefix(f"{self._tables.root.uri.rstrip('/')}/")
        return f"'{self._keys.get(uri, name)}'"


def _owners(file: str) -> tuple[str, ...]:
    """What a version may call a file: itself, its index, or the data file it belongs to."""
    directory = file.rpartition("/")[0]
    return file, directory, f"{directory}.lance"
