"""Text: the small text objects of a graph (schema, sidecars) behind one interface per store.

Every write is atomic: a reader sees the old or the new whole object. Locally a write goes through
a temporary name `name#<digits>` in the same directory; such names are never listed and cannot be
addressed, so that what a crash leaves behind is invisible.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Protocol

from omnigraph.errors import BadRequestError, ObjectMissing, StorageError
from omnigraph.storage.durability import Durability
from omnigraph.storage.location import GraphRoot

_TEMPORARY = re.compile(r"#\d+$")


class TextStore(Protocol):
    """Whole text objects by URI. Failures of the store are StorageErrors."""

    def read_text(self, uri: str) -> str:
        """Return the object; ObjectMissing when there is none."""
        text = self.read_text_if_exists(uri)
        if text is None:
            raise ObjectMissing(uri)
        return text

    def read_text_if_exists(self, uri: str, *, bytes_max: int | None = None) -> str | None:
        """Return the object in one request; None only when it is genuinely not there.

        An object of more than `bytes_max` is refused before its bytes are read.
        """

    def write_text(self, uri: str, text: str, *, after: Collection[str] = ()) -> None:
        """Create or replace the object atomically, once the local files `after` are synced."""

    def write_text_if_absent(self, uri: str, text: str) -> bool:
        """Create the object atomically; False, and no effect, when there is one."""

    def exists(self, uri: str) -> bool:
        """Whether an object, or anything below this prefix, exists. An empty directory does not."""

    def rename_text(self, source: str, target: str) -> None:
        """Move an object over `target`. On object stores both may exist for a while."""

    def delete(self, uri: str, *, is_lasting: bool = True) -> None:
        """Delete the object; nothing to delete is success.

        Unless `is_lasting`, a power cut right afterwards may bring it back.
        """

    def list_dir(self, uri: str) -> list[str]:
        """The URIs of the objects directly below, in no order; none when there is nothing."""

    def list_folders(self, uri: str) -> list[str]:
        """The names of what has objects below it, directly under this prefix, in no order."""

    def delete_prefix(self, uri: str) -> None:
        """Delete everything below, one by one; nothing to delete is success."""

    def read_text_versioned(self, uri: str) -> tuple[str, str]:
        """Return the object and an opaque token of its present content."""

    def write_text_if_match(self, uri: str, text: str, token: str) -> str | None:
        """Replace the object if its token still is `token`; the new token, or None if it is not."""


def open_text_store(
    root: GraphRoot,
    storage_options: Mapping[str, str] | None = None,
    durability: Durability = "power",
) -> TextStore:
    """Return the text store that holds the objects of a graph."""
    if root.is_local:
        from omnigraph.storage.text_local import LocalTextStore

        return LocalTextStore(durability)
    from omnigraph.storage.text_s3 import S3TextStore

    return S3TextStore(root, storage_options or {})


def is_temporary(uri: str) -> bool:
    """Whether this is the temporary name of a write in progress, or what a crash left of one."""
    return _TEMPORARY.search(uri) is not None


def refuse_temporary(uri: str) -> None:
    """Raise when `uri` has the shape of a temporary name."""
    if is_temporary(uri):
        raise BadRequestError(f"'{uri}' has the shape of a temporary name and cannot be addressed")


def refuse_larger(uri: str, size: int, bytes_max: int | None) -> None:
    """Raise when an object is larger than the caller is ready to read."""
    if bytes_max is not None and size > bytes_max:
        raise StorageError(
            f"'{uri}' has {size} bytes, expected at most {bytes_max} — it is kept; look at it and "
            "move it away if it does not belong there"
        )


def decode_text(data: bytes, uri: str) -> str:
    """Return the text of an object's bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise StorageError(f"'{uri}' is damaged: it is not UTF-8 text") from error
