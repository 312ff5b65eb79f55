"""Content: what is below a dataset, compared with what was recorded when it was written.

Without reading content a recorded file must be there, in its size; with it, byte by byte the same.
Files that no record names are not checked here, and lineages that no ref names (left by an
unfinished fork, or by the deletion of one) are only counted. Reads in constant memory, a few at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.storage.checksum_records import CLEANING, DIRECTORY, Record, decode_records
from omnigraph.storage.checksums import Checksum, Checksums, foreign_bases, is_fork_version
from omnigraph.storage.listing import Files, Listed
from omnigraph.storage.location import REFS, VERSIONS, TableLocation, ref_file
from omnigraph.storage.recorder import wait_for_records
from omnigraph.storage.torn import is_torn_ref, list_torn_versions

READERS = 4
SPREAD_BYTES = 64 * 1024 * 1024
"""A dataset with less than that is read by this process: tasks would cost more."""
MISSING = "is missing"

Item = TypeVar("Item")
Result = TypeVar("Result")
_Expected: TypeAlias = tuple[str, Listed, Checksum]
"""A file that is there, and what it was when it was written."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file below a dataset that is not as it was written; `version` is the one that wrote it."""

    path: str
    problem: str
    version: int | None = None
    is_moved: bool = False


@dataclass(frozen=True, slots=True)
class DatasetContent:
    """What was found below one dataset and its forks. Paths are relative to `uri`."""

    uri: str
    listed: Mapping[str, Listed] = field(default_factory=dict)
    recorded: Checksums = field(default_factory=dict)
    problems: tuple[FileProblem, ...] = ()
    ownerless: tuple[str, ...] = ()
    is_being_cleaned: bool = False
    records_torn: int = 0
    bytes_read: int = 0
    unreadable: str | None = None

    @property
    def corrupt_paths(self) -> frozenset[str]:
        """Files that must not be decoded. One that has only moved is whole."""
        return frozenset(each.path for each in self.problems if not each.is_moved)


class Spread(Protocol):
    """Calls a function for every item, each on its own, wherever: the results in order.

    With a `stage`, the listener of the call is told how many are done, with how many rows.
    """

    def __call__(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        /,
        stage: str | None = None,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> Sequence[Result]: ...


def spread_over_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    /,
    stage: str | None = None,
    rows_of: Callable[[Result], int] = lambda _: 0,
) -> Sequence[Result]:
    """Call a function in a few threads of this process, which is over soon."""
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(function, items))


def inspect_dataset(
    uri: str,
    options: Mapping[str, str],
    *,
    content: bool,
    spread: Spread = spread_over_threads,
) -> DatasetContent:
    """Check every recorded file of a dataset. Damage is reported, never raised.

    With `content`, the files of a large dataset are read through `spread`.
    """
    wait_for_records()
    files = Files(uri, options)
    try:
        listed = files.list()
        return _Inspection(files, listed, content, spread).run()
    except (OmnigraphError, OSError) as error:
        return DatasetContent(uri, unreadable=str(error))


def find_lineages(listed: Mapping[str, Listed]) -> set[str]:
    """Where the lineages of a dataset lie: `` for the main one, else `tree/<branch>/`."""
    found = (path.rpartition(f"{VERSIONS}/") for path in listed)
    return {before for before, between, name in found if between and "/" not in name}


def latest_version_file(listed: Mapping[str, Listed], prefix: str) -> str | None:
    """The file of the latest version of a lineage: the first by name."""
    top = f"{prefix}{VERSIONS}/"
    found = [each for each in listed if each.startswith(top) and each.endswith(".manifest")]
    return min(found, default=None)


