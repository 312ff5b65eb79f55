"""Load text: files of records as the strict text a server takes, one record a line.

Files may be compressed, pretty-printed, arrays, and hold comments, as for a load in place. Where a
file has one record a line already, lines keep their numbers, so that errors name the right one.
"""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Callable, Iterator, Sequence

from omnigraph.errors import BadRequestError
from omnigraph.pipeline.documents import scan_records
from omnigraph.pipeline.input_files import cannot_read, open_input


def load_text(patterns: Sequence[str]) -> bytes:
    """The records of all files, in order.

    Raises:
        BadRequestError: A file cannot be read, or a pattern matches none.
    """
    return b"".join(_lines_of(path) for pattern in patterns for path in _matching(pattern))


def _matching(pattern: str) -> list[str]:
    if os.path.exists(pattern) or not any(mark in pattern for mark in "*?["):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise BadRequestError(f"no file matches '{pattern}' — nothing was sent")
    return found


def _lines_of(path: str) -> bytes:
    try:
        with open_input(path) as file:
            return b"".join(line + b"\n" for line in _numbered(file.read))
    except (OSError, EOFError, zlib.error) as error:
        raise cannot_read(path, error) from error


def _numbered(read: Callable[[int], bytes]) -> Iterator[bytes]:
    written = 0
    for record in scan_records(read):
        for _ in range(record.line - written - 1):
            yield b""
            written += 1
        # Outside of a string a line break is white space, and inside of one it is not JSON anyway.
        yield record.text.replace(b"\n", b" ").replace(b"\r", b" ")
        written += 1
