"""Output files: what an export writes, compressed as its name says."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from omnigraph.errors import BadRequestError, StorageError
from omnigraph.pipeline.input_files import is_compressed

_LEVEL = 6
_OTHER_ENDINGS = (".bz2", ".lz4", ".xz", ".zip", ".zst")


def check_output(path: str) -> None:
    """Refuse a name that no file can have, or that promises what would not be in it.

    Raises:
        BadRequestError: It has a NUL, or the ending of a compression that is not known here.
    """
    if "\0" in path:
        raise BadRequestError("cannot write a file: its name has a NUL — nothing was written")
    ending = next((each for each in _OTHER_ENDINGS if path.endswith(each)), None)
    if ending is not None:
        raise BadRequestError(
            f"cannot write '{path}': an export is not compressed as {ending} — name it .gz, or "
            "compress it afterwards"
        )


@contextmanager
def open_output(path: str, temporary: str) -> Iterator[IO[bytes]]:
    """Write a file that will be called `path`, compressing it when that name says so."""
    with open(temporary, "wb") as file:
        if not is_compressed(path):
            yield file
            return
        # Neither name nor time: equal exports are equal bytes.
        with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # it writes bytes, which is all that is asked


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the file and the reason."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write '{path}': {error.strerror or 'it failed'}") from error
