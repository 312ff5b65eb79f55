"""Input files: what a load reads, on this machine or in an object store, opened the same way.

A path or `file://` URI is a file that every worker can see; an `s3://` URI is read in ranges, with
the storage options of the load. A name that ends in `.gz`, `.bz2` or `.zst` is decompressed.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, cast
from urllib.parse import unquote

from omnigraph.errors import BadRequestError

Options: TypeAlias = Mapping[str, str]

_NO_OPTIONS: Options = MappingProxyType({})
_GLOB = "*?["
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_GLOB_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_REQUEST_BYTES = 1 << 20
_DENIED = ("PermissionDeniedError", "UnauthenticatedError")
_DEVICE = "it is a device or socket, not a file"

COMPRESSIONS = (".gz", ".bz2", ".zst")
OTHER_COMPRESSIONS = (".7z", ".br", ".lz4", ".lzma", ".rar", ".snappy", ".tar", ".xz", ".z", ".zip")


def is_object(path: str) -> bool:
    """Whether a path names something in an object store."""
    return path.startswith("s3://")


def input_path(path: str) -> str:
    """The path as everything here takes it.

    Raises:
        BadRequestError: It has an unknown scheme.
    """
    if "\0" in path:
        raise BadRequestError("cannot read a file: its name has a NUL — nothing was written")
    scheme = _SCHEME.match(path)
    if scheme is None or scheme[1] == "s3":
        return path
    if scheme[1] == "file":
        return unquote(path.removeprefix("file://"))
    raise BadRequestError(f"'{path}' has an unknown scheme — give a path, file:// or s3://")


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its name."""
    return plain_name(path) != path


def plain_name(path: str) -> str:
    """The name that a file would have if it were not compressed."""
    return path.removesuffix(next((each for each in COMPRESSIONS if path.endswith(each)), ""))


def check_compression(path: str) -> None:
    """Refuse the name of a compression that is not read here.

    Raises:
        BadRequestError: It has one.
    """
    ending = next((each for each in OTHER_COMPRESSIONS if path.lower().endswith(each)), None)
    if ending is not None:
        known = ", ".join(COMPRESSIONS)
        raise _unreadable(path, f"{ending} is not read here; unpack it, or use {known}")


def matching(path: str, options: Options) -> list[str]:
    """The files that a path or a pattern names, in order of their names.

    Raises:
        BadRequestError: A pattern names none.
    """
    path = input_path(path)
    has_marks = any(mark in path for mark in _GLOB)
    if not has_marks or (not is_object(path) and os.path.exists(path)):
        return [path]
    with reading(path):
        found = _objects(path, options) if is_object(path) else glob.glob(path, recursive=True)
    if not found:
        raise BadRequestError(f"no file matches '{path}' — nothing was written")
    return sorted(found)


def is_directory(path: str) -> bool:
    """Whether a path names a directory: in an object store, one that ends in a slash."""
    return path.endswith("/") if is_object(path) else os.path.isdir(path)


def list_files(directory: str, endings: Iterable[str], options: Options) -> list[str]:
    """The data files of a directory and of those below it, in order of their names.

    Hidden files and those that start with `_`, which writers leave beside data, are no data.

    Raises:
        BadRequestError: There is none.
    """
    with reading(directory):
        if is_object(directory):
            below = [each[len(directory) :] for each in _objects(f"{directory}**", options)]
        else:
            walked = os.walk(directory)
            below = [
                os.path.relpath(os.path.join(folder, name), directory)
                for folder, _, names in walked
                for name in names
            ]
    found = [
        os.path.join(directory, name)
        for name in below
        if not any(part.startswith((".", "_")) for part in name.split("/"))
        and plain_name(name).lower().endswith(tuple(endings))
    ]
    if not found:
        raise _unreadable(directory, "it is a directory without a data file")
    return sorted(found)


def size_of(path: str, options: Options) -> int:
    """How many bytes a file has.

    Raises:
        BadRequestError: It is not there, or cannot be read.
    """
    with reading(path):
        if is_object(path):
            return _head_size(path, options)
        found = os.stat(path)
    problem = _irregular(found.st_mode)
    if problem is not None:
        raise _unreadable(path, problem)
    return found.st_size


