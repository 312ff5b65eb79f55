"""Broken rules: which rows of a table would break a rule that it does not have yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.catalog import EdgeType, EntityType, NodeType
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import BadRow
from omnigraph.write.integrity import (
    NO_IDS,
    UniqueGroup,
    cardinality_violations,
    duplicate_tuples,
    find_touched_sources,
    tuple_keys,
)
from omnigraph.write.validate import constraint_violations


def breaking(
    tables: TableStorage,
    handle: TableHandle,
    old: EntityType,
    new: EntityType,
    rule: tuple[str, tuple[str, ...]],
) -> Iterator[pa.Array]:
    """The ids of rows that break a rule, in batches; of a bound on edges, those of the nodes.

    `old` is how the table is now, `new` how it would be with the rule.
    """
    word, members = rule
    if word == "card":
        assert isinstance(new, EdgeType)
        yield _beyond_bounds(new, tables.reads.scan(handle, ["src"])["src"].combine_chunks())
        return
    names = _old_names(old, new, members)
    if len(names) < len(members):
        return  # a property that is new as well: null in every row, which breaks no rule
    if word in ("unique", "key"):
        rows = tables.reads.scan(handle, ["id", *names]).rename_columns(["id", *members])
        yield _find_repeated(new, members, rows)
        return
    batches = (
        batch.rename_columns(["id", *members])
        for batch in tables.reads.scan_stream(handle, ["id", *names])
    )
    yield from _outside(new, word, members, batches)


def _old_names(old: EntityType, new: EntityType, members: Iterable[str]) -> list[str]:
    known = {each.property_id: each.name for each in old.properties.values()}
    # The ends of an edge are columns too, of the same name in every schema.
    ends = {name: name for name in ("src", "dst") if isinstance(new, EdgeType)}
    wanted = [ends.get(name) or known.get(new.properties[name].property_id) for name in members]
    return [name for name in wanted if name is not None]


def _find_repeated(new: EntityType, members: tuple[str, ...], rows: pa.Table) -> pa.Array:
    group = UniqueGroup(new.name, members)
    found = duplicate_tuples(group, tuple_keys(new, group, rows), limit=None)
    return rows["id"].combine_chunks().take(_indexes_of(found))


def _outside(
    new: EntityType, word: str, members: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.Array]:
    assert isinstance(new, NodeType)
    ruled = replace(
        new,
        properties={name: new.properties[name] for name in members},
        ranges=tuple(r for r in new.ranges if word == "range" and r.property in members),
        checks=tuple(c for c in new.checks if word == "check" and c.property in members),
    )
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        found = constraint_violations(ruled, rows, limit=None)
        yield rows["id"].take(np.unique([bad.index for bad in found]).astype(np.int64))


def _beyond_bounds(edge: EdgeType, sources: pa.Array) -> pa.Array:
    found = cardinality_violations(edge, written=sources, surviving=NO_IDS, limit=None)
    return find_touched_sources(sources, None, None).take(_indexes_of(found))


def _indexes_of(found: Iterable[BadRow]) -> pa.Array:
    """Where the rows are; typed, since none of them would else be of no type."""
    return pa.array([bad.index for bad in found], pa.int64())
