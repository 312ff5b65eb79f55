"""Load text: files of records as the strict text that a server accepts, one record per line.

Files may be compressed, pretty-printed, arrays, and contain comments, as for a load into a store.
Records keep their line numbers where possible, so that errors name the right line.
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
    """Read the records of all files, in order.

    Raises:
        BadRequestError: A file cannot be read, or a pattern matches none.
    """
    return b"".join(_read_lines(path) for pattern in patterns for path in _expand(pattern))


def _expand(pattern: str) -> list[str]:
    if os.path.exists(pattern) or not any(mark in pattern for mark in "*?["):
        return [pattern]
    found = sorted(glob.glob(pattern, recursive=True))
    if not found:
        raise BadRequestError(f"no file matches '{pattern}' — nothing was sent")
    return found


def _read_lines(path: str) -> bytes:
    try:
        with open_input(path) as file:
            return b"".join(line + b"\n" for line in _align_records(file.read))
    except (OSError, EOFError, zlib.error) as error:
        raise cannot_read(path, error) from error


def _align_records(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield one line per record, with empty lines before it to keep its line number."""
    written = 0
    for record in scan_records(read):
        for _ in range(record.line - written - 1):
            yield b""
            written += 1
        # A line break is white space outside a string and invalid JSON inside one.
        yield record.text.replace(b"\n", b" ").replace(b"\r", b" ")
        written += 1
