"""Touched tables: what a mutation may write and must read, known from its IR alone.

The set is a superset of what the run will really touch, so the writer queues taken for it cover
every table whose movement could make the write wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir.mutations import (
    Delete,
    DeleteBound,
    Insert,
    MutationIR,
    PlainOp,
    Update,
    UpdateBound,
    Upsert,
)


@dataclass(frozen=True, slots=True)
class TouchedTables:
    """Table keys a write may change, and table keys its validation looks at."""

    written: frozenset[str]
    read: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.written | self.read


def tables_of_mutation(ir: MutationIR, catalog: Catalog) -> TouchedTables:
    """The tables of every statement, cascades, endpoint checks and the match included."""
    ops = ir.list_plain_ops()
    written = {key for op in ops for key in _written(op, catalog)}
    read = {key for op in ops for key in _checked(op, catalog)} | tables_of_match(ir, catalog)
    return TouchedTables(frozenset(written), frozenset(read - written))


def tables_of_match(ir: MutationIR, catalog: Catalog) -> frozenset[str]:
    """The tables whose rows the match is solved on."""
    if ir.match is None:
        return frozenset()
    from omnigraph.compiler.describe import describe

    reads = describe(ir.match, catalog).reads
    return frozenset(f"{use.kind}:{use.type_name}" for use in reads)


def find_decisive_tables(ir: MutationIR, catalog: Catalog) -> frozenset[str]:
    """The tables whose rows decide what is written: when one moves, the write is stale.

    None for inserts and upserts, which mean the same whatever is there.
    """
    decided = ir.list_plain_ops()
    if ir.match is None:
        decided = [op for op in decided if not isinstance(op, (Insert, Upsert))]
    written = {key for op in decided for key in _written(op, catalog)}
    return tables_of_match(ir, catalog) | written


def _written(op: PlainOp, catalog: Catalog) -> Iterator[str]:
    yield f"{op.entity_kind}:{op.type_name}"
    if isinstance(op, (Delete, DeleteBound)) and op.entity_kind == "node":
        yield from (edge.table_key for edge in catalog.edges_of(op.type_name))


def _checked(op: PlainOp, catalog: Catalog) -> Iterable[str]:
    """The tables that the rules of the schema are checked against."""
    match op:
        case Insert("edge", name) | Upsert("edge", name) | Update("edge", name):
            edge = catalog.edges[name]
            return (f"node:{edge.source}", f"node:{edge.target}")
        case UpdateBound("edge", name):
            edge = catalog.edges[name]
            return (f"node:{edge.source}", f"node:{edge.target}")
        case Delete("edge", name) | DeleteBound("edge", name):
            # A removed edge can break its source's minimum, unless that source goes as well.
            return (f"node:{catalog.edges[name].source}",)
        case Delete() | DeleteBound():
            return [f"node:{edge.source}" for edge in catalog.edges_of(op.type_name)]
        case Insert() | Upsert() | Update() | UpdateBound():
            return ()
        case _:
            assert_never(op)
