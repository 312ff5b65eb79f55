"""Placed files: which files a version of a table names, where each lies, and how to say otherwise.

A version that was made in another store names files that lie elsewhere here: some at the versions
it came from, which this store has, and the others where they were received. Everything but their
places stays as it was, the stamps of rows, row ids and fragment ids included.

    fragment   2 data files: 1 name, 7 base       3 deletions: 1 kind, 2 version, 3 id, 7 base
    index      1 uuid, 9 base
    base path  1 id, 2 branch, 3 is a dataset, 4 path

A file without a base lies on the lineage of the version itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

from omnigraph.dataclass import dataclass
from omnigraph.errors import StorageError
from omnigraph.storage.lance_manifest import manifest_in, message_start
from omnigraph.storage.location import TableLocation
from omnigraph.storage.protobuf import LENGTH_DELIMITED, VARINT, Value, encode, read_fields

_FRAGMENT, _VERSION, _AUXILIARY, _INDEXES, _READ_FLAGS, _WRITE_FLAGS = 2, 3, 4, 6, 9, 10
_BASE_PATH, _BRANCH, _TRANSACTION = 18, 20, 23
_FRAGMENT_ID, _DATA_FILE, _DELETIONS = 1, 2, 3
_EXTERNAL = (6, 8, 10)
_FILE_BASE, _INDEX_BASE = 7, 9
_HAS_BASES = 16
_FOOTER_BYTES = 16

Place = Callable[[str, str | None], str | None]
"""Path of a file below its lineage, lineage it lies on → where it lies now; None for its own."""


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A file, or the directory of an index: its path below its lineage, and that lineage."""

    path: str
    branch: str | None


def list_placed(version_file: bytes, branch: str | None) -> list[PlacedFile]:
    """Every file that a version of the lineage `branch` names.

    Raises:
        StorageError: The version names files in a way that is not known here.
    """
    found: list[PlacedFile] = []

    def note(path: str, lineage: str | None) -> str | None:
        found.append(PlacedFile(path, lineage))
        return lineage

    place_files(version_file, TableLocation("", branch), branch, note)
    return found


def place_files(
    version_file: bytes,
    location: TableLocation,
    branch: str | None,
    place: Place,
    *,
    version: int | None = None,
) -> bytes:
    """A version of the lineage `branch` as one of `location`, whose files lie where `place` says.

    With `version` it also gets another number.
    """
    manifest = manifest_in(version_file)
    bases = _read_bases(manifest)
    places: dict[str | None, int] = {}

    def move(path: str, base: int | None) -> int | None:
        lineage = branch if base is None else bases[base]
        target = place(path, lineage)
        if target == location.branch:
            return None
        return places.setdefault(target, len(places))

    fields = list(read_fields(manifest))
    fragments = [_move_fragment(v, move) for n, _, v in fields if n == _FRAGMENT]
    numbers = {n: v for n, _, v in fields if isinstance(v, int)}
    if numbers.get(_AUXILIARY):
        raise StorageError("a version has auxiliary data, which is not known here")
    sections = bytearray()
    offsets: dict[int, int] = {}
    for number in (_TRANSACTION, _INDEXES):
        if number in numbers:
            content = _read_section(version_file, numbers[number])
            content = _move_indexes(content, move) if number == _INDEXES else content
            offsets[number] = len(sections)
            sections += struct.pack("<I", len(content)) + content
    changed: dict[int, Value] = dict(offsets)
    if version is not None:
        changed[_VERSION] = version
    flag = _HAS_BASES if places else 0
    for number in (_READ_FLAGS, _WRITE_FLAGS):
        changed[number] = numbers.get(number, 0) & ~_HAS_BASES | flag
    if location.branch is not None:
        changed[_BRANCH] = location.branch.encode()
    kept = [each for each in fields if each[0] not in (*changed, _FRAGMENT, _BASE_PATH)]
    message = b"".join(
        [
            *(encode(*each) for each in kept),
            *(encode(_FRAGMENT, LENGTH_DELIMITED, each) for each in fragments),
            *(encode(n, VARINT if isinstance(v, int) else 2, v) for n, v in changed.items()),
            *(
                encode(_BASE_PATH, LENGTH_DELIMITED, _base_path(number, location, each))
                for each, number in places.items()
            ),
        ]
    )
    start = len(sections)
    footer = struct.pack("<Q", start) + version_file[-_FOOTER_BYTES + 8 :]
    return bytes(sections) + struct.pack("<I", len(message)) + message + footer


