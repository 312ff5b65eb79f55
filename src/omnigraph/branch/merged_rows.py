"""Merged rows: a whole table as a merge leaves it, and whether it keeps the rules of its schema.

A merge that changes the schema of its target may bring rules that the target's own rows were never
checked against, so the tables with other rules are checked as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.conflicts import ConflictKind
from omnigraph.branch.plan import TablePlan
from omnigraph.branch.row_batches import take_rows, to_row_ids
from omnigraph.branch.schema_join import SchemaJoin
from omnigraph.catalog import EdgeType, EntityType
from omnigraph.errors import MergeConflict
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.integrity import (
    NO_IDS,
    cardinality_violations,
    duplicate_ids,
    duplicate_tuples,
    tuple_keys,
    unique_groups,
)
from omnigraph.write.keys import make_ids
from omnigraph.write.validate import constraint_violations, null_violations

_SHOWN_MAX = 3


def read_merged(
    tables: TableStorage, target: TableHandle, plan: TablePlan | None
) -> Iterator[pa.RecordBatch]:
    """Every row of the merged table: those of the target that stay, then the source's."""
    kept = tables.reads.scan(target, ["id"], with_row_id=True)
    if plan is None:
        return take_rows(tables, target, to_row_ids(kept["_rowid"]))
    is_gone = pc.is_in(kept["id"], value_set=plan.delta.ids)
    stay = to_row_ids(kept.filter(pc.invert(is_gone))["_rowid"])
    rows = plan.delta.rows
    taken = to_row_ids(rows.filter(rows["after"].is_valid())["after"])
    return chain(take_rows(tables, target, stay), take_rows(tables, plan.source, taken))


def find_other_rules(schema: SchemaJoin, plans: Mapping[str, TablePlan]) -> Iterator[EntityType]:
    """The types with rows that were written under another declaration than the merge has."""
    sides = [{e.type_id: e for e in each.entities()} for each in (schema.target, schema.source)]
    for entity in schema.merged.catalog.entities():
        ours, theirs = (each.get(entity.type_id) for each in sides)
        has_theirs = entity.table_key in plans and theirs != entity
        if has_theirs or (ours is not None and ours != entity):
            yield entity


def find_broken_rules(
    tables: TableStorage, entity: EntityType, target: TableHandle, plan: TablePlan | None
) -> Iterator[MergeConflict]:
    """What the rows of a merged table break of the rules of its type."""
    plain = [
        name
        for name in target.schema.names
        if name not in entity.properties or not entity.properties[name].type.is_blob
    ]
    rows = _read_columns(tables, target, plan, plain)
    properties = {name: each for name, each in entity.properties.items() if name in plain}
    for bad in _find_bad(replace(entity, properties=properties), rows):
        for each in bad.first[:_SHOWN_MAX]:
            row_id = rows["id"][each.index].as_py() if each.index < rows.num_rows else None
            yield MergeConflict(
                ConflictKind.ROWS_DO_NOT_FIT.value,
                entity.table_key,
                row_id,
                f"{each.reason}: the rule is of one side, the row of the other — change the row "
                "before the merge",
            )


def _find_bad(entity: EntityType, rows: pa.Table) -> Iterator[BadRows]:
    ids = rows["id"].combine_chunks()
    yield duplicate_ids(entity, ids)
    yield null_violations(entity, rows)
    yield constraint_violations(entity, rows)
    if entity.key is not None:
        yield make_ids(entity, rows, ids).bad
    for group in unique_groups(entity):
        yield duplicate_tuples(group, tuple_keys(entity, group, rows))
    if isinstance(entity, EdgeType) and not entity.cardinality.is_default:
        sources = rows["src"].combine_chunks()
        yield cardinality_violations(entity, written=sources, surviving=NO_IDS)


def _read_columns(
    tables: TableStorage, target: TableHandle, plan: TablePlan | None, names: list[str]
) -> pa.Table:
    rows = tables.reads.scan(target, names)
    if plan is None:
        return rows
    stay = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=plan.delta.ids)))
    delta = plan.delta.rows
    wanted = to_row_ids(delta.filter(delta["after"].is_valid())["after"])
    taken = tables.reads.take_stream(plan.source, wanted, names)
    schema = pa.schema([each.remove_metadata() for each in stay.schema])
    parts = [stay.cast(schema), *(pa.Table.from_batches([b]).cast(schema) for b in taken)]
    return pa.concat_tables(parts).combine_chunks()
