"""Lance manifests as bytes: the few fields that pylance does not show, or cannot change.

A version of a dataset is one protobuf message. Only top-level fields, the fields of the schema,
the ids and row ids of fragments and the base paths are read here; everything else is passed through
byte by byte. `LanceDataset` takes changed bytes as `serialized_manifest`: the files stay as they
are, only this handle differs.

    field  1  the schema: one message per column      2 name, 3 id, 4 parent id
    field  2  the fragments in scan order             1 id, 4 rows in its files, 5 their row ids
    field 11  the greatest fragment id ever used
    field 12  the transaction file, `<read version>-<uuid>.txn`
    field 18  base paths: where files of a fork's origin lie      1 id, 2 branch, 4 path (absolute)

A version file is [earlier sections][u32 length][message][u64 offset][u16 major][u16 minor]["LANC"].
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from omnigraph.dataclass import dataclass
from omnigraph.storage.protobuf import Value, read_fields, rewrite

if TYPE_CHECKING:
    from lance import LanceDataset

_FIELD, _FRAGMENT, _MAX_FRAGMENT_ID, _TRANSACTION_FILE, _BASE_PATH = 1, 2, 11, 12, 18
_FRAGMENT_ID, _FRAGMENT_ROWS, _FRAGMENT_ROW_IDS = 1, 4, 5
_FIELD_NAME, _FIELD_ID, _FIELD_PARENT = 2, 3, 4
_BASE_PATH_NAME, _BASE_PATH_PATH = 2, 4
_FOOTER_BYTES = 16
MAGIC = b"LANC"
"""How every file of Lance ends."""
_TOP_LEVEL = 2**64 - 1
"""How protobuf spells the parent id -1: the column is not inside another one."""


def manifest_bytes(dataset: LanceDataset) -> bytes:
    """The manifest of an open version."""
    return bytes(dataset._ds.serialized_manifest())


def fragment_messages(dataset: LanceDataset) -> list[bytes]:
    """All that the manifest of an open version says of each fragment, in scan order."""
    fields = _fields(manifest_bytes(dataset))
    return [each for number, each in fields if number == _FRAGMENT and isinstance(each, bytes)]


def fragment_id_in(message: bytes) -> int:
    """The id of the fragment that a message of a manifest is about; that of the first is absent."""
    value = dict(_fields(message)).get(_FRAGMENT_ID, 0)
    assert isinstance(value, int)
    return value


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """How many rows the files of a fragment have, and the sequence of their row ids; see `row_ids`.

    The sequence is empty where Lance keeps it in a file of its own.
    """

    fragment_id: int
    rows: int
    row_ids: bytes


def recorded_rows(message: bytes) -> RecordedRows:
    """What a message of a manifest says of the rows of a fragment."""
    facts = dict(_fields(message))
    fragment_id, rows = facts.get(_FRAGMENT_ID, 0), facts.get(_FRAGMENT_ROWS, 0)
    row_ids = facts.get(_FRAGMENT_ROW_IDS, b"")
    assert isinstance(fragment_id, int)
    assert isinstance(rows, int)
    assert isinstance(row_ids, bytes)
    return RecordedRows(fragment_id, rows, row_ids)


def max_fragment_id(dataset: LanceDataset) -> int:
    """The greatest fragment id this lineage ever used; -1 when it used none.

    Fragment ids must never be used twice: index coverage and cached row ids go by them.
    """
    value = dict(_fields(manifest_bytes(dataset))).get(_MAX_FRAGMENT_ID, -1)
    assert isinstance(value, int)
    return value


def transaction_file(dataset: LanceDataset) -> str | None:
    """The name of the file that holds the transaction of this version: `<base>-<uuid>.txn`."""
    return find_transaction_file(manifest_bytes(dataset))


def find_transaction_file(manifest: bytes) -> str | None:
    """The same, by the bytes of a manifest."""
    name = dict(_fields(manifest)).get(_TRANSACTION_FILE)
    return name.decode() if isinstance(name, bytes) else None


def is_made_by(dataset: LanceDataset, read_version: int, uuid: str) -> bool:
    """Whether this transaction made the version: its name is looked for, nothing is parsed."""
    name = f"{read_version}-{uuid}.txn".encode()
    return bytes([_TRANSACTION_FILE << 3 | 2, len(name)]) + name in manifest_bytes(dataset)


def transaction_uuid(dataset: LanceDataset) -> str | None:
    """The UUID of the transaction that made this version."""
    return find_transaction_uuid(manifest_bytes(dataset))


def find_transaction_uuid(manifest: bytes) -> str | None:
    """The same, by the bytes of a manifest."""
    name = find_transaction_file(manifest)
    return None if name is None else name.removesuffix(".txn").partition("-")[2] or None


def rename_in_manifest(manifest: bytes, names: Mapping[str, str]) -> bytes:
    """Give top-level columns other names (old → new); their data stays where it is."""

    def edit(number: int, value: Value) -> Value:
        if number != _FIELD or not isinstance(value, bytes):
            return value
        facts = dict(_fields(value))
        name = facts[_FIELD_NAME]
        assert isinstance(name, bytes)
        if facts.get(_FIELD_PARENT, 0) != _TOP_LEVEL or name.decode() not in names:
            return value
        new = names[name.decode()].encode()
        return rewrite(value, lambda each, old: new if each == _FIELD_NAME else old)

    return rewrite(manifest, edit)


def list_bases(manifest: bytes) -> list[tuple[str | None, str]]:
    """Where a fork finds the files it shares with its origins: (branch, path), None for main."""
    found = []
    for number, value in _fields(manifest):
        if number != _BASE_PATH:
            continue
        facts = dict(_fields(value))
        name, path = facts.get(_BASE_PATH_NAME), facts.get(_BASE_PATH_PATH)
        if isinstance(path, bytes):
            found.append((name.decode() if isinstance(name, bytes) else None, path.decode()))
    return found


def replace_base_paths(manifest: bytes, paths: Mapping[str, str]) -> bytes:
    """Point base paths elsewhere (old → new)."""

    def relocate(number: int, path: Value) -> Value:
        if number != _BASE_PATH_PATH or not isinstance(path, bytes):
            return path
        return paths.get(path.decode(), path.decode()).encode()

    def edit(number: int, value: Value) -> Value:
        if number != _BASE_PATH or not isinstance(value, bytes):
            return value
        return rewrite(value, relocate)

    return rewrite(manifest, edit)


def manifest_in(version_file: bytes) -> bytes:
    """The manifest that a version file holds.

    Raises:
        ValueError: The file is not a version of a Lance dataset.
    """
    start, length = _message_span(version_file)
    return version_file[start : start + length]


def with_manifest(version_file: bytes, manifest: bytes) -> bytes:
    """The same version file with another manifest; the sections before it stay where they are."""
    start, _ = _message_span(version_file)
    head = version_file[: start - 4]
    return head + struct.pack("<I", len(manifest)) + manifest + version_file[-_FOOTER_BYTES:]


def message_start(version_file: bytes) -> int | None:
    """Where the manifest lies in a version file; None when the file does not fit together.

    The magic at its end is not looked at: one wrong byte there is damage, and not a cut.
    """
    try:
        return _message_span(version_file[:-4] + MAGIC)[0]
    except ValueError:
        return None


def _message_span(version_file: bytes) -> tuple[int, int]:
    if len(version_file) < _FOOTER_BYTES + 4 or version_file[-4:] != MAGIC:
        raise ValueError("not a version of a Lance dataset")
    (offset,) = struct.unpack("<Q", version_file[-_FOOTER_BYTES : -_FOOTER_BYTES + 8])
    if offset + 4 > len(version_file) - _FOOTER_BYTES:
        raise ValueError("its manifest lies past its end")
    (length,) = struct.unpack("<I", version_file[offset : offset + 4])
    if offset + 4 + length != len(version_file) - _FOOTER_BYTES:
        raise ValueError("its manifest has another length than it says")
    return offset + 4, length


def _fields(message: Value) -> Iterator[tuple[int, Value]]:
    for number, _, value in read_fields(message):
        yield number, value
