"""Appended versions: of several commits that only add rows, all but the first are written by us.

Lance takes one commit per call, and each changes threads some ten times. The version after an
append is the one before it with a fragment more and a few numbers changed:

    file        [indexes] [transaction] [manifest] and where the manifest begins
    manifest    fields 1 and 2, the columns and fragments    one fragment is added
                 3 version, 7 time, 11 greatest fragment id, 12 transaction file,
                14 next row id, 23 where the transaction is   changed
                all other fields                              as they are

`Chain.begin` takes a version that Lance has just written, makes it once more from what it followed,
and goes on only if that gives the same bytes. So whatever Lance does in another way than this file
says, in a later release or for a table of another kind, is left to Lance.

The transaction is in the version itself, where Lance reads it. Lance also writes it to a file of
its own beside, which is for readers from before it was in the version; we do not.
"""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import TypeAlias

from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.dataclass import dataclass
from omnigraph.storage.lance_manifest import manifest_in, message_start
from omnigraph.storage.location import VERSIONS, TableLocation, version_file
from omnigraph.storage.protobuf import (
    LENGTH_DELIMITED,
    VARINT,
    Value,
    encode,
    encode_varint,
    measure_fields,
    read_fields,
)

_FRAGMENT = 2
_VERSION, _TIME, _MAX_FRAGMENT_ID = 3, 7, 11
_TRANSACTION_FILE, _NEXT_ROW_ID, _TRANSACTION = 12, 14, 23
_CHANGED = {_VERSION, _TIME, _MAX_FRAGMENT_ID, _TRANSACTION_FILE, _NEXT_ROW_ID, _TRANSACTION}
_HINT = f"{VERSIONS}/latest_version_hint.json"
_START_BYTES = 8
_ALL_BITS = 2**64 - 1

_Field: TypeAlias = tuple[int, int, Value]


@dataclass(frozen=True, slots=True)
class Append:
    """One commit: its transaction, and the fragments that it adds."""

    uuid: str
    properties: Mapping[str, str]
    fragments: Sequence[FragmentMetadata]

    @classmethod
    def of(
        cls, uuid: str, properties: Mapping[str, str], operation: LanceOperation.BaseOperation
    ) -> Append | None:
        """The commit of an operation; None for one that does more than add new files."""
        if not isinstance(operation, LanceOperation.Append):
            return None
        fragments = list(operation.fragments)
        is_plain = all(len(each.files) == 1 and each.deletion_file is None for each in fragments)
        return cls(uuid, properties, fragments) if fragments and is_plain else None


@dataclass(frozen=True, slots=True)
class AppendedVersion:
    """A version that was written: its number, and the bytes of its files below the lineage."""

    version: int
    files: Mapping[str, bytes]


@dataclass(slots=True)
class Chain:
    """A version, in the parts that the next one is made of."""

    location: TableLocation
    indexes: bytes
    rows: bytes
    """The columns and the fragments."""
    others: Sequence[tuple[int, bytes]]
    """The other fields that stay as they are: number and bytes."""
    footer: bytes
    version: int
    fragment_id: int
    """That of the next fragment."""
    row_id: int
    """That of the next row."""

    @classmethod
    def begin(cls, location: TableLocation, version: int, made_by: Append) -> Chain | None:
        """Go on from a version that Lance has made of an append; None if we would make another."""
        with open(f"{location.physical_uri}/{version_file(version)}", "rb") as file:
            written = file.read()
        with suppress(ValueError, KeyError):
            chain, nanoseconds = _undo(location, written, made_by)
            if chain.version + 1 == version:
                again = chain._extend(made_by, nanoseconds)
                return chain if again == written else None
        return None

    def append(self, added: Append) -> AppendedVersion:
        """Write the next version.

        Raises:
            FileExistsError: There is one of this number. Nothing was committed.
        """
        written = self._extend(added, time.time_ns())
        name = version_file(self.version)
        _write_whole(f"{self.location.physical_uri}/{name}", written)
        return AppendedVersion(self.version, {name: written})

    def point_to_latest(self) -> None:
        """Tell who looks for the latest version where to begin, as Lance does after a commit."""
        path = f"{self.location.physical_uri}/{_HINT}"
        temporary = _temporary_name(path)
        _write_new(temporary, b'{"version":%d}' % self.version)
        os.replace(temporary, path)

    def _extend(self, added: Append, nanoseconds: int) -> bytes:
        """The file of the next version; the chain then stands there."""
        files = [_encode_file(each) for each in added.fragments]
        transaction = _encode_transaction(self.version, added, files)
        self.version += 1
        for each, file in zip(added.fragments, files, strict=True):
            fragment = self._encode_fragment(file, each.physical_rows)
            self.rows += encode(_FRAGMENT, LENGTH_DELIMITED, fragment)
            self.fragment_id += 1
            self.row_id += each.physical_rows
        name = f"{self.version - 1}-{added.uuid}.txn".encode()
        changed: list[_Field] = [
            (_VERSION, VARINT, self.version),
            (_TIME, LENGTH_DELIMITED, _encode_time(nanoseconds)),
            (_MAX_FRAGMENT_ID, VARINT, self.fragment_id - 1),
            (_TRANSACTION_FILE, LENGTH_DELIMITED, name),
            (_NEXT_ROW_ID, VARINT, self.row_id),
            (_TRANSACTION, VARINT, len(self.indexes)),
        ]
        own = [(field[0], encode(*field)) for field in changed]
        fields = sorted([*self.others, *own], key=itemgetter(0))
        manifest = self.rows + b"".join(encoded for _, encoded in fields)
        before = self.indexes + _with_length(transaction)
        start = struct.pack("<Q", len(before))
        return before + _with_length(manifest) + start + self.footer

    def _encode_fragment(self, file: bytes, count: int) -> bytes:
        """What a manifest says of a new fragment: also the ids of its rows and who wrote them."""
        ids = _message((1, _message((1, _numbers((1, self.row_id), (2, self.row_id + count))))))
        span = _message((1, _numbers((2, count))))
        versions = _message((1, _message((1, span)) + _numbers((2, self.version))))
        number = _numbers((1, self.fragment_id))
        return number + file + _message((5, ids), (7, versions), (9, versions))