def open_raw(path: str, options: Options) -> BinaryIO:
    """Open a file as it is stored; the caller closes it."""
    with reading(path):
        if is_object(path):
            return io.BufferedReader(_ObjectFile(path, options), _REQUEST_BYTES)
        if _irregular(os.stat(path).st_mode) == _DEVICE:
            raise _unreadable(path, _DEVICE)  # it may have no end
        return open(path, "rb")


def open_input(path: str, options: Options = _NO_OPTIONS) -> BinaryIO:
    """Open an input file, decompressing it when its name says so; the caller closes it."""
    if not is_compressed(path):
        return open_raw(path, options)
    with reading(path):
        # A path, where there is one: closing what is read then closes the file as well.
        source: Any = open_raw(path, options) if is_object(path) else path
        return cast("BinaryIO", _decompress(source, path))


def _decompress(source: Any, path: str) -> Any:
    if path.endswith(".gz"):
        return gzip.open(source, "rb")
    if path.endswith(".bz2"):
        return bz2.open(source, "rb")
    import pyarrow as pa  # most programs read no zstd

    return pa.CompressedInputStream(pa.OSFile(source) if source is path else source, "zstd")


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn an error of the file or the store into a BadRequestError that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise cannot_read(path, error) from error
    except Exception as error:
        # By name: importing the store's own errors would load it for every local file.
        if not type(error).__module__.startswith("obstore"):
            raise
        raise cannot_read(path, error) from error


def cannot_read(path: str, error: Exception) -> BadRequestError:
    """What is wrong with an input file."""
    match error:
        case FileNotFoundError():
            reason = "no such file"
        case IsADirectoryError():
            reason = "it is a directory"
        case EOFError() | zlib.error() | gzip.BadGzipFile():
            reason = "it is damaged or cut off"
        case _ if isinstance(error, PermissionError) or type(error).__name__ in _DENIED:
            reason = "permission denied"
        case _ if is_compressed(path):
            reason = "it is damaged or cut off, or compressed otherwise than its name says"
        case _:
            reason = "reading it failed"
    return _unreadable(path, reason)


def _unreadable(path: str, reason: str) -> BadRequestError:
    return BadRequestError(f"cannot read '{path}': {reason} — nothing was written")


def _irregular(mode: int) -> str | None:
    """What a file is that has no size or no end, or can be read only once; None for others."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "it is a directory"
    if stat.S_ISFIFO(mode):
        return "it is a pipe, and a load reads its input more than once; write it to a file first"
    return _DEVICE


class _ObjectFile(io.RawIOBase):
    """An object as a file: each read asks for exactly the bytes that are wanted."""

    def __init__(self, path: str, options: Options) -> None:
        from omnigraph.storage.text_s3 import s3_bucket

        self._path = path
        self._store, self._key = s3_bucket(path, options)
        self._size = _head_size(path, options)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        import obstore

        count = min(len(buffer), self._size - self._position)
        if count <= 0:
            return 0
        start = self._position
        with reading(self._path):
            data = obstore.get_range(self._store, self._key, start=start, end=start + count)
        buffer[:count] = memoryview(data)
        self._position += count
        return count


def _head_size(path: str, options: Options) -> int:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, key = s3_bucket(path, options)
    return int(obstore.head(store, key)["size"])


def _objects(pattern: str, options: Options) -> list[str]:
    import obstore

    from omnigraph.storage.text_s3 import s3_bucket

    store, key = s3_bucket(pattern, options)
    bucket = pattern.removeprefix("s3://").partition("/")[0]
    fixed = re.split(r"[*?\[]", key, maxsplit=1)[0].rpartition("/")[0]
    wanted = re.compile(_expression(key))
    pages = obstore.list(store, prefix=fixed or None)
    keys = [item["path"] for page in pages for item in page]
    return [f"s3://{bucket}/{each}" for each in keys if wanted.fullmatch(each)]


def _expression(pattern: str) -> str:
    """A pattern of the shell as a regular expression: `*` stays within a folder, `**` does not."""
    meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

    def meaning(part: str) -> str:
        if len(part) > 1 and part.startswith("["):
            inside = part[1:-1].replace("\\", r"\\")
            return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
        return meanings.get(part) or re.escape(part)

    return "".join(meaning(part) for part in _GLOB_PARTS.findall(pattern))
