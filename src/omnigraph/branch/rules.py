"""Rules: what the merged graph would break, although each side keeps every rule by itself.

The target keeps the rules, so only the delta can break one: a row it brings, a node it takes away
under an edge that stays, a source whose edges it adds or takes away. Nothing else is looked at.
A table that is read is remembered with its version: if it moves before the merge is published,
the merge fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.conflicts import ConflictKind, Contest, Edit
from omnigraph.branch.descent import open_entry
from omnigraph.branch.plan import TablePlan
from omnigraph.catalog import Catalog, EdgeType, EntityType, NodeType
from omnigraph.errors import MergeConflict
from omnigraph.manifest import Snapshot
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn, Predicate
from omnigraph.storage.tables import TableStorage
from omnigraph.write.integrity import (
    UniqueGroup,
    cardinality_violations,
    committed_clashes,
    duplicate_tuples,
    missing_endpoints,
    touched_sources,
    tuple_keys,
    unique_groups,
)
from omnigraph.write.validate import constraint_violations

_NO_IDS = pa.array([], pa.utf8())
_IDS_PER_SCAN = 8_192


@dataclass(slots=True)
class MergedGraph:
    """The target with the deltas laid over it, read only where a rule asks."""

    tables: TableStorage
    catalog: Catalog
    source: Snapshot
    target: Snapshot
    plans: Mapping[str, TablePlan]
    read_versions: dict[str, int] = field(default_factory=dict)

    def violations(self) -> Iterator[Contest]:
        """Everything the merge would break, by table."""
        for key in sorted(self.plans):
            yield from self._of_rows(self.plans[key])
        for edge in self.catalog.edges.values():
            yield from self._orphans(edge)
            yield from self._cardinality(edge)

    # Rows of one table

    def _of_rows(self, plan: TablePlan) -> Iterator[Contest]:
        groups = [group for group in unique_groups(plan.entity) if not _is_key(plan.entity, group)]
        ruled = _ruled_columns(plan.entity)
        columns = dict.fromkeys(["id", *ruled, *(name for each in groups for name in each.members)])
        if len(columns) == 1:
            return
        rows = self._new_rows(plan, list(columns))
        if rows.num_rows == 0:
            return
        if ruled:
            for bad in constraint_violations(plan.entity, rows, limit=None):
                row_id = rows["id"][bad.index].as_py()
                kind = ConflictKind.VALUE_CONSTRAINT_VIOLATION.value
                yield Contest(
                    MergeConflict(kind, plan.table_key, row_id, bad.reason),
                    ours=(Edit(plan.table_key, row_id, None),),
                    theirs=None,  # the row breaks the rule by itself
                )
        for group in groups:
            yield from self._unique(plan, rows, group)

    def _unique(self, plan: TablePlan, rows: pa.Table, group: UniqueGroup) -> Iterator[Contest]:
        keys = tuple_keys(plan.entity, group, rows)
        first = pc.unique(rows[group.members[0]].drop_null())
        columns = list(dict.fromkeys(["id", *group.members]))
        staying = self._staying(plan.table_key, columns, group.members[0], first)
        known = tuple_keys(plan.entity, group, staying)
        for bad in [
            *duplicate_tuples(group, keys, limit=None),
            *committed_clashes(group, keys, known, limit=None),
        ]:
            row_id = rows["id"][bad.index].as_py()
            place = pc.index(known, keys[bad.index]).as_py()
            other = f"; '{staying['id'][place].as_py()}' has it" if place >= 0 else ""
            message = f"{bad.reason} (value {bad.value_excerpt}){other}"
            # Without the row that comes in, the target keeps the rule; with the row that has the
            # value as it is in the source, the source does.
            holders = staying.filter(pc.equal(known, keys[bad.index]))["id"].combine_chunks()
            yield Contest(
                MergeConflict(ConflictKind.UNIQUE_VIOLATION.value, plan.table_key, row_id, message),
                ours=(Edit(plan.table_key, row_id, None),),
                theirs=self._as_in_source(plan.table_key, holders) if len(holders) else None,
            )

    # Edges and their ends

    def _orphans(self, edge: EdgeType) -> Iterator[Contest]:
        for side, node_name in (("src", edge.source), ("dst", edge.target)):
            yield from self._orphans_brought(edge, side, node_name)
            yield from self._orphans_left(edge, side, node_name)

    def _orphans_brought(self, edge: EdgeType, side: str, node_name: str) -> Iterator[Contest]:
        """Edges of the delta that end at a node the merged graph has not."""
        plan = self.plans.get(edge.table_key)
        if plan is None:
            return
        rows = self._new_rows(plan, ["id", side])
        if rows.num_rows == 0:
            return
        ends = rows[side].combine_chunks()
        live = self._live_nodes(node_name, ends)
        for bad in missing_endpoints(edge, side, ends, live, limit=None):  # type: ignore[arg-type]
            edge_id, node_id = rows["id"][bad.index].as_py(), ends[bad.index].as_py()
            yield Contest(
                _orphan(edge, edge_id, f"{bad.reason}: the target deleted it"),
                ours=(Edit(edge.table_key, edge_id, None),),
                theirs=self._bring_back(node_name, node_id),
            )

    def _bring_back(self, node_name: str, node_id: str) -> tuple[Edit, ...] | None:
        key = f"node:{node_name}"
        handle = open_entry(self.tables, self.source.entries[key])
        rows = self.tables.scan(handle, ["id"], IsIn("id", pa.array([node_id])), with_row_id=True)
        if rows.num_rows == 0:
            return None
        return (Edit(key, node_id, (None, rows["_rowid"][0].as_py())),)

    def _orphans_left(self, edge: EdgeType, side: str, node_name: str) -> Iterator[Contest]:
        """Edges of the target that stay while the delta takes their node away."""
        nodes = self.plans.get(f"node:{node_name}")
        if nodes is None:
            return
        gone = nodes.delta.deletes()["id"].combine_chunks()
        if len(gone) == 0:
            return
        staying = self._staying(edge.table_key, ["id", side], side, gone, with_row_id=True)
        for edge_id, node_id, row in zip(
            staying["id"].to_pylist(),
            staying[side].to_pylist(),
            staying["_rowid"].to_pylist(),
            strict=True,
        ):
            message = f"{side} '{node_id}' not found in {node_name}: the source deleted it"
            yield Contest(
                _orphan(edge, edge_id, message),
                ours=(Edit(nodes.table_key, node_id, None),),
                theirs=(Edit(edge.table_key, edge_id, (row, None)),),
            )

    def _cardinality(self, edge: EdgeType) -> Iterator[Contest]:
        plan = self.plans.get(edge.table_key)
        if plan is None or edge.cardinality.is_default:
            return
        brought = self._new_rows(plan, ["id", "src"])
        replaced = _taken(
            self.tables, plan.target, plan.delta.rows["before"].drop_null(), ["id", "src"]
        )
        written, lost = brought["src"].combine_chunks(), replaced["src"].combine_chunks()
        nodes = self.plans.get(f"node:{edge.source}")
        deleted = nodes.delta.deletes()["id"].combine_chunks() if nodes else None
        touched = touched_sources(written, lost, deleted)
        staying = self._staying(edge.table_key, ["id", "src"], "src", touched)
        for bad in cardinality_violations(
            edge,
            written=written,
            surviving=staying["src"].combine_chunks(),
            lost=lost,
            deleted_nodes=deleted,
            limit=None,
        ):
            kind, node = ConflictKind.CARDINALITY_VIOLATION.value, touched[bad.index]
            yield Contest(
                MergeConflict(kind, edge.table_key, None, bad.reason),
                ours=tuple(
                    Edit(edge.table_key, each, None)
                    for each in pc.unique(_ids_of(node, brought, replaced)).to_pylist()
                ),
                theirs=self._edges_as_in_source(edge, node, staying),
            )

    def _edges_as_in_source(
        self, edge: EdgeType, node: pa.StringScalar, staying: pa.Table
    ) -> tuple[Edit, ...]:
        """Give a node the edges that it has in the source, and no others."""
        source = open_entry(self.tables, self.source.entries[edge.table_key])
        there = self.tables.scan(source, ["id", "src"], IsIn("src", pa.array([node.as_py()])))
        ids = pc.unique(_ids_of(node, staying, there))
        in_delta = pc.is_in(ids, value_set=self.plans[edge.table_key].delta.ids)
        return self._as_in_source(edge.table_key, ids.filter(pc.invert(in_delta)))

    def _as_in_source(self, table_key: str, ids: pa.Array) -> tuple[Edit, ...]:
        """Make rows of the target what they are in the source; gone where it has none."""
        before = self._row_ids(self._open(table_key), ids)
        after = self._row_ids(open_entry(self.tables, self.source.entries[table_key]), ids)
        return tuple(
            Edit(table_key, each, (before.get(each), after.get(each)))
            for each in ids.to_pylist()
            if each in before or each in after
        )

    def _row_ids(self, handle: TableHandle, ids: pa.Array) -> dict[str, int]:
        found: dict[str, int] = {}
        for predicate in _pieces("id", ids):
            rows = self.tables.scan(handle, ["id"], predicate, with_row_id=True)
            found |= zip(rows["id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True)
        return found

    # Reading the merged graph

    def _new_rows(self, plan: TablePlan, columns: list[str]) -> pa.Table:
        """Columns of the rows that the delta brings, added or changed."""
        return _taken(self.tables, plan.source, plan.delta.rows["after"].drop_null(), columns)

    def _live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        """Those of `ids` that name a node of the merged graph."""
        key = f"node:{node_name}"
        asked = pc.unique(ids)
        plan = self.plans.get(key)
        brought = _NO_IDS
        if plan is not None:
            here = plan.delta.rows["after"].is_valid()
            brought = plan.delta.rows.filter(here)["id"].combine_chunks()
            asked = asked.filter(pc.invert(pc.is_in(asked, plan.delta.ids)))
        return pa.concat_arrays([brought, *self._found(self._open(key), "id", asked)])

    def _staying(
        self,
        table_key: str,
        columns: list[str],
        column: str,
        values: pa.Array,
        *,
        with_row_id: bool = False,
    ) -> pa.Table:
        """Rows of the target with these values that the delta does not touch."""
        handle = self._open(table_key)
        parts = [
            self.tables.scan(handle, columns, predicate, with_row_id=with_row_id)
            for predicate in _pieces(column, values)
        ]
        if not parts:
            return self.tables.scan(handle, columns, with_row_id=with_row_id, limit=0)
        rows = pa.concat_tables(parts)
        plan = self.plans.get(table_key)
        if plan is None:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=plan.delta.ids)))

    def _found(self, handle: TableHandle, column: str, values: pa.Array) -> Iterator[pa.Array]:
        for predicate in _pieces(column, values):
            yield self.tables.scan(handle, [column], predicate)[column].combine_chunks()

    def _open(self, table_key: str) -> TableHandle:
        entry = self.target.entries[table_key]
        self.read_versions[table_key] = entry.version
        return open_entry(self.tables, entry)


def _pieces(column: str, values: pa.Array) -> Iterator[Predicate]:
    for start in range(0, len(values), _IDS_PER_SCAN):
        yield IsIn(column, values.slice(start, _IDS_PER_SCAN))


def _taken(
    tables: TableStorage, handle: TableHandle, rows: pa.ChunkedArray, columns: list[str]
) -> pa.Table:
    row_ids = np.asarray(rows.to_numpy(), dtype=np.uint64)
    schema = pa.schema([handle.schema.field(name).remove_metadata() for name in columns])
    return pa.Table.from_batches(tables.take_stream(handle, row_ids, columns), schema)


def _is_key(entity: EntityType, group: UniqueGroup) -> bool:
    """A node's key is its id, and ids are compared row by row already."""
    return (
        isinstance(entity, NodeType)
        and entity.key is not None
        and set(group.members) == set(entity.key)
    )


def _ruled_columns(entity: EntityType) -> list[str]:
    """Columns with a value rule."""
    enums = [each.name for each in entity.properties.values() if each.type.variants is not None]
    if not isinstance(entity, NodeType):
        return enums
    ranges = [each.property for each in entity.ranges]
    return [*enums, *ranges, *(each.property for each in entity.checks)]


def _orphan(edge: EdgeType, edge_id: str, message: str) -> MergeConflict:
    text = f"{edge.name} '{edge_id}': {message}"
    return MergeConflict(ConflictKind.ORPHAN_EDGE.value, edge.table_key, edge_id, text)


def _ids_of(node: pa.StringScalar, *edges: pa.Table) -> pa.ChunkedArray:
    """The ids of the edges that start at a node."""
    return pa.chunked_array(
        [each.filter(pc.equal(each["src"], node))["id"].combine_chunks() for each in edges],
        pa.utf8(),
    )
