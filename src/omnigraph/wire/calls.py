"""Calls: what callers ask for, as the CLI and the client pass it on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.wire.names import Json

LOG_COMMITS = 30
"""How many commits a log has unless it is told otherwise."""
PATCH_CHANGES = 100
"""How many changes of a commit a patch has unless it is told otherwise."""
DETAILS = ("stat", "patch")


class RequestVerb(StrEnum):
    """What is said about a merge request, by the end of its path."""

    COMMENT = "comments"
    APPROVE = "approvals"
    OBJECT = "changes-requested"
    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True, slots=True)
class QueryText:
    """The text of a query, and the file that it was read from."""

    text: str
    path: Path | None = None

    @property
    def name(self) -> str:
        return "-e" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True)
class QueryCall:
    """A query to run on a branch or a snapshot; without a source, `name` is a stored query."""

    source: QueryText | None
    name: str | None
    params: Any = None
    branch: str | None = None
    snapshot: str | None = None
    schema_of: str | None = None


@dataclass(frozen=True, slots=True)
class FeedPart:
    """Which changes are asked for: from where, how many, and of what."""

    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: int | None = None
    kinds: Sequence[str] | None = None
    types: Sequence[str] | None = None
    ops: Sequence[str] | None = None

    @property
    def filters(self) -> Json:
        return {"kinds": self.kinds, "types": self.types, "ops": self.ops}

    @property
    def page(self) -> Json:
        return {"page_token": self.page_token, "limit": self.limit}


@dataclass(frozen=True, slots=True)
class LogPart:
    """Which commits of a log are asked for, and whether with counts or changes."""

    type: str | None = None
    id: str | None = None
    actor: str | None = None
    since: str | None = None
    until: str | None = None
    message: str | None = None
    after: str | None = None
    limit: int | None = None
    detail: str | None = None
    changes: int | None = None

    @property
    def filters(self) -> Json:
        names = ("type", "id", "actor", "since", "until", "message", "after", "limit")
        return {name: getattr(self, name) for name in names}

    @property
    def params(self) -> Json:
        """What is asked for, as parameters of a URL."""
        given = {**self.filters, "detail": self.detail, "changes": self.changes}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """Which Blob is asked for, and which bytes of it."""

    kind: str
    type_name: str
    entity_id: str
    property_name: str
    branch: str | None = None
    snapshot: str | None = None
    offset: int = 0
    length: int | None = None


@dataclass(frozen=True, slots=True)
class BlobContent:
    """A Blob: what is known of it, and the bytes that were asked for, part by part."""

    size: int
    etag: str
    snapshot: str
    parts: Iterator[bytes]
