"""Backup: whole states of a graph as objects named by their hash, with a list for each backup.

    objects/{first two}/{sha256}   the bytes of a file; stored once, whichever backups have it
    backups/{id}.json              size and hash of every file, sealed by a checksum

A list is written when all its objects are there, so a backup is whole or does not exist. A file
whose name is used once is not read again when the latest list has it. Restoring compares every
object with its hash, and makes the graph openable last, as a clone does.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BackupNotFound, ConflictError, DamagedFile, StorageError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.checksums import checksum_sha256
from omnigraph.storage.dataset_files import DatasetFile
from omnigraph.storage.file_copy import copy_file, hash_file
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.listing import Files, Listed
from omnigraph.storage.queues import QueueKey, writer_queues
from omnigraph.transfer.clone import claim, clone_turn, complete, retry_while_changing
from omnigraph.transfer.contents import Contents, Source, read_contents
from omnigraph.transfer.copying import Copier
from omnigraph.transfer.result import TransferResult
from omnigraph.ulids import new_ulid

LISTS, OBJECTS = "backups", "objects"
_FORMAT = 1
_QUEUE: QueueKey = ("__backup__", None)


@dataclass(frozen=True, slots=True)
class BackupList:
    """What one backup consists of: path → size and hash, of the files and of the texts."""

    graph_id: str
    created_at: int
    heads: Mapping[str, str]
    commits: int
    files: Mapping[str, tuple[str, int, str]]
    texts: Mapping[str, tuple[int, str]]

    def to_text(self) -> str:
        value = {
            "format": _FORMAT,
            "graph": self.graph_id,
            "created_at": self.created_at,
            "heads": dict(self.heads),
            "commits": self.commits,
            "files": {path: list(each) for path, each in self.files.items()},
            "texts": {path: list(each) for path, each in self.texts.items()},
        }
        return json.dumps(value | {"checksum": _seal(value)}, indent=1) + "\n"


def write_backup(
    source: Source, target: GraphTexts, storage_options: Mapping[str, str]
) -> TransferResult:
    """Add a backup of the present state.

    Raises:
        ConflictError: The backups there are of another graph.
        DamagedFile: A file of the graph is not what was written. There is no new backup.
    """
    with writer_queues(target.root).acquire_many([_QUEUE]):
        return retry_while_changing(lambda: _write(source, target, storage_options))


def _write(
    source: Source, target: GraphTexts, storage_options: Mapping[str, str]
) -> TransferResult:
    contents = read_contents(source)
    latest = _read_latest(target)
    if latest is not None and latest.graph_id != contents.graph_id:
        raise ConflictError(
            f"the backups at '{target.root}' are of another graph — nothing was written; choose "
            "another location"
        )
    known = {} if latest is None else latest.files
    objects = _Objects(source.files, Files(target.root.uri, storage_options))
    files = {file.path: objects.add(file, known.get(file.path)) for file in contents.files}
    texts = {path: objects.add_text(text) for path, text in contents.texts.items()}
    made = BackupList(
        contents.graph_id,
        time.time_ns() // 1_000,
        contents.heads,
        len(contents.commit_ids),
        files,
        texts,
    )
    hit(Failpoint.TRANSFER_BEFORE_CLAIM)
    target.write_text(f"{LISTS}/{new_ulid()}.json", made.to_text())
    before = 0 if latest is None else latest.commits
    return objects.moved + TransferResult(commits=max(0, made.commits - before))


class _Objects:
    """The objects of a location of backups; those that are there are not written again."""

    def __init__(self, source: Files, target: Files) -> None:
        self._source, self._target = source, target
        self._there = set(target.list(OBJECTS))
        self.moved = TransferResult()

    def add(self, file: DatasetFile, known: tuple[str, int, str] | None) -> tuple[str, int, str]:
        """Store a file; returns its dataset, size and hash."""
        size = file.listed.size
        is_known = known is not None and file.is_lasting and known[1] == size
        if is_known and known is not None and _object(known[2]) in self._there:
            return known
        digest = hash_file(self._source, file)
        name = _object(digest)
        if name not in self._there:
            hit(Failpoint.TRANSFER_BEFORE_FILE)
            copy_file(self._source, self._target, file, target_path=name)
            self._count(name, size)
        return file.dataset, size, digest

    def add_text(self, text: bytes) -> tuple[int, str]:
        digest = hashlib.sha256(text).hexdigest()
        name = _object(digest)
        if name not in self._there:
            hit(Failpoint.TRANSFER_BEFORE_FILE)
            self._target.write(name, text)
            self._count(name, len(text))
        return len(text), digest

    def _count(self, name: str, size: int) -> None:
        self._there.add(name)
        self.moved += TransferResult(1, size)


def restore_graph(
    source: GraphTexts,
    source_options: Mapping[str, str],
    target: GraphTexts,
    target_options: Mapping[str, str],
    *,
    name: str | None = None,
) -> TransferResult:
    """Make a graph of a backup at an empty location; the same call goes on with a part of one."""
    found = _read_latest(source) if name is None else _read_list(source, f"{name}.json")
    if found is None:
        raise BackupNotFound(str(source.root), name)
    backup = Files(source.root.uri, source_options)
    files = Files(target.root.uri, target_options)
    contents = Contents(
        found.graph_id,
        found.heads,
        frozenset(),
        tuple(
            DatasetFile(
                dataset,
                path.removeprefix(f"{dataset}/"),
                Listed(size),
                checksum_sha256(size, digest),
            )
            for path, (dataset, size, digest) in found.files.items()
        ),
        {path: _read_object(backup, digest) for path, (_, digest) in found.texts.items()},
    )
    copier = Copier(backup, files, find_source=lambda file: _object(found.files[file.path][2]))
    with clone_turn(target):
        if claim(target, files, found.graph_id):
            copier.copy_missing(contents.files, files.list())
            complete(target, files, contents)
    return copier.moved + TransferResult(commits=found.commits)


def list_backups(target: GraphTexts) -> list[str]:
    """The names of the backups at a location, the latest last."""
    names = (each for each in target.list_dir(LISTS) if each.endswith(".json"))
    return sorted(name.removesuffix(".json") for name in names)


def describe_backups(target: GraphTexts) -> list[dict[str, Any]]:
    """Name, time, commits and heads of every backup at a location, the latest last."""
    found = {name: _read_list(target, f"{name}.json") for name in list_backups(target)}
    return [
        {
            "name": name,
            "created_at": each.created_at,
            "commits": each.commits,
            "heads": dict(each.heads),
        }
        for name, each in found.items()
        if each is not None
    ]


def _read_latest(target: GraphTexts) -> BackupList | None:
    names = list_backups(target)
    return _read_list(target, f"{names[-1]}.json") if names else None


def _read_list(target: GraphTexts, name: str) -> BackupList | None:
    text = target.read_text_if_exists(f"{LISTS}/{name}")
    if text is None:
        return None
    try:
        value: dict[str, Any] = json.loads(text)
        if value.pop("checksum") != _seal(value):
            raise ValueError("its checksum does not match")
        return BackupList(
            value["graph"],
            value["created_at"],
            value["heads"],
            value["commits"],
            {path: (each[0], each[1], each[2]) for path, each in value["files"].items()},
            {path: (each[0], each[1]) for path, each in value["texts"].items()},
        )
    except (ValueError, TypeError, KeyError, IndexError):
        raise StorageError(
            f"'{target.root}/{LISTS}/{name}' is damaged — nothing was restored; name another "
            "backup, `omnigraph backup list` shows them"
        ) from None


def _read_object(backup: Files, digest: str) -> bytes:
    name = _object(digest)
    try:
        data = backup.read(name)
    except FileNotFoundError:
        raise DamagedFile(f"{backup.uri}/{name}", "is missing") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise DamagedFile(f"{backup.uri}/{name}", "does not have the hash it is named by")
    return data


def _object(digest: str) -> str:
    return f"{OBJECTS}/{digest[:2]}/{digest}"


def _seal(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