def _base_path(number: int, location: TableLocation, branch: str | None) -> bytes:
    uri = TableLocation(location.uri, branch).physical_uri
    parts = [encode(1, VARINT, number)] if number else []
    parts += [encode(2, LENGTH_DELIMITED, branch.encode())] if branch is not None else []
    return b"".join([*parts, encode(3, VARINT, 1), encode(4, LENGTH_DELIMITED, uri.encode())])


def _read_bases(manifest: bytes) -> dict[int, str | None]:
    """Base id → the lineage it stands for, None for the main one."""
    found: dict[int, str | None] = {}
    for number, _, value in read_fields(manifest):
        if number == _BASE_PATH:
            facts = {n: v for n, _, v in read_fields(value)}
            base, name = facts.get(1, 0), facts.get(2)
            assert isinstance(base, int)
            found[base] = name.decode() if isinstance(name, bytes) else None
    return found


def _move_fragment(fragment: Value, move: Callable[[str, int | None], int | None]) -> bytes:
    fields = list(read_fields(fragment))
    fragment_id = next((v for n, _, v in fields if n == _FRAGMENT_ID), 0)
    parts = []
    for number, kind, value in fields:
        if number in _EXTERNAL:
            raise StorageError("a version keeps row ids in a file of their own")
        if number == _DATA_FILE:
            name = next(v for n, _, v in read_fields(value) if n == 1)
            assert isinstance(name, bytes)
            value = _set_base(value, _FILE_BASE, move, f"data/{name.decode()}")
        elif number == _DELETIONS:
            facts = {n: v for n, _, v in read_fields(value)}
            ending = "bin" if facts.get(1) else "arrow"
            numbers = (fragment_id, facts.get(2, 0), facts.get(3, 0))
            path = f"_deletions/{'-'.join(map(str, numbers))}.{ending}"
            value = _set_base(value, _FILE_BASE, move, path)
        parts.append(encode(number, kind, value))
    return b"".join(parts)


def _move_indexes(section: bytes, move: Callable[[str, int | None], int | None]) -> bytes:
    parts = []
    for number, kind, value in read_fields(section):
        if number == 1:
            raw = next(v for n, _, v in read_fields(value) if n == 1)
            uuid = next(v for n, _, v in read_fields(raw) if n == 1)
            assert isinstance(uuid, bytes)
            value = _set_base(value, _INDEX_BASE, move, f"_indices/{UUID(bytes=uuid)}")
        parts.append(encode(number, kind, value))
    return b"".join(parts)


def _set_base(
    message: Value, field: int, move: Callable[[str, int | None], int | None], path: str
) -> bytes:
    fields = list(read_fields(message))
    base = next((v for n, _, v in fields if n == field), None)
    assert base is None or isinstance(base, int)
    placed = move(path, base)
    rest = b"".join(encode(*each) for each in fields if each[0] != field)
    return rest if placed is None else rest + encode(field, VARINT, placed)


def _read_section(version_file: bytes, offset: int) -> bytes:
    (length,) = struct.unpack("<I", version_file[offset : offset + 4])
    end = offset + 4 + length
    start = message_start(version_file)
    if start is None or end > start:
        raise StorageError("a section of a version lies past its manifest")
    return version_file[offset + 4 : end]
