"""Output files: what an export writes, compressed as its name says."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from omnigraph.errors import BadRequestError, StorageError
from omnigraph.pipeline.input_files import COMPRESSIONS, OTHER_COMPRESSIONS

_LEVEL = 6
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def check_output(path: str) -> None:
    """Refuse a name that no file can have, or that promises what would not be in it.

    Raises:
        BadRequestError: It has a NUL, is an address of a store, or has the ending of a compression
            that is not known here.
    """
    if "\0" in path:
        raise BadRequestError("cannot write a file: its name has a NUL — nothing was written")
    # A path that was normalised has one slash left.
    scheme = _SCHEME.match(path)
    if scheme is not None:
        raise BadRequestError(
            f"cannot write '{path}': an export is written to this machine — give a path, and copy "
            f"the files to {scheme[1]}:// afterwards; nothing was written"
        )
    ending = next((each for each in OTHER_COMPRESSIONS if path.endswith(each)), None)
    if ending is not None:
        raise BadRequestError(
            f"cannot write '{path}': an export is not compressed as {ending} — name it "
            f"{', '.join(COMPRESSIONS)}, or compress it afterwards"
        )


@contextmanager
def open_output(path: str, temporary: str) -> Iterator[IO[bytes]]:
    """Write a file that will be called `path`, compressing it when that name says so."""
    with open(temporary, "wb") as file, open_packed(path, file) as packed:
        yield packed


@contextmanager
def open_packed(path: str, file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Compress what is written to an open file when the name `path` says so."""
    if path.endswith(".gz"):
        # Neither name nor time: equal exports are equal bytes.
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # it writes bytes, which is all that is asked
    elif path.endswith(".bz2"):
        with bz2.BZ2File(file, "wb") as packed_bz2:
            yield packed_bz2
    elif path.endswith(".zst"):
        import pyarrow as pa

        # Closing the stream would close the file, whose caller closes it.
        with pa.CompressedOutputStream(pa.PythonFile(_Unclosed(file), "w"), "zstd") as stream:
            yield stream
    else:
        yield file


class _Unclosed:
    """A file to write to that stays open when its user closes it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write
        self.flush = file.flush

    def close(self) -> None:
        pass


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the file and the reason."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write '{path}': {error.strerror or 'it failed'}") from error
