"""Spooled files: input from standard input or a client, on disk under the names of its user.

A load reads its input more than once, so such input is written to a temporary directory first. Each
file lies below it under its own name, relative or absolute, and messages show that name only.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import BinaryIO

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError

_PREFIX = "omnigraph-input-"
_RELATIVE, _ABSOLUTE = "here", "root"


@dataclass(frozen=True, slots=True)
class SpooledFiles:
    """A temporary directory of input files. Its user removes it."""

    folder: str

    @classmethod
    def make(cls) -> SpooledFiles:
        return cls(tempfile.mkdtemp(prefix=_PREFIX))

    def locate(self, name: str) -> str:
        """Where the file or directory of a name lies.

        Raises:
            BadRequestError: The name leads elsewhere, or no file can have it.
        """
        is_absolute = name.startswith("/")
        parts = name.removeprefix("/").split("/")
        if not {"", ".."}.isdisjoint(parts) or "\0" in name:
            raise BadRequestError(
                f"'{name[:80]}' is not the name of a file — expected a path without '..'"
            )
        return os.path.join(self.folder, _ABSOLUTE if is_absolute else _RELATIVE, *parts)

    def create(self, name: str) -> BinaryIO:
        """Create the file of a name, to be written and closed by the caller.

        Raises:
            BadRequestError: There is such a file already, or no file can have that name.
        """
        path = self.locate(name)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            return open(path, "xb")
        except FileExistsError:
            raise BadRequestError(f"the file '{name[:80]}' is there twice — give it once") from None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            raise BadRequestError(f"'{name[:80]}' is not a name that a file can have") from None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def show_names(text: str) -> str:
    """A text in which spooled files have the names of their user."""
    return _pattern(tempfile.gettempdir()).sub("", text) if _PREFIX in text else text


@cache
def _pattern(folder: str) -> re.Pattern[str]:
    start = re.escape(os.path.join(folder, _PREFIX))
    return re.compile(rf"{start}\w+/(?:{_RELATIVE}/|{_ABSOLUTE}(?=/))")


@contextmanager
def showing_names() -> Iterator[None]:
    """Let errors of the block show the names of spooled files."""
    try:
        yield
    except OmnigraphError as error:
        error.change_text(show_names)
        raise
