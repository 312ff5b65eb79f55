"""Load: records become one checked change of the graph, in one of three modes.

overwrite  replaces every type that occurs in the input; the others stay
append     strict insert: an id that is there already is a key conflict
merge      upsert by id; of several records of one id the last wins
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import pyarrow as pa

from omnigraph.catalog import Catalog, EdgeType
from omnigraph.errors import KeyConflict
from omnigraph.pipeline.records import TypeRecords
from omnigraph.storage.predicates import IsIn
from omnigraph.write.bad_rows import BadRows
from omnigraph.write.convert import ID, columns_from_records
from omnigraph.write.integrity import batch_duplicates, duplicate_ids, existing_ids
from omnigraph.write.keys import edge_rows, node_rows
from omnigraph.write.staging import MutationStaging, PendingMode
from omnigraph.write.touched import TouchedTables
from omnigraph.write.validate import value_violations

Groups = Mapping[str, TypeRecords]


class LoadMode(StrEnum):
    """How loaded records meet the rows that are there."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


def tables_of_load(groups: Groups, mode: LoadMode, catalog: Catalog) -> TouchedTables:
    """The loaded tables, and those that endpoint checks look at."""
    written = frozenset(groups)
    read: set[str] = set()
    for edge in catalog.edges.values():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key in written:
            read |= ends
        elif mode is LoadMode.OVERWRITE and ends & written:
            read.add(edge.table_key)
    return TouchedTables(written, frozenset(read - written))


def converted_groups(groups: Groups, mode: LoadMode) -> dict[str, pa.Table]:
    """Every group as rows in stored form.

    Raises:
        BadRowsError: Some record does not fit its type. All types are looked at first.
    """
    tables: dict[str, pa.Table] = {}
    bad: list[BadRows] = []
    for key, group in groups.items():
        table, found = _converted(group, mode)
        tables[key] = table
        bad.append(found.located(lambda row, places=group.places: places[row]))  # type: ignore[misc]
    BadRows.in_order(bad).raise_if_any()
    return tables


def _converted(group: TypeRecords, mode: LoadMode) -> tuple[pa.Table, BadRows]:
    entity = group.entity
    columns = columns_from_records(entity, group.data)
    if isinstance(entity, EdgeType):
        sources = pa.array(group.sources, pa.utf8())
        targets = pa.array(group.targets, pa.utf8())
        rows = edge_rows(entity, columns, sources, targets)
    else:
        rows = node_rows(entity, columns)
    if rows.bad:
        return rows.table, rows.bad
    found = [value_violations(entity, rows.table)]
    if mode is not LoadMode.MERGE:
        ids = rows.table[ID].combine_chunks()
        found += [batch_duplicates(entity, rows.table), duplicate_ids(entity, ids)]
    return rows.table, BadRows.of_batch(found)


def stage_load(tables: Mapping[str, pa.Table], mode: LoadMode, staging: MutationStaging) -> None:
    """Push converted rows into a staging.

    Raises:
        KeyConflict: An appended id is there already.
    """
    for key, rows in tables.items():
        entity = staging.catalog.by_table_key(key)
        assert entity is not None
        match mode:
            case LoadMode.OVERWRITE:
                staging.push(entity, PendingMode.OVERWRITE, rows, is_strict=True)
            case LoadMode.MERGE:
                staging.push(entity, PendingMode.MERGE, rows)
            case LoadMode.APPEND:
                ids = rows[ID].combine_chunks()
                handle = staging.touch(entity).handle
                committed = staging.tables.scan(handle, [ID], IsIn(ID, ids))[ID].combine_chunks()
                taken = existing_ids(ids, committed)
                if len(taken):
                    raise KeyConflict(key, taken[0].as_py())
                staging.push(entity, PendingMode.APPEND, rows)
