"""Upsert: rows that are there get the given properties and keep the rest; the others are added.

A row is there by its key. An edge without a key is there by both of its ends, and so are all
edges that run parallel to it. Rows of one batch that mean the same entity write it once, with the
values of the last of them, which is what they would leave one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from omnigraph.catalog import EdgeType, EntityType, NodeType
from omnigraph.index.arrays import IntArray
from omnigraph.ir.mutations import Upsert
from omnigraph.storage.predicates import And, IsIn
from omnigraph.write.convert import ID
from omnigraph.write.embedding import VectorFiller
from omnigraph.write.given_rows import (
    GivenRows,
    evaluate_assignments,
    find_entities,
    find_places,
    replace_columns,
)
from omnigraph.write.keys import json_arrays, key_ids
from omnigraph.write.new_rows import ENDS, make_rows
from omnigraph.write.staging import MutationStaging, PendingMode
from omnigraph.write.validate import null_violations

Values = Mapping[str, pa.Array]


def upsert_rows(
    op: Upsert, given: GivenRows, staging: MutationStaging, vectors: VectorFiller
) -> tuple[IntArray, pa.StringArray]:
    """Upsert one entity per given row; returns which given row wrote which entity."""
    entity = staging.catalog.entity(f"{op.entity_kind}:{op.type_name}")
    staging.touch(entity)
    if given.count == 0:
        return np.empty(0, dtype=np.int64), pa.array([], pa.utf8())
    values = evaluate_assignments(entity, op.assignments, given)
    null_violations(entity, pa.table(values)).raise_if_any()
    if entity.key is None:
        assert isinstance(entity, EdgeType), "the checker wants a key of a node"
        return _upsert_by_ends(entity, values, given, staging, vectors)
    return _upsert_by_key(entity, values, given, staging, vectors)


def _upsert_by_key(
    entity: EntityType,
    values: Values,
    given: GivenRows,
    staging: MutationStaging,
    vectors: VectorFiller,
) -> tuple[IntArray, pa.StringArray]:
    ids = key_ids(entity, pa.table(dict(values)))
    wanted, rows = find_entities(entity, ids, values, is_matched=given.is_matched)
    stored = staging.scan(entity, IsIn(ID, wanted))
    places = find_places(stored[ID].combine_chunks(), wanted)
    kept = {*(entity.key or ()), *ENDS}
    changed = {name: column for name, column in values.items() if name not in kept}
    _change(entity, stored, changed, rows[places], staging, vectors)
    absent = np.setdiff1d(np.arange(len(wanted)), places)
    if len(absent):
        _add(entity, values, np.sort(rows[absent]), staging, vectors)
    return np.arange(given.count), ids


def _upsert_by_ends(
    edge: EdgeType,
    values: Values,
    given: GivenRows,
    staging: MutationStaging,
    vectors: VectorFiller,
) -> tuple[IntArray, pa.StringArray]:
    pairs = _pair_ends(values)
    wanted, rows = find_entities(edge, pairs, values, is_matched=given.is_matched)
    between = And(tuple(IsIn(end, values[end].unique()) for end in ENDS))
    near = staging.scan(edge, between)
    places = find_places(_pair_ends({end: near[end].combine_chunks() for end in ENDS}), wanted)
    stored, places = near.filter(pa.array(places >= 0)), places[places >= 0]
    changed = {name: column for name, column in values.items() if name not in ENDS}
    _change(edge, stored, changed, rows[places], staging, vectors)
    absent = np.setdiff1d(np.arange(len(wanted)), places)
    ids = stored[ID].combine_chunks()
    if len(absent):
        added = _add(edge, values, rows[absent], staging, vectors)
        ids = pa.concat_arrays([ids, added[ID].combine_chunks()])
    return _spread(find_places(pairs, wanted), np.concatenate([places, absent]), ids)


def _change(
    entity: EntityType,
    stored: pa.Table,
    values: Values,
    rows: IntArray,
    staging: MutationStaging,
    vectors: VectorFiller,
) -> None:
    """Give stored rows the values of the given rows that mean them."""
    changed = replace_columns(stored, values, rows)
    if isinstance(entity, NodeType):
        changed = vectors.refill(entity, stored, changed, set(values))
    staging.push(entity, PendingMode.MERGE, changed)


def _add(
    entity: EntityType,
    values: Values,
    rows: IntArray,
    staging: MutationStaging,
    vectors: VectorFiller,
) -> pa.Table:
    places = pa.array(rows)
    taken = {name: column.take(places) for name, column in values.items()}
    added = make_rows(entity, taken, len(rows), vectors)
    mode = PendingMode.APPEND if entity.key is None else PendingMode.MERGE
    staging.push(entity, mode, added)
    return added


def _pair_ends(values: Values) -> pa.StringArray:
    """Both ends of an edge as one text; no two pairs have the same."""
    return json_arrays([values[end] for end in ENDS])


def _spread(
    entities: IntArray, owners: IntArray, ids: pa.StringArray
) -> tuple[IntArray, pa.StringArray]:
    """Which given row wrote which of `ids`: all those whose owner is its entity."""
    order = np.argsort(owners, kind="stable")
    first = np.searchsorted(owners[order], entities, side="left")
    counts = np.searchsorted(owners[order], entities, side="right") - first
    rows = np.repeat(np.arange(len(entities)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, ids.take(pa.array(order[np.repeat(first, counts) + within]))
