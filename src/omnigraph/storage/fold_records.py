"""Fold records: after a clean-up the records of a lineage are one, about files that are there.

Records of a write that a power cut has interrupted are dropped when its version is quarantined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from omnigraph.storage.checksum_records import (
    CLEANING,
    DIRECTORY,
    LOG,
    decode_records,
    encode_record,
    fold_records,
)
from omnigraph.storage.durability import Durability
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.listing import Files
from omnigraph.storage.location import TableLocation
from omnigraph.storage.recorder import wait_for_records
from omnigraph.storage.torn import TornFile


@contextmanager
def folding_records(location: TableLocation, options: Mapping[str, str]) -> Iterator[None]:
    """Remove files in the block; a mark covers it until the records are updated.

    Without the mark a clean-up that died would look like files that were lost. The caller holds
    the writer queue of the table.
    """
    wait_for_records()
    files = Files(location.uri, options)
    directory = f"{location.prefix}{DIRECTORY}"
    with lance_errors("marking a clean-up", location):
        files.write(f"{directory}/{CLEANING}", b"")
    yield
    with lance_errors("folding the checksums of a table", location):
        _fold(files, directory)
        files.remove([f"{directory}/{CLEANING}"])


def _fold(files: Files, directory: str) -> None:
    listed = files.list()
    logs = [each for each in listed if each.rpartition("/")[0] == directory and each[-4:] == ".log"]
    records = [found for each in logs for found in decode_records(files.read(each)).records]
    line = encode_record(fold_records(records, listed))
    if files.is_local:
        files.write(f"{directory}/{LOG}", line)
        return
    files.write(f"{directory}/folded-{uuid4().hex}.log", line)
    files.remove(logs)


def quarantine_torn(torn: Collection[TornFile], durability: Durability) -> list[str]:
    """Quarantine torn files without their records; returns where the files are now."""
    for each in torn:
        if each.location is not None:
            _forget_records(each.location, each.version)
    return [each.quarantine(durability) for each in torn]


def _forget_records(location: TableLocation, version: int) -> None:
    """Drop what was recorded of a version, and of later ones, that were never acknowledged."""
    files = Files(location.uri, {})
    log = f"{location.prefix}{DIRECTORY}/{LOG}"
    with lance_errors("dropping the checksums of a torn version", location):
        if log not in files.list():
            return
        kept = [each for each in decode_records(files.read(log)).records if each.version < version]
        files.write(log, b"".join(map(encode_record, kept)))
