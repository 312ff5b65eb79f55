"""Sealed files: named arrays in one file that is mapped, and checked where it is read.

A mapped array is not decoded, so a flipped bit in it would be a wrong answer. Each block of the
file therefore has a checksum, which is compared when the block is first read: a large file costs
what is read of it, and nothing that was not checked is ever used.

    magic · length of the header · header (JSON) · its checksum · arrays, each at a multiple of 64

The header has the format, facts of the caller, where each array lies, and the checksums. A file is
written whole under another name and then renamed: it is there, or it is not.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.index.arrays import AnyArray

BLOCK_BYTES = 1 << 16
_MAGIC = b"omni\x01seal"
_ALIGNMENT = 64
_LENGTH = struct.Struct("<9sQ")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES_MAX = 1 << 28


class Damaged(Exception):
    """A sealed file that is not as it was written. What it held is derived anew."""

    def __init__(self, path: str) -> None:
        super().__init__(f"'{path}' is not as it was written")
        self.path = path


class Section:
    """An array in memory, or one of a sealed file, of which what is read is checked first."""

    __slots__ = ("_array", "_blocks", "_first")

    def __init__(self, array: AnyArray, blocks: _Blocks | None = None, first: int = 0) -> None:
        self._array = array
        self._blocks = blocks
        self._first = first

    def __len__(self) -> int:
        return len(self._array)

    @property
    def nbytes(self) -> int:
        """The bytes it holds in memory; mapped ones are the system's to take back."""
        return 0 if self._blocks is not None else int(self._array.nbytes)

    def all(self) -> AnyArray:
        return self.run(0, len(self._array))

    def run(self, start: int, stop: int) -> AnyArray:
        """The values from `start` to `stop`."""
        if self._blocks is not None and self._blocks.left and start < stop:
            width = self._array.itemsize
            self._blocks.check(self._first + start * width, self._first + stop * width)
        return self._array[start:stop]

    def at(self, places: AnyArray) -> AnyArray:
        """The values at these places."""
        if self._blocks is not None and self._blocks.left and len(places):
            width = self._array.itemsize
            if len(places) * BLOCK_BYTES >= len(self._array) * width:
                self._blocks.check(self._first, self._first + len(self._array) * width)
            else:
                self._blocks.check_at(self._first + places.astype(np.int64) * width)
        return self._array[places]


class _Blocks:
    """The blocks of one mapped file, which of them have been checked, and how many are left."""

    def __init__(self, path: str, body: memoryview, checksums: AnyArray) -> None:
        self._path = path
        self._body = body
        self._checksums = checksums
        self._is_checked = np.zeros(len(checksums), dtype=bool)
        self.left = len(checksums)

    def check(self, start: int, stop: int) -> None:
        """Check the blocks from byte `start` to byte `stop` that have not been checked."""
        first, last = start // BLOCK_BYTES, (stop - 1) // BLOCK_BYTES
        if first == last:
            if not self._is_checked[first]:
                self._check(first)
        elif not self._is_checked[first : last + 1].all():
            for block in np.flatnonzero(~self._is_checked[first : last + 1]).tolist():
                self._check(first + block)

    def check_at(self, starts: AnyArray) -> None:
        """Check the blocks of these bytes that have not been checked."""
        blocks = starts // BLOCK_BYTES
        left = blocks[~self._is_checked[blocks]]
        for block in np.unique(left).tolist():
            self._check(block)

    def count_checked(self) -> int:
        return len(self._is_checked) - self.left

    def _check(self, block: int) -> None:
        data = self._body[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES]
        if zlib.crc32(data) != self._checksums[block]:
            raise Damaged(self._path)
        self._is_checked[block] = True
        # Counted anew: two threads may check one block.
        self.left = int(np.count_nonzero(~self._is_checked))


