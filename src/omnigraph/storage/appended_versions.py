"""Appended versions: of commits that only add rows, all but the first are written by us.

Lance takes one commit per call, and each changes threads some ten times. The version after an
append is the one before it with a fragment more and a few numbers changed; a publish also removes
a row of the fragment before, which then has a deletion file:

    file        [indexes] [transaction] [manifest] and where the manifest begins
    manifest    fields 1 and 2, the columns and fragments    one fragment is added
                 3 version, 7 time, 11 greatest fragment id, 12 transaction file,
                14 next row id, 23 where the transaction is   changed
                all other fields                              as they are

`Chain.begin` takes a version that Lance has just written, makes it once more from what it followed,
and goes on only if that gives the same bytes. So whatever Lance does in another way than this file
says, in a later release or for a table of another kind, is left to Lance. `Chains` keeps where the
tables stand that were written to last, so that most inserts go on from the one before.

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

from lance import LanceDataset
from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.dataclass import dataclass
from omnigraph.lru import Lru
from omnigraph.storage.lance_manifest import fragment_id_in, is_made_by, manifest_in, message_start
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

_FRAGMENT, _DELETIONS = 2, 3
_APPEND, _UPDATE = 100, 108
_VERSION, _TIME, _MAX_FRAGMENT_ID = 3, 7, 11
_TRANSACTION_FILE, _NEXT_ROW_ID, _TRANSACTION = 12, 14, 23
_CHANGED = {_VERSION, _TIME, _MAX_FRAGMENT_ID, _TRANSACTION_FILE, _NEXT_ROW_ID, _TRANSACTION}
_HINT = f"{VERSIONS}/latest_version_hint.json"
_HINT_EVERY_VERSIONS = 16
"""Who commits next looks on from there, one version after the other."""
_CHAINS_MAX = 32
VERSION_BYTES_MAX = 256 * 1024
"""A longer version is worth following for several commits at once, and not for each by itself."""
_START_BYTES = 8
_ALL_BITS = 2**64 - 1

_Field: TypeAlias = tuple[int, int, Value]


@dataclass(frozen=True, slots=True)
class Append:
    """One commit: its transaction, the fragments that it adds, and one in which it removes rows."""

    uuid: str
    properties: Mapping[str, str]
    fragments: Sequence[FragmentMetadata]
    thinned: FragmentMetadata | None = None

    @classmethod
    def of(
        cls, uuid: str, properties: Mapping[str, str], operation: LanceOperation.BaseOperation
    ) -> Append | None:
        """The commit of an operation; None for one that does more than add new files."""
        if not isinstance(operation, LanceOperation.Append):
            return None
        fragments = list(operation.fragments)
        is_plain = all(map(_is_plain, fragments))
        return cls(uuid, properties, fragments) if fragments and is_plain else None

    @classmethod
    def of_replacement(cls, uuid: str, operation: LanceOperation.Update) -> Append | None:
        """The commit of new rows in place of some of one fragment, in a table without indexes."""
        fragments, thinned = list(operation.new_fragments), list(operation.updated_fragments)
        is_plain = fragments and all(map(_is_plain, fragments))
        if not is_plain or len(thinned) != 1 or operation.removed_fragment_ids:
            return None
        return cls(uuid, {}, fragments, thinned[0])


def _is_plain(fragment: FragmentMetadata) -> bool:
    """Whether a fragment is one file of this lineage, all of whose rows are new."""
    return (
        len(fragment.files) == 1
        and fragment.files[0].base_id is None
        and fragment.deletion_file is None
        and fragment.row_id_meta is None
        and not fragment.overlays
    )


@dataclass(frozen=True, slots=True)
class AppendedVersion:
    """A version that was written: its number and rows, the bytes of its files by their names."""

    version: int
    row_count: int
    files: Mapping[str, bytes]


@dataclass(slots=True)
class Chain:
    """A version, in the parts that the next one is made of."""

    location: TableLocation
    indexes: bytes
    columns: bytes
    fragments: list[bytes]
    """Each with the key of its field."""
    others: Sequence[tuple[int, bytes]]
    """The other fields that stay as they are: number and bytes."""
    footer: bytes
    version: int
    fragment_id: int
    """That of the next fragment."""
    row_id: int
    """That of the next row."""
    uuid: str = ""
    """The transaction that made the version."""
    row_count: int = 0
    """The rows of the version, as the caller knows it."""
    size: int = 0
    """The length of its file."""

    @classmethod
    def begin(
        cls, location: TableLocation, version: int, made_by: Append, row_count: int = 0
    ) -> Chain | None:
        """Go on from a version that Lance has made of an append; None if we would make another."""
        # The version is committed: nothing that is met here may fail it.
        with suppress(OSError, ValueError, KeyError):
            with open(f"{location.physical_uri}/{version_file(version)}", "rb") as file:
                written = file.read()
            chain, nanoseconds = _undo(location, written, made_by)
            if chain.version + 1 == version and chain._extend(made_by, nanoseconds) == written:
                chain.row_count = row_count
                return chain
        return None

    def follows(self, dataset: LanceDataset) -> bool:
        """Whether the chain stands at this version: also a number can be used again."""
        is_same = self.version == dataset.version
        return is_same and is_made_by(dataset, self.version - 1, self.uuid)

    def can_take(self, added: Append) -> bool:
        """Whether a commit removes rows of no fragment but the last."""
        return added.thinned is None or added.thinned.id == fragment_id_in(self._last_fragment)

    def append(self, added: Append) -> AppendedVersion:
        """Write the next version.

        Raises:
            FileExistsError: There is one of this number. Nothing was committed.
        """
        written = self._extend(added, time.time_ns())
        name = version_file(self.version)
        _write_whole(f"{self.location.physical_uri}/{name}", written)
        if self.version % _HINT_EVERY_VERSIONS == 0:
            with suppress(OSError):  # the version is there, and found without it
                self._point_to_latest()
        return AppendedVersion(self.version, self.row_count, {name: written})

    def _point_to_latest(self) -> None:
        """Tell who looks for the latest version where to begin, as Lance does after a commit."""
        path = f"{self.location.physical_uri}/{_HINT}"
        temporary = _temporary_name(path)
        _write_new(temporary, b'{"version":%d}' % self.version)
        os.replace(temporary, path)

    def _extend(self, added: Append, nanoseconds: int) -> bytes:
        """The file of the next version; the chain then stands there."""
        files = [_encode_file(each) for each in added.fragments]
        thinned = None if added.thinned is None else self._thin_last(added.thinned)
        transaction = _encode_transaction(self.version, added, files, thinned)
        self.version += 1
        self.uuid = added.uuid
        for each, file in zip(added.fragments, files, strict=True):
            fragment = self._encode_fragment(file, each.physical_rows)
            self.fragments.append(encode(_FRAGMENT, LENGTH_DELIMITED, fragment))
            self.fragment_id += 1
            self.row_id += each.physical_rows
            self.row_count += each.physical_rows
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
        manifest = b"".join([self.columns, *self.fragments, *(encoded for _, encoded in fields)])
        before = self.indexes + _with_length(transaction)
        start = struct.pack("<Q", len(before))
        written = before + _with_length(manifest) + start + self.footer
        self.size = len(written)
        return written

    @property
    def _last_fragment(self) -> bytes:
        ((_, _, message),) = read_fields(self.fragments[-1])
        assert isinstance(message, bytes)
        return message

    def _thin_last(self, thinned: FragmentMetadata) -> bytes:
        """Give the last fragment the deletion file of `thinned`; returns what it is then."""
        before = self._last_fragment
        if thinned.id != fragment_id_in(before):
            raise ValueError("rows of another fragment are removed")
        fields: list[_Field] = [each for each in read_fields(before) if each[0] != _DELETIONS]
        fields.append((_DELETIONS, LENGTH_DELIMITED, _encode_deletions(thinned)))
        message = b"".join(encode(*each) for each in sorted(fields, key=itemgetter(0)))
        self.fragments[-1] = encode(_FRAGMENT, LENGTH_DELIMITED, message)
        return message

    def _encode_fragment(self, file: bytes, count: int) -> bytes:
        """What a manifest says of a new fragment: also the ids of its rows and who wrote them."""
        ids = _message((1, _message((1, _numbers((1, self.row_id), (2, self.row_id + count))))))
        span = _message((1, _numbers((2, count))))
        versions = _message((1, _message((1, span)) + _numbers((2, self.version))))
        number = _numbers((1, self.fragment_id))
        return number + file + _message((5, ids), (7, versions), (9, versions))


class Chains:
    """The tables that were appended to last, and where each stands. Thread-safe."""

    def __init__(self) -> None:
        self._known = Lru[str, Chain](_CHAINS_MAX)

    def take(self, location: TableLocation) -> Chain | None:
        """What is known of a table: each commit keeps what it is then."""
        return self._known.pop(str(location))

    def keep(self, chain: Chain | None) -> None:
        if chain is not None and chain.size <= VERSION_BYTES_MAX:
            self._known.put(str(chain.location), chain)


def _undo(location: TableLocation, written: bytes, made_by: Append) -> tuple[Chain, int]:
    """The version that an append followed, by the file of the one it made, and its time.

    Raises:
        ValueError, KeyError: The file is of another form.
    """
    manifest = manifest_in(written)
    start = message_start(written)
    fragments, columns, last = list[bytes](), 0, 0
    for number, length in measure_fields(manifest):
        if number > _FRAGMENT:
            break
        if number == _FRAGMENT:
            fragments.append(manifest[last : last + length])
        last += length
        columns += length if number < _FRAGMENT else 0
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
        and len(fragments) >= len(made_by.fragments) + (made_by.thinned is not None)
    ):
        raise ValueError("its fields are of other types")
    chain = Chain(
        location,
        indexes=written[:section],
        columns=manifest[:columns],
        fragments=fragments[: len(fragments) - len(made_by.fragments)],
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


def _encode_transaction(
    read_version: int, added: Append, files: Sequence[bytes], thinned: bytes | None
) -> bytes:
    properties = [
        _message((4, _message((1, key.encode()), (2, value.encode()))))
        for key, value in added.properties.items()
    ]
    if thinned is None:
        operation = _message((_APPEND, _message(*((1, file) for file in files))))
    else:
        operation = _message((_UPDATE, _message((2, thinned), *((3, file) for file in files))))
    head = _numbers((1, read_version)) + _message((2, added.uuid.encode()))
    return head + b"".join(properties) + operation


def _encode_deletions(thinned: FragmentMetadata) -> bytes:
    """The deletion file of a fragment, of the kind that few deletions have."""
    facts = thinned.to_json()["deletion_file"]
    if facts is None or facts["file_type"] != "array" or facts.get("base_id") is not None:
        raise ValueError("its deletions are in a file of another kind")
    return _numbers((2, facts["read_version"]), (3, facts["id"]), (4, facts["num_deleted_rows"]))


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
        with suppress(OSError):  # the version is there, or there is an error to tell already
            os.unlink(temporary)


def _write_new(path: str, content: bytes) -> None:
    with open(path, "xb", buffering=0) as file:
        file.write(content)


def _temporary_name(path: str) -> str:
    return f"{path}#{secrets.randbelow(10**18)}"  # Lance names its own like this, and lists none
