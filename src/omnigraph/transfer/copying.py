"""Copying: bring files of a graph to another root, those that are missing there.

A file that is there under its name and size, and whose name is used once, is not read again. What
was copied is recorded at the receiver with its checksum, as its own commits are, so that `verify`
there knows every file.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter

from omnigraph.dataclass import dataclass
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.checksums import Checksum
from omnigraph.storage.dataset_files import DatasetFile, read_records
from omnigraph.storage.durability import Durability, sync_paths, with_parents
from omnigraph.storage.file_copy import copy_file
from omnigraph.storage.listing import Files, Listed
from omnigraph.storage.recorder import Recorder
from omnigraph.transfer.result import TransferResult

_OBJECT_STORE_WORKERS = 16


@dataclass(slots=True)
class Copier:
    """Copies files from one root to another, and counts them in `moved`."""

    source: Files
    target: Files
    durability: Durability = "power"
    find_source: Callable[[DatasetFile], str] = attrgetter("path")
    moved: TransferResult = TransferResult()

    def copy_missing(self, files: Sequence[DatasetFile], there: Mapping[str, Listed]) -> None:
        """Copy what the target lacks, in order; returns when it is all durable and recorded.

        Raises:
            SourceChanged: A file went at the source. What was copied stays.
            DamagedFile: One is not what was written. It was not copied; what came before it stays.
        """
        missing = [file for file in files if not self._is_there(file, there)]
        copied: dict[str, dict[str, Checksum]] = defaultdict(dict)
        try:
            for file, checksum in zip(missing, self._run(missing), strict=True):
                copied[file.dataset][file.relative] = checksum
                self.moved += TransferResult(1, file.listed.size)
        finally:
            self._finish(copied)

    def _is_there(self, file: DatasetFile, there: Mapping[str, Listed]) -> bool:
        found = there.get(file.path)
        return found is not None and file.is_lasting and found.size == file.listed.size

    def _run(self, files: Sequence[DatasetFile]) -> Iterable[Checksum]:
        if self.source.is_local and self.target.is_local:
            yield from map(self._copy, files)
            return
        with ThreadPoolExecutor(_OBJECT_STORE_WORKERS) as workers:
            yield from workers.map(self._copy, files)

    def _copy(self, file: DatasetFile) -> Checksum:
        hit(Failpoint.TRANSFER_BEFORE_FILE)
        path = self.find_source(file)
        return copy_file(self.source, self.target, file, self.durability, source_path=path)

    def _finish(self, copied: Mapping[str, Mapping[str, Checksum]]) -> None:
        """Sync the directories, and record what was copied."""
        root = self.target.uri
        if self.target.is_local and self.durability == "power":
            paths = [f"{root}/{name}/{path}" for name in copied for path in copied[name]]
            directories = {os.path.dirname(path) for path in paths}
            sync_paths(with_parents(directories, root) if directories else [])
        recorder = Recorder(self.target.storage_options)
        for name, checksums in copied.items():
            recorder.record_known(f"{root}/{name}", checksums)


def record_unrecorded(target: Files, files: Iterable[DatasetFile]) -> None:
    """Record files that a transfer copied and did not live to record."""
    by_dataset: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_dataset[file.dataset].append(file.relative)
    for name, paths in by_dataset.items():
        uri = f"{target.uri}/{name}"
        known = read_records(Files(uri, target.storage_options))
        unknown = [path for path in paths if path not in known]
        if unknown:
            Recorder(target.storage_options).record_files(uri, unknown)
