"""Checksum records: what each commit wrote, one line per commit, beside the lineage it belongs to.

    <lineage>/_checksums/files.log          on a local disk: lines are appended
    <lineage>/_checksums/<commit>.log       in an object store, which cannot append: one line each

    {"version":7,"files":{"data/x.lance":[1203,"crc32:8d1f00aa"],...}} <length> <crc of the JSON>

Lines are written without a sync of their own. What a power cut or a crash left of one (its end is
missing, or is zeros) is told from damage (its end is there and does not fit), and neither is taken
for the truth. A file without a record is not damaged: it is not recorded.

A clean-up removes files. While it works `_checksums/cleaning` says so; afterwards it folds the
records of what is left into one.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping

from omnigraph.dataclass import dataclass
from omnigraph.storage.checksums import Checksums, checksum_from_json

DIRECTORY = "_checksums"
LOG = "files.log"
CLEANING = "cleaning"

_TRAILER = re.compile(rb" (\d+) ([0-9a-f]{8})$")
_ZEROS = bytes(8)


@dataclass(frozen=True, slots=True)
class Record:
    """The files that one commit, or several folded together, wrote. `version` is the last."""

    version: int
    files: Checksums


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """What a log holds. Torn lines were never written in full; damaged ones were."""

    records: tuple[Record, ...]
    torn: int = 0
    damaged: int = 0


def encode_record(record: Record) -> bytes:
    """The line of a record."""
    files = {path: record.files[path].to_json() for path in sorted(record.files)}
    content = {"version": record.version, "files": files}
    body = json.dumps(content, separators=(",", ":")).encode()
    return b"%s %d %08x\n" % (body, len(body), zlib.crc32(body))


def decode_records(data: bytes) -> RecordsRead:
    """Read a log back, as far as it is whole."""
    records: list[Record] = []
    torn = damaged = 0
    *lines, rest = data.split(b"\n")
    starts = [rest]
    for line in lines:
        record, before = _decode_line(line)
        if record is not None:
            records.append(record)
        elif _ZEROS in line:
            torn += 1
        else:
            damaged += 1
        starts.append(before)
    for start in filter(None, starts):
        # The start of a line whose end was lost, unless only its line break is wrong.
        is_whole = _decode_line(start[:-1])[0] is not None
        torn, damaged = torn + (not is_whole), damaged + is_whole
    return RecordsRead(tuple(records), torn, damaged)


def fold_records(records: Iterable[Record], kept: Mapping[str, object]) -> Record:
    """All records as one, without the files that are not among `kept`."""
    found = sorted(records, key=lambda each: each.version)
    files = {path: value for each in found for path, value in each.files.items() if path in kept}
    return Record(max((each.version for each in found), default=0), files)


def _decode_line(line: bytes) -> tuple[Record | None, bytes]:
    """The record that a line ends in, if any, and what comes before it."""
    trailer = _TRAILER.search(line)
    if trailer is None:
        return None, b""
    length, start = int(trailer[1]), trailer.start()
    body = line[max(0, start - length) : start]
    if len(body) != length or b"%08x" % zlib.crc32(body) != trailer[2]:
        return None, b""
    content = json.loads(body)
    files = {path: checksum_from_json(value) for path, value in content["files"].items()}
    return Record(content["version"], files), line[: start - length]
