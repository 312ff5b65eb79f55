"""File copy: bring a file of a graph to another store, as it was written, or not at all.

The bytes are compared with the checksum that their writer recorded before the file gets its name:
on a local disk it is written under a temporary name first, and to an object store it goes only
after it was read once. So a file that has its name is right, however the copying ended.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from omnigraph.errors import DamagedFile, SourceChanged
from omnigraph.storage.checksums import (
    Checksum,
    Chunk,
    checksum_chunks,
    checksum_etag,
    is_fork_version,
    join_chunks,
)
from omnigraph.storage.dataset_files import DatasetFile
from omnigraph.storage.durability import Durability, sync_path
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.listing import Files

_MEMORY_BYTES = 32 * 1024 * 1024
"""A file up to this size is read once, and held until it is written."""
_MD5_LENGTH = 32


def copy_file(
    source: Files,
    target: Files,
    file: DatasetFile,
    durability: Durability = "power",
    *,
    source_path: str | None = None,
    target_path: str | None = None,
) -> Checksum:
    """Copy a file to another root; returns what to record of it there.

    It has its own path on either side unless another is given. The directories above it are not
    synced.

    Raises:
        SourceChanged: The source does not have it any more.
        DamagedFile: Its bytes are not those that were written. Nothing was copied.
    """
    digest = _Digest(file, f"{source.uri}/{source_path or file.path}")

    def read() -> Iterator[Chunk]:
        return digest.watch(source.chunks(source_path or file.path))

    target_path = target_path or file.path
    if not target.is_local:
        return _upload(read, target, target_path, file, digest)
    path = f"{target.uri}/{target_path}"
    with lance_errors("copying a file", path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}#{secrets.randbelow(10**18)}"
        try:
            with open(temporary, "xb") as written:
                written.writelines(read())
            digest.check()
            if durability == "power":
                sync_path(temporary)
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
    return digest.checksum


def hash_file(source: Files, file: DatasetFile) -> str:
    """The SHA-256 of a file.

    Raises:
        SourceChanged: It is not there any more.
        DamagedFile: Its bytes are not those that were written.
    """
    digest = _Digest(file, f"{source.uri}/{file.path}")
    found = hashlib.sha256()
    for chunk in digest.watch(source.chunks(file.path)):
        found.update(chunk)
    digest.check()
    return found.hexdigest()


def _upload(
    read: Callable[[], Iterator[Chunk]],
    target: Files,
    path: str,
    file: DatasetFile,
    digest: _Digest,
) -> Checksum:
    data = None
    if file.listed.size <= _MEMORY_BYTES:
        data = join_chunks(read())
    else:
        for _ in read():
            pass
    digest.check()
    found, size = digest.checksum, digest.size
    with lance_errors("copying a file", f"{target.uri}/{path}"):
        etag = target.put(path, map(bytes, read()) if data is None else data)
    if is_fork_version(file.relative) or etag is None:
        return found
    return checksum_etag(size, etag)


class _Digest:
    """What passes by of one file, compared with what its writer recorded."""

    def __init__(self, file: DatasetFile, uri: str) -> None:
        self._file, self._uri = file, uri
        self._start()

    def _start(self) -> None:
        self.size = 0
        self._crc = 0
        self._hashes = {
            kind: hashlib.new(kind, usedforsecurity=False) for kind in ("md5", *self._extra)
        }
        self._canonical: Checksum | None = None

    @property
    def _extra(self) -> tuple[str, ...]:
        expected = self._file.checksum
        return ("sha256",) if expected is not None and expected.sha256 is not None else ()

    def watch(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Pass the bytes on, from the beginning."""
        self._start()
        try:
            yield from self._watch(chunks)
        except FileNotFoundError:
            raise SourceChanged(self._uri) from None

    def _watch(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        if is_fork_version(self._file.relative):
            data = join_chunks(chunks)
            self._canonical = checksum_chunks([data], self._file.dataset, self._file.relative)
            chunks = [data]
        for chunk in chunks:
            self.size += len(chunk)
            self._crc = zlib.crc32(chunk, self._crc)
            for each in self._hashes.values():
                each.update(chunk)
            yield chunk

    @property
    def checksum(self) -> Checksum:
        return self._canonical or Checksum(self.size, f"crc32:{self._crc:08x}")

    def check(self) -> None:
        """Refuse a file that is not as it was written."""
        file, md5 = self._file, self._hashes["md5"].hexdigest()
        expected, listed = file.checksum, file.listed
        if self.size != listed.size:
            raise DamagedFile(self._uri, f"has {self.size} bytes instead of {listed.size}")
        seen = None if listed.etag is None else checksum_etag(listed.size, listed.etag)
        if seen is not None and len(seen.etag or "") == _MD5_LENGTH and md5 != seen.etag:
            raise DamagedFile(self._uri, "did not arrive as the store has it")
        if expected is None or expected == seen:
            return
        if expected.sha256 is not None:
            is_same = self._hashes["sha256"].hexdigest() == expected.sha256
        elif expected.etag is None:
            is_same = self.checksum == expected
        else:
            # Of an upload in parts the record depends on how large they were, and cannot tell.
            is_same = len(expected.etag) != _MD5_LENGTH or md5 == expected.etag
        if not is_same:
            raise DamagedFile(self._uri, "is damaged: its bytes are not those that were written")
