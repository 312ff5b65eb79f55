"""Change records: the changes of a commit as a feed spells them, in order, as many as a page takes.

Nodes come before edges, then types by identity, then entities by id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson

from omnigraph.branch.changes import ChangeSet, EntityChange, TableChanges
from omnigraph.branch.images import Image
from omnigraph.errors import BadRequestError, ChangeCursorRejected, ResourceLimitError

PAGE_CHANGES = 1_000
PAGE_CHANGES_MAX = 8_192
PAGE_BYTES = 4 * 1024 * 1024

Record: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, int, str]
"""Kind, identity of the type, id: the order of changes within a commit."""


class Room:
    """What a page has room for still: so many changes, and a number of bytes."""

    def __init__(self, changes: int, size: int | None = None) -> None:
        self._changes = changes
        self._bytes = PAGE_BYTES if size is None else size

    @property
    def is_full(self) -> bool:
        return self._changes <= 0 or self._bytes <= 0

    def take(self, changes: ChangeSet, after: Key | None) -> tuple[list[Record], Key | None]:
        """Records behind a key, as many as fit, and the key of the last if there are more."""
        records: list[Record] = []
        # Two more than fit: the one that was sent last, and one that says that there are others.
        for part, change in list_in_order(changes, after, self._changes + 2):
            if self.is_full:
                return records, after
            record = to_record(change, part.entity.type_id)
            records.append(record)
            after = (change.kind, part.entity.type_id, change.id)
            self._changes -= 1
            self._bytes -= len(orjson.dumps(record))
        return records, None


def list_in_order(
    changes: ChangeSet, after: Key | None, wanted: int
) -> Iterator[tuple[TableChanges, EntityChange]]:
    """Changes in the order of the feed; nothing is read of what lies before the key."""
    for part in sorted(changes.table_changes, key=_table_order):
        last: str | None = None
        if after is not None:
            if _table_order(part) < _key_order(after):
                continue
            if _table_order(part) == _key_order(after):
                last = after[2]
        for change in changes.of_table(part, last, wanted):
            if change.id != last:
                yield part, change


def _table_order(part: TableChanges) -> tuple[bool, int]:
    return part.entity.kind == "edge", part.entity.type_id


def _key_order(key: Key) -> tuple[bool, int]:
    return key[0] == "edge", key[1]


def to_record(change: EntityChange, type_id: int) -> Record:
    """A change as the feed spells it."""
    record = {
        "kind": change.kind,
        "type": {"id": str(type_id), "name": change.type_name},
        "id": change.id,
        "op": change.op.value,
        "before": _to_image(change, change.before),
        "after": _to_image(change, change.after),
    }
    return {name: value for name, value in record.items() if value is not None}


def _to_image(change: EntityChange, image: Image | None) -> Record | None:
    if image is None:
        return None
    if change.kind == "node":
        return {"properties": {name: value for name, value in image.items() if name != "id"}}
    hidden = ("id", "src", "dst")
    return {
        "properties": {name: value for name, value in image.items() if name not in hidden},
        "endpoints": {"from": image["src"], "to": image["dst"]},
    }


def check_limit(limit: int | None) -> int:
    """The number of changes of a page.

    Raises:
        ResourceLimitError: It is more than a page may have.
    """
    if limit is None:
        return PAGE_CHANGES
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadRequestError(f"limit is {limit!r} — expected a number from 1 on")
    if limit > PAGE_CHANGES_MAX:
        raise ResourceLimitError(
            "change_page_changes",
            limit=PAGE_CHANGES_MAX,
            actual=limit,
            advice="read page by page",
        )
    return limit


def write_key(key: Key) -> dict[str, str]:
    """The key as part of a token."""
    return {"kind": key[0], "type": str(key[1]), "id": key[2]}


def read_key(place: Any) -> Key | None:
    """The key that a token has, None when it has none.

    Raises:
        ChangeCursorRejected: It is damaged.
    """
    kind, type_id, id_ = (place.get(name) for name in ("kind", "type", "id"))
    if kind is None and type_id is None and id_ is None:
        return None
    if kind is None or id_ is None or type_id is None or not type_id.isdecimal():
        raise ChangeCursorRejected("it is damaged")
    return kind, int(type_id), id_