class SealedFile:
    """A mapped file: the facts its writer gave it, and its arrays."""

    def __init__(self, path: Path) -> None:
        self.path = path
        header, start, body = _open(path)
        try:
            self.facts: dict[str, Any] = header["facts"]
            checksums = np.array(header["checksums"], dtype=np.uint32)
            blocks = self._blocks = _Blocks(str(path), body, checksums)
            places = [(name, np.dtype(kind), *at) for name, kind, *at in header["arrays"]]
            size = max([0, *(first + kind.itemsize * count for _, kind, first, count in places)])
            if size != len(body) or len(checksums) != -(-size // BLOCK_BYTES):
                raise Damaged(str(path))
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(str(path)) from error
        self.sections = {
            name: Section(np.frombuffer(body, kind, count, first), blocks, first)
            for name, kind, first, count in places
        }
        self.nbytes = start + size

    @property
    def blocks_checked(self) -> int:
        """How many blocks were read so far."""
        return self._blocks.count_checked()

    def check(self) -> None:
        """Read and check every array.

        Raises:
            Damaged: One of them is not as it was written.
        """
        for section in self.sections.values():
            section.all()


def read_facts(path: Path, kind: int) -> dict[str, Any] | None:
    """The facts of a file of this format; None when it is no such file, or damaged."""
    try:
        with path.open("rb") as file:
            facts = _read_header(file.fileno(), str(path))[0]["facts"]
        return facts if facts.get("format") == kind else None
    except (OSError, Damaged, KeyError, AttributeError):
        return None


def _read_header(descriptor: int, path: str) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays start."""
    start = os.pread(descriptor, _LENGTH.size, 0)
    if len(start) < _LENGTH.size:
        raise Damaged(path)
    magic, length = _LENGTH.unpack(start)
    if magic != _MAGIC or length > HEADER_BYTES_MAX:
        raise Damaged(path)
    text = os.pread(descriptor, length, _LENGTH.size)
    sealed = os.pread(descriptor, _CHECKSUM.size, _LENGTH.size + length)
    if len(sealed) < _CHECKSUM.size or zlib.crc32(text) != _CHECKSUM.unpack(sealed)[0]:
        raise Damaged(path)
    return json.loads(text), _align(_LENGTH.size + length + _CHECKSUM.size)


def _open(path: Path) -> tuple[dict[str, Any], int, memoryview]:
    with path.open("rb") as file:
        header, start = _read_header(file.fileno(), str(path))
        size = os.fstat(file.fileno()).st_size
        if size < start:
            raise Damaged(str(path))
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return header, start, memoryview(mapped)[start:]


def write_sealed(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Write a file, all of it or nothing; a file of that name is replaced.

    Raises:
        OSError: It cannot be written.
    """
    places: list[list[Any]] = []
    pieces: list[memoryview] = []
    size = 0
    for name, array in arrays.items():
        first = _align(size)
        pieces += [memoryview(bytes(first - size)), _bytes_of(array)]
        places.append([name, array.dtype.str, first, len(array)])
        size = first + array.nbytes
    blocks = list(_checksum_blocks(pieces))
    text = json.dumps({"facts": dict(facts), "arrays": places, "checksums": blocks}).encode()
    head = _LENGTH.pack(_MAGIC, len(text)) + text + _CHECKSUM.pack(zlib.crc32(text))
    made = path.with_name(f"{path.name}.{os.getpid()}.{id(pieces):x}.tmp")
    try:
        with made.open("wb") as file:
            file.write(head + bytes(_align(len(head)) - len(head)))
            file.writelines(pieces)
        made.replace(path)
    except OSError:
        made.unlink(missing_ok=True)
        raise


def _bytes_of(array: AnyArray) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data


def _checksum_blocks(pieces: Iterable[memoryview]) -> Iterator[int]:
    """The checksum of each block of what the pieces are one after the other."""
    checksum, left = 0, BLOCK_BYTES
    for piece in pieces:
        while len(piece):
            taken, piece = piece[:left], piece[left:]
            checksum, left = zlib.crc32(taken, checksum), left - len(taken)
            if left == 0:
                yield checksum
                checksum, left = 0, BLOCK_BYTES
    if left < BLOCK_BYTES:
        yield checksum


def _align(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
