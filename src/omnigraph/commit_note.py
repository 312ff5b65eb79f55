"""A commit note: why a commit was made, in the words of the caller.

A message, and metadata: a few short texts by name. Every write takes them. They are stored with
the commit, are read with it ever after, and mean nothing to Omnigraph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ResourceLimitError

MESSAGE_BYTES_MAX = 8_192
ENTRIES_MAX = 32
KEY_BYTES_MAX = 64
VALUE_BYTES_MAX = 1_024


@dataclass(frozen=True, slots=True)
class CommitNote:
    """A checked note; `read_note` makes one."""

    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """What there is of it, as properties of a `GraphCommit` and as members of a request."""
        message = {} if self.message is None else {"message": self.message}
        return message | ({"metadata": dict(self.metadata)} if self.metadata else {})


NO_NOTE = CommitNote()


def read_note(message: str | None, metadata: Mapping[str, str] | None) -> CommitNote:
    """Check what a caller says about a commit.

    Raises:
        BadRequestError: The message is empty, or metadata are not texts by name.
        ResourceLimitError: One of them is longer than a history should have to keep.
    """
    if message is None and not metadata:
        return NO_NOTE
    if message is not None:
        _check_text("message", message, MESSAGE_BYTES_MAX)
    entries = dict(metadata or {})
    _check_size("number of metadata entries", len(entries), ENTRIES_MAX, "leave some out")
    for key, value in entries.items():
        _check_text("key of metadata", key, KEY_BYTES_MAX)
        if "=" in key or not key.isprintable():
            raise BadRequestError(
                f"key of metadata is {key!r}, expected printable text without '='"
            )
        _check_text(f"metadata '{key}'", value, VALUE_BYTES_MAX, may_be_empty=True)
    return CommitNote(message, entries)


def parse_metadata(entries: Iterable[str]) -> dict[str, str]:
    """Metadata of `key=value` texts.

    Raises:
        BadRequestError: A text is of another form, or a key is there twice.
    """
    found: dict[str, str] = {}
    for entry in entries:
        key, sign, value = entry.partition("=")
        if not sign:
            raise BadRequestError(f"metadata is {entry[:80]!r}, expected key=value")
        if key in found:
            raise BadRequestError(f"metadata '{key[:80]}' is given twice — give one value")
        found[key] = value
    return found


def _check_text(what: str, value: object, bytes_max: int, *, may_be_empty: bool = False) -> None:
    if not isinstance(value, str):
        raise BadRequestError(
            f"{what} is of type {type(value).__name__}, expected text — nothing was written"
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadRequestError(
            f"{what} is not valid Unicode: it has a lone surrogate — nothing was written"
        ) from None
    if not may_be_empty and not value.strip():
        raise BadRequestError(f"{what} is empty — leave it out, or say something")
    _check_size(f"{what} in bytes", size, bytes_max, "nothing was written; send less")


def _check_size(resource: str, actual: int, limit: int, advice: str) -> None:
    if actual > limit:
        raise ResourceLimitError(resource, limit=limit, actual=actual, advice=advice)
