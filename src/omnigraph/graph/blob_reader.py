"""Blob reader: the bytes of one Blob cell at a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from io import BufferedReader

from omnigraph.catalog import Catalog
from omnigraph.errors import BadRequestError, NotFoundError, with_suggestion
from omnigraph.pipeline.frames import table_key
from omnigraph.storage.blobs import StoredBlob
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.types import Scalar

PART_BYTES = 1 << 20
_KINDS = ("node", "edge")


class BlobReader(BufferedReader):
    """The bytes of a Blob, to be read like a file; `bytes(reader)` is all of them.

    `kind` is `managed`: the graph holds the bytes itself. A reference to bytes elsewhere would
    have a `uri`; none can be written yet. `etag` changes whenever the row is written.
    """

    kind = "managed"
    uri: str | None = None

    def __init__(self, stored: StoredBlob) -> None:
        super().__init__(stored)
        self.size = stored.size
        self.etag = sha256(stored.stamp.encode()).hexdigest()[:32]

    def __bytes__(self) -> bytes:
        place = self.tell()
        self.seek(0)
        try:
            return self.read()
        finally:
            self.seek(place)

    def __len__(self) -> int:
        return self.size

    def read_parts(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from `start` to before `end`, a bounded part at a time."""
        self.seek(start)
        left = min(end, self.size) - start
        while left > 0 and (data := self.read(min(left, PART_BYTES))):
            left -= len(data)
            yield data


def blob_table(catalog: Catalog, kind: str, type_name: str, property_name: str) -> str:
    """The key of the table that a Blob property is in.

    Raises:
        BadRequestError: There is no such kind, type or property, or the property is no Blob.
    """
    if kind not in _KINDS:
        raise BadRequestError(f"kind is {kind!r}, expected 'node' or 'edge'")
    key = table_key(catalog, type_name, kind=kind)
    if not key.startswith(f"{kind}:"):
        raise BadRequestError(f"'{type_name}' is no {kind} type")
    _require_blob(catalog, key, property_name)
    return key


def read_blob(
    tables: TableStorage, handle: TableHandle, key: str, entity_id: str, property_name: str
) -> BlobReader:
    """The Blob of one node or edge.

    Raises:
        NotFoundError: There is no such node or edge, or its value is null.
    """
    stored = None
    if property_name not in handle.absent:
        stored = tables.reads.open_blob(handle, property_name, entity_id=entity_id)
    if stored is None:
        raise NotFoundError(f"{property_name} of {key} '{entity_id}' is null: there are no bytes")
    return BlobReader(stored)


def _require_blob(catalog: Catalog, key: str, name: str) -> None:
    properties = catalog.entity(key).properties
    declared = properties.get(name)
    if declared is None:
        raise BadRequestError(with_suggestion(f"{key} has no property '{name}'", name, properties))
    if declared.type.scalar is not Scalar.BLOB:
        raise BadRequestError(
            f"'{name}' of {key} is {declared.type}, not a Blob — query it instead"
        )