@dataclass(frozen=True, slots=True)
class _Inspection:
    files: Files
    listed: Mapping[str, Listed]
    content: bool
    spread: Spread

    def run(self) -> DatasetContent:
        lineages = find_lineages(self.listed)
        ownerless = {each for each in lineages if each and not self._has_ref(each)}
        is_being_cleaned = f"{DIRECTORY}/{CLEANING}" in self.listed
        records: list[Record] = []
        records_torn = 0
        problems: list[FileProblem] = []
        for path in self._logs(lineages - ownerless):
            read = decode_records(self.files.read(path))
            torn = self._find_torn_version(path.rpartition(DIRECTORY)[0])
            records += [each for each in read.records if torn is None or each.version < torn]
            records_torn += read.torn
            if read.damaged:
                problem = f"is damaged: {read.damaged} of its records do not fit their checksum"
                problems.append(FileProblem(path, problem))
        recorded = {path: value for each in records for path, value in each.files.items()}
        written = {path: each.version for each in records for path in each.files}
        problems += [
            replace(each, version=written[each.path])
            for each in self._compare(recorded, is_being_cleaned)
        ]
        there = [self.listed[path].size for path in recorded if path in self.listed]
        return DatasetContent(
            self.files.uri,
            self.listed,
            recorded,
            tuple(problems),
            tuple(sorted(ownerless)),
            is_being_cleaned,
            records_torn,
            bytes_read=sum(there) if self.content else 0,
        )

    def _has_ref(self, prefix: str) -> bool:
        """Whether a lineage is a fork. A ref that a power cut has torn never was one."""
        ref = ref_file(_branch_of(prefix))
        if ref not in self.listed:
            return False
        return not (self.files.is_local and is_torn_ref(self.files.read(ref)))

    def _find_torn_version(self, prefix: str) -> int | None:
        """The first version of a lineage that a power cut has torn: it was never acknowledged.

        One that was acknowledged and damaged later cannot be opened: opening its pin reports it.
        """
        location = TableLocation(self.files.uri, _branch_of(prefix) or None)
        torn = list_torn_versions(location) if self.files.is_local else []
        return torn[-1].version if torn else None

    def _logs(self, lineages: set[str]) -> list[str]:
        return sorted(
            path
            for path in self.listed
            if path.endswith(".log")
            and path.rpartition(f"{DIRECTORY}/")[0] in lineages
            and f"{DIRECTORY}/" in path
        )

    def _compare(self, recorded: Checksums, is_being_cleaned: bool) -> Iterator[FileProblem]:
        present: list[_Expected] = []
        for path in sorted(recorded):
            listed = self.listed.get(path)
            if listed is not None:
                present.append((path, listed, recorded[path]))
            # An earlier Omnigraph recorded refs that it copied with the main lineage.
            elif not is_being_cleaned and not path.startswith(f"{REFS}/"):
                yield FileProblem(path, MISSING)
        compare = partial(_compare_file, self.files, self.content)
        if not self.content:  # the listing has the sizes: there is nothing to read
            yield from filter(None, map(compare, present))
            return
        is_large = sum(each.size for _, each, _ in present) >= SPREAD_BYTES
        spread = self.spread if is_large else spread_over_threads
        yield from filter(None, spread(compare, present))


def _compare_file(files: Files, content: bool, expected: _Expected) -> FileProblem | None:
    path, listed, checksum = expected
    if listed.size != checksum.size and not is_fork_version(path):
        return FileProblem(path, f"has {listed.size} bytes instead of {checksum.size}")
    if not content:
        return None
    try:
        if files.is_same(path, listed, checksum) is False:
            return FileProblem(path, "is damaged: its bytes are not those that were written")
        return _find_foreign_base(files, path)
    except (OmnigraphError, OSError) as error:
        return FileProblem(path, f"cannot be read: {error}")


def _find_foreign_base(files: Files, path: str) -> FileProblem | None:
    if not is_fork_version(path):
        return None
    foreign = foreign_bases(files.read(path), files.uri)
    if not foreign:
        return None
    return FileProblem(path, f"takes its rows from another place: '{foreign[0]}'", is_moved=True)


def _branch_of(prefix: str) -> str:
    return prefix.removeprefix("tree/").rstrip("/")
