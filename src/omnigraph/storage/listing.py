"""Listing: every file below a dataset, with its size, on disk or in an object store."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph.dataclass import dataclass
from omnigraph.storage.checksums import (
    Checksum,
    Chunk,
    checksum_chunks,
    checksum_etag,
    is_fork_version,
    join_chunks,
    read_chunks,
)
from omnigraph.storage.durability import sync_paths
from omnigraph.storage.lance_errors import lance_errors

if TYPE_CHECKING:
    from obstore.store import S3Store

_MD5_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Listed:
    """One file that is there. Only an object store knows an ETag."""

    size: int
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Reads whole files below one dataset, or the graph, by their relative path."""

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def list(self, below: str = "") -> dict[str, Listed]:
        """Relative path → what is there, of every file below the dataset or a part of it."""
        with lance_errors("listing files", self.uri):
            return dict(self._walk(below) if self.is_local else self._list_objects(below))

    def find(self, relative: str) -> dict[str, Listed]:
        """The file itself, or everything below the directory of this name."""
        if self.is_local:
            path = f"{self.uri}/{relative}"
            is_file = os.path.isfile(path)
            return {relative: Listed(os.stat(path).st_size)} if is_file else self.list(relative)
        store, key = self._bucket()
        try:
            found = store.head(f"{key}/{relative}")
        except FileNotFoundError:
            return self.list(relative)
        return {relative: Listed(found["size"], found["e_tag"])}

    def read(self, relative: str) -> bytes:
        """All bytes of a small file."""
        return join_chunks(self.chunks(relative))

    def chunks(self, relative: str) -> Iterable[Chunk]:
        """The bytes of a file, in chunks of bounded size."""
        if self.is_local:
            return read_chunks(f"{self.uri}/{relative}")
        return self._object_chunks(relative)

    def append(self, relative: str, data: bytes) -> None:
        """Add to the end of a file on a local disk, without a sync."""
        path = f"{self.uri}/{relative}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            descriptor = os.open(path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, flags, 0o666)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def write(self, relative: str, data: bytes) -> None:
        """Create or replace a small file as a whole, durably."""
        if not self.is_local:
            store, key = self._bucket()
            store.put(f"{key}/{relative}", data, use_multipart=False)
            return
        path = f"{self.uri}/{relative}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}#{secrets.randbelow(10**18)}"
        with open(temporary, "wb") as file:
            file.write(data)
        sync_paths([temporary])
        os.replace(temporary, path)
        sync_paths([os.path.dirname(path)])

    def put(self, relative: str, data: bytes | Iterator[bytes]) -> str | None:
        """Create or replace an object of any size in an object store; returns its ETag."""
        store, key = self._bucket()
        return store.put(f"{key}/{relative}", data)["e_tag"]

    def remove(self, relatives: Iterable[str]) -> None:
        """Remove files; one that is not there is success."""
        for relative in relatives:
            try:
                if self.is_local:
                    os.unlink(f"{self.uri}/{relative}")
                else:
                    store, key = self._bucket()
                    store.delete(f"{key}/{relative}")
            except FileNotFoundError:
                continue

    def move_object(self, relative: str, target: str) -> None:
        """Move an object to the same path below `target`, a prefix of the same bucket."""
        store, key = self._bucket()
        target_key = target.removeprefix("s3://").partition("/")[2]
        store.copy(f"{key}/{relative}", f"{target_key}/{relative}")
        store.delete(f"{key}/{relative}")

    def is_same(self, relative: str, listed: Listed, expected: Checksum) -> bool | None:
        """Whether a file is as recorded; None when its record cannot tell."""
        if listed.etag is not None and checksum_etag(listed.size, listed.etag) == expected:
            return True  # the store confirms it: no download needed
        if listed.size != expected.size and not is_fork_version(relative):
            return False
        if expected.etag is None:
            return checksum_chunks(self.chunks(relative), self.uri, relative) == expected
        if len(expected.etag) != _MD5_LENGTH:
            return None  # of an upload in parts: it depends on how large they were
        digest = hashlib.md5(usedforsecurity=False)
        for chunk in self.chunks(relative):
            digest.update(chunk)
        return digest.hexdigest() == expected.etag

    def _walk(self, below: str) -> Iterator[tuple[str, Listed]]:
        top = f"{self.uri}/{below}" if below else self.uri
        try:
            with os.scandir(top) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            relative = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(relative)
                continue
            try:
                size = entry.stat().st_size
            except FileNotFoundError:  # a temporary file that its writer has renamed or removed
                continue
            yield relative, Listed(size)

    def _list_objects(self, below: str) -> Iterator[tuple[str, Listed]]:
        store, key = self._bucket()
        prefix = f"{key}/{below}" if below else key
        for page in store.list(prefix=prefix):
            for item in page:
                relative = item["path"][len(key) + 1 :]
                yield relative, Listed(item["size"], item["e_tag"])

    def _object_chunks(self, relative: str) -> Iterator[Chunk]:
        store, key = self._bucket()
        for chunk in store.get(f"{key}/{relative}").stream():
            yield bytes(chunk)

    def _bucket(self) -> tuple[S3Store, str]:
        return _bucket(self.uri, tuple(sorted(self.storage_options.items())))


@lru_cache(maxsize=64)
def _bucket(uri: str, options: tuple[tuple[str, str], ...]) -> tuple[S3Store, str]:
    """Clients are expensive to create: one serves every file of a dataset."""
    from omnigraph.storage.text_s3 import s3_bucket

    return s3_bucket(uri, dict(options))
