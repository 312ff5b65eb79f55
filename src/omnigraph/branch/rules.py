"""Rules: what the merged graph would break, although each side keeps every rule by itself.

The target keeps the rules, so only the delta can break one. A table that is read is recorded with
its version: if it moves before the merge is published, the merge fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.conflicts import ConflictKind, Contest, Edit
from omnigraph.branch.descent import open_entry
from omnigraph.branch.plan import TablePlan
from omnigraph.branch.row_batches import to_row_ids
from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.manifest import Snapshot
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import BadRow
from omnigraph.write.convert import ID
from omnigraph.write.integrity import NO_IDS, Side, groups_besides_key
from omnigraph.write.rules import (
    BrokenCardinality,
    BrokenRule,
    BrokenUnique,
    MissingEndpoints,
    OrphanedEdges,
    check_rules,
)
from omnigraph.write.validate import list_constrained_columns

_IDS_PER_SCAN = 8_192
_ROW_ID = "_rowid"


@dataclass(slots=True)
class MergedGraph:
    """The target with the deltas laid over it: a `GraphAfterWrite` of the merge."""

    tables: TableStorage
    catalog: Catalog
    source: Snapshot
    target: Snapshot
    plans: Mapping[str, TablePlan]
    read_versions: dict[str, int] = field(default_factory=dict)
    _cached_rows: tuple[str, pa.Table] | None = None

    def find_contests(self) -> Iterator[Contest]:
        """Everything the merge would break, by table."""
        for broken in check_rules(self, limit=None):
            for bad in broken.bad:
                yield self._to_contest(broken, bad)

    # The view that the rules are checked over

    def list_changed_types(self) -> list[EntityType]:
        return [self.plans[key].entity for key in sorted(self.plans)]

    def list_edge_types(self) -> list[EdgeType]:
        return list(self.catalog.edges.values())

    def list_value_columns(self, entity: EntityType) -> list[str]:
        """Nulls cannot come from a source that refused them."""
        columns = list_constrained_columns(entity)
        if self.plans[entity.table_key].is_of_other_schema:
            columns += [each.name for each in entity.properties.values() if not each.type.nullable]
        return columns

    def read_new_rows(self, entity: EntityType, columns: Sequence[str]) -> pa.Table:
        """Every column that a rule looks at, read once for all rules of the type."""
        key = entity.table_key
        if self._cached_rows is None or self._cached_rows[0] != key:
            self._cached_rows = None
            plan = self.plans[key]
            members = [name for group in groups_besides_key(entity) for name in group.members]
            names = [*entity.structural_columns, *self.list_value_columns(entity), *members]
            rows = self._take(plan.source, plan.delta.rows["after"], list(dict.fromkeys(names)))
            self._cached_rows = key, rows
        return self._cached_rows[1]

    def read_surviving_rows(
        self, entity: EntityType, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        key = entity.table_key
        rows = self._scan(self._open(key), columns, by, values)
        plan = self.plans.get(key)
        if plan is None:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows[ID], value_set=plan.delta.ids)))

    def read_lost_edges(self, edge: EdgeType) -> pa.Table:
        plan = self.plans[edge.table_key]
        return self._take(plan.target, plan.delta.rows["before"], [ID, "src"])

    def read_exposed_edges(self, edge: EdgeType, side: Side, node_name: str) -> pa.Table | None:
        deleted = self.list_deleted_nodes(node_name)
        if deleted is None or len(deleted) == 0:
            return None
        return self.read_surviving_rows(edge, [ID, side, _ROW_ID], side, deleted)

    def find_live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        key = f"node:{node_name}"
        asked, new = pc.unique(ids), NO_IDS
        plan = self.plans.get(key)
        if plan is not None:
            rows = plan.delta.rows
            new = rows.filter(rows["after"].is_valid())[ID].combine_chunks()
            asked = asked.filter(pc.invert(pc.is_in(asked, plan.delta.ids)))
        committed = self._scan(self._open(key), [ID], ID, asked)
        return pa.concat_arrays([new, committed[ID].combine_chunks()])

    def list_deleted_nodes(self, node_name: str) -> pa.Array | None:
        plan = self.plans.get(f"node:{node_name}")
        return None if plan is None else plan.delta.deletes()[ID].combine_chunks()

    # From a broken rule to a contest: what keeping either side would mean

    def _to_contest(self, broken: BrokenRule, bad: BadRow) -> Contest:
        match broken:
            case BrokenUnique():
                return self._contest_unique(broken, bad)
            case OrphanedEdges():
                return self._contest_orphan(broken, bad)
            case MissingEndpoints():
                return self._contest_endpoint(broken, bad)
            case BrokenCardinality():
                return self._contest_cardinality(broken, bad)
        # The row breaks the rule by itself: it cannot be kept.
        kind = ConflictKind.VALUE_CONSTRAINT_VIOLATION
        return _drop_row(broken, bad, kind, bad.reason, theirs=None)

    def _contest_unique(self, broken: BrokenUnique, bad: BadRow) -> Contest:
        """Drop the new row, or make the rows that have its value what they are in the source."""
        has_value = pc.equal(broken.holder_keys, broken.keys[bad.index])
        holders = broken.holders.filter(has_value)[ID].combine_chunks()
        other = f"; '{holders[0].as_py()}' has it" if len(holders) else ""
        message = f"{bad.reason} (value {bad.value_excerpt}){other}"
        key = broken.entity.table_key
        theirs = self._as_in_source(key, holders) if len(holders) else None
        return _drop_row(broken, bad, ConflictKind.UNIQUE_VIOLATION, message, theirs)

    def _contest_endpoint(self, broken: MissingEndpoints, bad: BadRow) -> Contest:
        edge_id = broken.rows[ID][bad.index].as_py()
        message = f"{broken.entity.name} '{edge_id}': {bad.reason}: the target deleted it"
        node_id, key = broken.rows[broken.side][bad.index].as_py(), f"node:{broken.node_name}"
        row_id = self._row_ids(self._in_source(key), pa.array([node_id])).get(node_id)
        bring_back = None if row_id is None else (Edit(key, node_id, (None, row_id)),)
        return _drop_row(broken, bad, ConflictKind.ORPHAN_EDGE, message, bring_back)

    def _contest_orphan(self, broken: OrphanedEdges, bad: BadRow) -> Contest:
        side, node_name, key = broken.side, broken.node_name, broken.entity.table_key
        [row] = broken.rows.slice(bad.index, 1).to_pylist()
        missing = f"{side} '{row[side]}' not found in {node_name}: the source deleted it"
        message = f"{broken.entity.name} '{row[ID]}': {missing}"
        return Contest(
            MergeConflict(ConflictKind.ORPHAN_EDGE.value, key, row[ID], message),
            ours=(Edit(f"node:{node_name}", row[side], None),),
            theirs=(Edit(key, row[ID], (row[_ROW_ID], None)),),
        )

    def _contest_cardinality(self, broken: BrokenCardinality, bad: BadRow) -> Contest:
        """Drop the source's changes to the edges of a node, or give it the source's edges."""
        key, node = broken.entity.table_key, broken.sources[bad.index]
        changed = pc.unique(_edge_ids(node, broken.rows, broken.lost))
        there = self._scan(self._in_source(key), [ID, "src"], "src", pa.array([node.as_py()]))
        ids = pc.unique(_edge_ids(node, broken.surviving, there))
        unchanged = ids.filter(pc.invert(pc.is_in(ids, value_set=self.plans[key].delta.ids)))
        return Contest(
            MergeConflict(ConflictKind.CARDINALITY_VIOLATION.value, key, None, bad.reason),
            ours=tuple(Edit(key, each, None) for each in changed.to_pylist()),
            theirs=self._as_in_source(key, unchanged),
        )

    def _as_in_source(self, table_key: str, ids: pa.Array) -> tuple[Edit, ...]:
        """Make rows of the target what they are in the source; gone where it has none."""
        before = self._row_ids(self._open(table_key), ids)
        after = self._row_ids(self._in_source(table_key), ids)
        return tuple(
            Edit(table_key, each, (before.get(each), after.get(each)))
            for each in ids.to_pylist()
            if each in before or each in after
        )

    # Reading

    def _row_ids(self, handle: TableHandle, ids: pa.Array) -> dict[str, int]:
        rows = self._scan(handle, [ID, _ROW_ID], ID, ids)
        return dict(zip(rows[ID].to_pylist(), rows[_ROW_ID].to_pylist(), strict=True))

    def _scan(
        self, handle: TableHandle, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        """Rows with one of `values`, asked for in several scans when there are many."""
        names, with_row_id = [name for name in columns if name != _ROW_ID], _ROW_ID in columns
        parts = [
            self.tables.reads.scan(
                handle,
                names,
                IsIn(by, values.slice(start, _IDS_PER_SCAN)),
                with_row_id=with_row_id,
            )
            for start in range(0, len(values), _IDS_PER_SCAN)
        ]
        return pa.concat_tables(parts) if parts else _schema(handle, columns).empty_table()

    def _take(self, handle: TableHandle, rows: pa.ChunkedArray, columns: list[str]) -> pa.Table:
        batches = self.tables.reads.take_stream(handle, to_row_ids(rows.drop_null()), columns)
        return pa.Table.from_batches(batches, _schema(handle, columns))

    def _in_source(self, table_key: str) -> TableHandle:
        return open_entry(self.tables, self.source.entries[table_key])

    def _open(self, table_key: str) -> TableHandle:
        entry = self.target.entries[table_key]
        self.read_versions[table_key] = entry.version
        return open_entry(self.tables, entry)


def _schema(handle: TableHandle, columns: Sequence[str]) -> pa.Schema:
    row_id = pa.field(_ROW_ID, pa.uint64())
    fields = [row_id if name == _ROW_ID else handle.schema.field(name) for name in columns]
    return pa.schema([each.remove_metadata() for each in fields])


def _drop_row(
    broken: BrokenRule,
    bad: BadRow,
    kind: ConflictKind,
    message: str,
    theirs: Sequence[Edit] | None,
) -> Contest:
    """A conflict that the target avoids by not taking the new row."""
    key, row_id = broken.entity.table_key, broken.rows[ID][bad.index].as_py()
    conflict = MergeConflict(kind.value, key, row_id, message)
    return Contest(conflict, ours=(Edit(key, row_id, None),), theirs=theirs)


def _edge_ids(node: pa.StringScalar, *edges: pa.Table) -> pa.ChunkedArray:
    """The ids of the edges that start at a node."""
    return pa.chunked_array(
        [each.filter(pc.equal(each["src"], node))[ID].combine_chunks() for each in edges],
        pa.utf8(),
    )
