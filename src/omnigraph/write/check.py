"""Check: everything that must hold of a finished change, before any HEAD moves.

Each check looks only at what the write touches: new rows, the keys they bring, the nodes they
name, the sources whose edges they add or take away. A table it reads is opened through the
staging, which remembers the version: if that table moves before the commit, the check is redone
or the write fails.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.storage.predicates import IsIn
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.convert import ID
from omnigraph.write.integrity import (
    UniqueGroup,
    cardinality_violations,
    committed_clashes,
    duplicate_tuples,
    missing_endpoints,
    surviving_rows,
    tuple_keys,
    unique_groups,
)
from omnigraph.write.staging import MutationStaging, PendingMode, PendingTable
from omnigraph.write.validate import value_violations

_NO_IDS = pa.array([], pa.utf8())


def check_change(staging: MutationStaging) -> None:
    """Raise when any row breaks a rule, naming the bad rows of every table.

    Raises:
        BadRowsError: Rows break a rule of the schema. Nothing was written.
    """
    found = [part for each in list(staging.pending.values()) for part in _violations(staging, each)]
    for edge in staging.catalog.edges.values():
        found += _edge_violations(staging, edge)
    BadRows.in_order(found).raise_if_any()


def _violations(staging: MutationStaging, pending: PendingTable) -> Iterator[BadRows]:
    rows = pending.upserts()
    if rows.num_rows == 0:
        return
    yield value_violations(pending.entity, rows)
    for group in unique_groups(pending.entity):
        yield from _unique_violations(staging, pending, rows, group)


def _unique_violations(
    staging: MutationStaging, pending: PendingTable, rows: pa.Table, group: UniqueGroup
) -> Iterator[BadRows]:
    entity = pending.entity
    keys = tuple_keys(entity, group, rows)
    yield duplicate_tuples(group, keys)
    if pending.mode is PendingMode.OVERWRITE or (entity.kind == "node" and _is_key(entity, group)):
        # The new image stands alone; and equal keys are equal ids, which an upsert replaces.
        return
    first = rows[group.members[0]].combine_chunks()
    columns = list(dict.fromkeys([ID, *group.members]))
    committed = staging.tables.scan(
        pending.handle, columns, IsIn(group.members[0], pc.unique(first.drop_null()))
    )
    survivors, _ = surviving_rows(committed, _gone_ids(pending, rows))
    yield committed_clashes(group, keys, tuple_keys(entity, group, survivors))


def _is_key(entity: EntityType, group: UniqueGroup) -> bool:
    return getattr(entity, "key", None) is not None and set(group.members) == set(entity.key)  # type: ignore[union-attr,arg-type]


def _gone_ids(pending: PendingTable, rows: pa.Table) -> pa.Array:
    """Ids whose committed row the write replaces or deletes."""
    return pc.unique(pa.chunked_array([*rows[ID].chunks, pending.deleted_ids()], pa.utf8()))


def _edge_violations(staging: MutationStaging, edge: EdgeType) -> Iterator[BadRows]:
    """Endpoints of new edges, edges that lose an endpoint to an overwrite, and cardinality."""
    pending = staging.pending.get(edge.table_key)
    rows = pending.upserts() if pending is not None else None
    for side, node_name in (("src", edge.source), ("dst", edge.target)):
        if rows is not None and rows.num_rows:
            ends = rows[side].combine_chunks()
            yield missing_endpoints(edge, side, ends, _live_nodes(staging, node_name, ends))  # type: ignore[arg-type]
        yield from _orphans_of_overwrite(staging, edge, side, node_name, pending)
    if pending is not None:
        yield _cardinality(staging, edge, pending)


def _live_nodes(staging: MutationStaging, node_name: str, ids: pa.Array) -> pa.Array:
    """Those of `ids` that name a node after the write."""
    pending = staging.pending.get(f"node:{node_name}")
    new = pending.upserts()[ID].combine_chunks() if pending is not None else _NO_IDS
    if pending is not None and pending.mode is PendingMode.OVERWRITE:
        return new
    handle = staging.open(f"node:{node_name}")
    asked = pc.unique(ids)
    asked = asked.filter(pc.invert(pc.is_in(asked, new)))
    committed = staging.tables.scan(handle, [ID], IsIn(ID, asked))[ID].combine_chunks()
    if pending is not None:
        committed = committed.filter(pc.invert(pc.is_in(committed, pending.deleted_ids())))
    return pa.concat_arrays([new, committed])


def _orphans_of_overwrite(
    staging: MutationStaging,
    edge: EdgeType,
    side: str,
    node_name: str,
    edge_change: PendingTable | None,
) -> Iterator[BadRows]:
    """Committed edges that stay while their node type is replaced by a new image."""
    nodes = staging.pending.get(f"node:{node_name}")
    if nodes is None or nodes.mode is not PendingMode.OVERWRITE:
        return
    if edge_change is not None and edge_change.mode is PendingMode.OVERWRITE:
        return
    committed = staging.tables.scan(staging.open(edge.table_key), [ID, side])
    if edge_change is not None:
        gone = _gone_ids(edge_change, edge_change.upserts())
        committed, _ = surviving_rows(committed, gone)
    ends = committed[side].combine_chunks()
    yield missing_endpoints(edge, side, ends, nodes.upserts()[ID].combine_chunks())  # type: ignore[arg-type]


def _cardinality(staging: MutationStaging, edge: EdgeType, pending: PendingTable) -> BadRows:
    if edge.cardinality.is_default:
        return BadRows()
    rows = pending.upserts()
    written = rows["src"].combine_chunks()
    if pending.mode is PendingMode.OVERWRITE:
        return cardinality_violations(edge, written=written, surviving=_NO_IDS)
    gone = _gone_ids(pending, rows)
    taken = staging.tables.scan(pending.handle, [ID, "src"], IsIn(ID, gone))
    touched = pc.unique(pa.chunked_array([written, taken["src"].combine_chunks()]))
    committed = staging.tables.scan(pending.handle, [ID, "src"], IsIn("src", touched))
    survivors, lost = surviving_rows(committed, gone)
    source = staging.pending.get(f"node:{edge.source}")
    return cardinality_violations(
        edge,
        written=written,
        surviving=survivors["src"].combine_chunks(),
        lost=lost["src"].combine_chunks(),
        deleted_nodes=source.deleted_ids() if source is not None else None,
    )