def _undo(location: TableLocation, written: bytes, made_by: Append) -> tuple[Chain, int]:
    """The version that an append followed, by the file of the one it made, and its time.

    Raises:
        ValueError, KeyError: The file is of another form.
    """
    manifest = manifest_in(written)
    start = message_start(written)
    ends, last = [0], 0
    for number, length in measure_fields(manifest):
        if number > _FRAGMENT:
            break
        last += length
        ends.append(last)
    others = [
        (field[0], encode(*field))
        for field in read_fields(manifest[last:])
        if field[0] not in _CHANGED
    ]
    facts = {number: value for number, _, value in read_fields(manifest[last:])}
    section = facts[_TRANSACTION]
    version, fragment_id, row_id = (
        facts[each] for each in (_VERSION, _MAX_FRAGMENT_ID, _NEXT_ROW_ID)
    )
    made = facts[_TIME]
    if not (
        isinstance(section, int)
        and isinstance(version, int)
        and isinstance(fragment_id, int)
        and isinstance(row_id, int)
        and isinstance(made, bytes)
        and start is not None
        and len(ends) > len(made_by.fragments)
    ):
        raise ValueError("its fields are of other types")
    chain = Chain(
        location,
        indexes=written[:section],
        rows=manifest[: ends[-1 - len(made_by.fragments)]],
        others=others,
        footer=written[start + len(manifest) + _START_BYTES :],
        version=version - 1,
        fragment_id=fragment_id + 1 - len(made_by.fragments),
        row_id=row_id - sum(each.physical_rows for each in made_by.fragments),
    )
    times = {number: value for number, _, value in read_fields(made)}
    seconds, nanos = times.get(1, 0), times.get(2, 0)
    assert isinstance(seconds, int)
    assert isinstance(nanos, int)
    return chain, seconds * 1_000_000_000 + nanos


def _encode_transaction(read_version: int, added: Append, files: Sequence[bytes]) -> bytes:
    properties = [
        _message((4, _message((1, key.encode()), (2, value.encode()))))
        for key, value in added.properties.items()
    ]
    fragments = b"".join(_message((1, file)) for file in files)
    head = _numbers((1, read_version)) + _message((2, added.uuid.encode()))
    return head + b"".join(properties) + _message((100, fragments))


def _encode_file(added: FragmentMetadata) -> bytes:
    """The data file of a fragment, and how many rows it has."""
    (file,) = added.files
    content = (
        _message((1, file._path.encode()))  # `path` makes a class each time, for old callers
        + _message((2, _pack(file.fields)), (3, _pack(file.column_indices)))
        + _numbers((4, file.file_major_version), (5, file.file_minor_version))
        + _numbers((6, file.file_size_bytes or 0))
    )
    return _message((2, content)) + _numbers((4, added.physical_rows))


def _encode_time(nanoseconds: int) -> bytes:
    seconds, nanos = divmod(nanoseconds, 1_000_000_000)
    return _numbers((1, seconds), (2, nanos))


def _message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(encode(number, LENGTH_DELIMITED, value) for number, value in fields)


def _numbers(*fields: tuple[int, int]) -> bytes:
    """Numbers that are left out when they are zero."""
    return b"".join(encode(number, VARINT, value) for number, value in fields if value)


def _pack(values: Sequence[int]) -> bytes:
    return b"".join(encode_varint(value & _ALL_BITS) for value in values)


def _with_length(message: bytes) -> bytes:
    return struct.pack("<I", len(message)) + message


def _write_whole(path: str, content: bytes) -> None:
    """Give a file its name when it is whole; FileExistsError when the name is taken."""
    temporary = _temporary_name(path)
    _write_new(temporary, content)
    try:
        os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _write_new(path: str, content: bytes) -> None:
    with open(path, "xb", buffering=0) as file:
        file.write(content)


def _temporary_name(path: str) -> str:
    return f"{path}#{secrets.randbelow(10**18)}"  # Lance names its own like this, and lists none
