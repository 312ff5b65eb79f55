"""Checksums: what a file was when it was written, in a few bytes.

CRC-32 of the standard library: it never misses one flipped byte, nor any damage within four bytes
in a row, and misses other damage once in 2^32 times. It runs at about 3 GB/s,
which is what a write can afford. It detects damage, not tampering: a writer of the file can change
its record too.

    crc32:8d1f00aa     of the bytes, read back right after the write, from the page cache
    sha256:9f86d081…   of the bytes, by which a backup stores them
    etag:9e107d9d…     what an object store says an object is; reading it back would cost a download

A version file of a fork holds the absolute path of the table it came from. Its checksum is taken
with that path cut down to what is below the table, so that it stays right when a graph moves.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.storage.lance_manifest import (
    list_bases,
    manifest_in,
    replace_base_paths,
    with_manifest,
)
from omnigraph.storage.location import VERSIONS

CHUNK_BYTES = 1 << 20
_CRC, _ETAG, _SHA256 = "crc32:", "etag:", "sha256:"


@dataclass(frozen=True, slots=True)
class Checksum:
    """The size of a file in bytes, and a digest of its content that names its own kind."""

    size: int
    digest: str

    def to_json(self) -> list[Any]:
        return [self.size, self.digest]

    @property
    def etag(self) -> str | None:
        """What an object store said the object is, if that is what was recorded."""
        return self.digest.removeprefix(_ETAG) if self.digest.startswith(_ETAG) else None

    @property
    def sha256(self) -> str | None:
        """The hash by which a backup stores the file."""
        return self.digest.removeprefix(_SHA256) if self.digest.startswith(_SHA256) else None


Chunk: TypeAlias = bytes | memoryview
Checksums: TypeAlias = Mapping[str, Checksum]
"""Path of a file → its checksum. Paths are relative to the dataset, forks included."""


def checksum_from_json(value: Any) -> Checksum:
    """Read what `Checksum.to_json` made.

    Raises:
        ValueError: It is something else.
    """
    match value:
        case [int(size), str(digest)]:
            return Checksum(size, digest)
        case _:
            raise ValueError("not a checksum")


def checksum_etag(size: int, etag: str) -> Checksum:
    """What an object store says of an object."""
    return Checksum(size, f"{_ETAG}{etag.strip(chr(34))}")


def checksum_sha256(size: int, digest: str) -> Checksum:
    """What a backup says of a file."""
    return Checksum(size, f"{_SHA256}{digest}")


def checksum_file(dataset: str, relative: str) -> Checksum:
    """The checksum of a local file below a dataset, in constant memory."""
    return checksum_chunks(read_chunks(f"{dataset}/{relative}"), dataset, relative)


def checksum_files(paths: Iterable[str], dataset: str) -> dict[str, Checksum]:
    """The checksums of local files below a dataset; directories among the paths are left out."""
    found: dict[str, Checksum] = {}
    for path in dict.fromkeys(paths):
        relative = path[len(dataset) + 1 :]
        with suppress(IsADirectoryError, FileNotFoundError):
            found[relative] = checksum_file(dataset, relative)
    return found


def checksum_chunks(chunks: Iterable[Chunk], dataset: str, relative: str) -> Checksum:
    """The checksum of a file that is given as its bytes, chunk by chunk."""
    if is_fork_version(relative):
        chunks = [canonical_version(join_chunks(chunks), dataset)]
    crc = size = 0
    for chunk in chunks:
        crc, size = zlib.crc32(chunk, crc), size + len(chunk)
    return Checksum(size, f"{_CRC}{crc:08x}")


def is_fork_version(relative: str) -> bool:
    """Whether this is a version file of a fork: the only files that name absolute paths."""
    return relative.startswith("tree/") and f"/{VERSIONS}/" in relative


def canonical_version(data: bytes, dataset: str) -> bytes:
    """A version file whose base paths say only where they lie within the dataset.

    Bytes that are no version file are given back as they are: they match no record.
    """
    name = dataset.rpartition("/")[2]
    try:
        manifest = manifest_in(data)
        paths = {each: _path_within(each, name) for _, each in list_bases(manifest)}
        return with_manifest(data, replace_base_paths(manifest, paths)) if paths else data
    except (ValueError, IndexError, AssertionError):
        return data


def foreign_bases(data: bytes, dataset: str) -> list[str]:
    """The base paths in a version file of a fork that are not of the dataset it is in."""
    try:
        bases = [path for _, path in list_bases(manifest_in(data))]
    except (ValueError, IndexError, AssertionError):
        return []
    return [each for each in bases if each != dataset and not each.startswith(f"{dataset}/tree/")]


def read_chunks(path: str) -> Iterator[Chunk]:
    """The bytes of a local file. Each chunk is overwritten by the next."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= CHUNK_BYTES:
            yield file.read()
            return
        buffer = bytearray(CHUNK_BYTES)
        view = memoryview(buffer)
        while count := file.readinto(buffer):
            yield view[:count]


def join_chunks(chunks: Iterable[Chunk]) -> bytes:
    """All bytes of a file; each chunk is copied before the next one overwrites it."""
    return b"".join(map(bytes, chunks))


def _path_within(path: str, name: str) -> str:
    """The part of a path from the directory `name` on; all of it when that is not in it."""
    head, found, tail = path.rpartition(f"/{name}")
    return f"{found}{tail}" if found and tail[:1] in ("", "/") else head + found + tail
