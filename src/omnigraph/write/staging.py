"""MutationStaging: the changes of one write, in memory, before any table is touched.

Statements push batches and deletions per table; reads through the staging see committed rows with
the pending ones laid over them. No HEAD moves here: `commit.py` takes the finished change over.

    mode       used by                       becomes
    append     types without a key           one staged append
    merge      types with a key, updates     one staged upsert by id, last write wins
    (delete)   deletes and their cascades    one staged delete
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import Catalog, EntityType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConflictError
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.storage.predicates import IsIn, Predicate
from omnigraph.storage.tables import TableStorage
from omnigraph.write.fork import open_pin
from omnigraph.write.integrity import last_by_id

NO_ROWS: Mapping[str, pa.Table] = {}


class PendingMode(StrEnum):
    """What the pending batches of one table will become."""

    APPEND = "append"
    MERGE = "merge"


@dataclass(slots=True)
class PendingTable:
    """The change of one table so far. `entry` is the pin at first touch: the fence of the write.

    A strict table was read to decide what to write (update, delete): when its pin moves
    before the commit, the decision is stale and the write fails instead of trying again.
    """

    entity: EntityType
    entry: TableEntry
    handle: TableHandle
    mode: PendingMode | None = None
    is_strict: bool = False
    is_replaced: bool = False
    """Whether every row is known to be there, and too large to go through a join."""
    batches: list[pa.Table] = field(default_factory=list)
    deleted: list[pa.Array] = field(default_factory=list)

    def upserts(self) -> pa.Table:
        """The final image of the pending rows: one per id, the last one pushed."""
        if len(self.batches) == 1 and self.batches[0].num_rows == 1:
            return self.batches[0]
        schema = arrow_schema(self.entity)
        rows = pa.concat_tables([schema.empty_table(), *self.batches])
        is_merge = self.mode is PendingMode.MERGE and rows.num_rows > 1
        return last_by_id(rows) if is_merge else rows

    def ids_to_delete(self) -> pa.Array:
        """Every id to delete, once."""
        ids = pa.chunked_array(self.deleted, pa.utf8())
        return pc.unique(ids)

    @property
    def has_change(self) -> bool:
        """Whether anything has to be staged."""
        return any(map(len, self.batches)) or any(map(len, self.deleted))


class MutationStaging:
    """The pending change of one write over one snapshot. Used by one thread, once."""

    def __init__(
        self,
        tables: TableStorage,
        catalog: Catalog,
        snapshot: Snapshot,
        earlier: Mapping[str, pa.Table] = NO_ROWS,
    ) -> None:
        self.tables = tables
        self.catalog = catalog
        self.snapshot = snapshot
        self.earlier = earlier
        """The rows that writes before this one will add to what the snapshot shows (`group.py`)."""
        self.pending: dict[str, PendingTable] = {}
        self.read_versions: dict[str, int] = {}
        self._is_matched = False

    def open(self, table_key: str) -> TableHandle:
        """Open a table at its pin and remember that the write depends on that pin."""
        entry = self._entry(table_key)
        self.read_versions.setdefault(table_key, entry.version)
        return open_pin(self.tables, entry)

    def depend_on_match(self, table_keys: Iterable[str]) -> None:
        """Remember that a match over these tables decided the write, which makes it strict."""
        self._is_matched = True
        for key in table_keys:
            self.read_versions.setdefault(key, self._entry(key).version)

    def read_committed(
        self, table_key: str, columns: Sequence[str], predicate: Predicate
    ) -> pa.Table:
        """The matching rows that the write finds: stored ones, and those of writes before it."""
        handle, earlier = self.open(table_key), self.earlier.get(table_key)
        if earlier is None:
            return self.tables.reads.scan(handle, columns, predicate)
        return self.tables.reads.scan_with_pending(handle, earlier, columns, predicate)

    def touch(self, entity: EntityType) -> PendingTable:
        """The pending change of a table; the first touch captures its pin."""
        found = self.pending.get(entity.table_key)
        if found is None:
            handle = self.open(entity.table_key)
            found = PendingTable(entity, self._entry(entity.table_key), handle)
            self.pending[entity.table_key] = found
        return found

    def push(
        self, entity: EntityType, mode: PendingMode, rows: pa.Table, *, is_strict: bool = False
    ) -> None:
        """Add rows, in the entity's stored schema, to the pending change."""
        pending = self.touch(entity)
        if rows.num_rows == 0:
            return
        expected = arrow_schema(entity)
        if rows.schema.names != expected.names or rows.schema.types != expected.types:
            raise BadRequestError(
                f"rows for '{entity.table_key}' have the columns {rows.schema.names}, "
                f"expected {expected.names}"
            )
        # A merge among appends makes the whole table a merge, never the other way round.
        pending.mode = mode if pending.mode in (None, mode) else PendingMode.MERGE
        pending.is_strict |= is_strict
        pending.batches.append(rows)

    def delete(self, entity: EntityType, ids: pa.Array) -> None:
        """Mark rows for deletion by id."""
        pending = self.touch(entity)
        pending.is_strict = True
        pending.deleted.append(ids)

    @property
    def is_strict(self) -> bool:
        return self._is_matched or any(each.is_strict for each in self.pending.values())

    def list_pins(self) -> dict[str, TableEntry]:
        """The pin of every table that has a change."""
        return {key: each.entry for key, each in sorted(self.pending.items()) if each.has_change}

    def list_new_rows(self) -> dict[str, pa.Table]:
        """The rows to add to each table, of a write that only inserts new ones."""
        changed = {key: each for key, each in sorted(self.pending.items()) if each.has_change}
        return {key: each.upserts() for key, each in changed.items()}

    def stage(self, handles: Mapping[str, TableHandle]) -> dict[str, StagedTransaction]:
        """Write the files of each change: exactly one transaction per table, no HEAD moves."""
        staged = {key: self._stage(handle, self.pending[key]) for key, handle in handles.items()}
        return {key: transaction for key, transaction in staged.items() if transaction is not None}

    def _stage(self, handle: TableHandle, pending: PendingTable) -> StagedTransaction | None:
        match pending.mode:
            case PendingMode.APPEND:
                return self.tables.rows.stage_append(handle, pending.upserts())
            case PendingMode.MERGE if pending.is_replaced:
                rows = pending.upserts()
                addresses = self.tables.reads.find_addresses(handle, IsIn("id", _ids_of(rows)))
                return self.tables.rows.stage_replace(handle, rows.to_batches(), addresses)
            case PendingMode.MERGE:
                return self.tables.rows.stage_merge_insert(handle, pending.upserts(), key="id")
            case None:
                return self.tables.rows.stage_delete(handle, IsIn("id", pending.ids_to_delete()))

    def scan(
        self,
        entity: EntityType,
        predicate: Predicate | None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Committed rows with the pending ones laid over them: what the write would leave."""
        pending = self.touch(entity)
        if not pending.batches:
            return self.tables.reads.scan(
                pending.handle, columns=columns, predicate=predicate, include_blobs=True
            )
        return self.tables.reads.scan_with_pending(
            pending.handle,
            pending.upserts(),
            columns=columns,
            predicate=predicate,
            key_column="id",
            include_blobs=True,
        )

    def _entry(self, table_key: str) -> TableEntry:
        entry = self.snapshot.entries.get(table_key)
        if entry is None:
            raise ConflictError(
                f"table '{table_key}' is not in the manifest of branch '{self.snapshot.branch}' — "
                "refresh and retry"
            )
        return entry


def _ids_of(rows: pa.Table) -> pa.Array:
    return rows["id"].combine_chunks()
