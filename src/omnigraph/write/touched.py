"""Touched tables: what a mutation may write and must read, known from its IR alone.

The set is a superset of what the run will really touch, so the writer queues taken for it cover
every table whose movement could make the write wrong.
"""

from __future__ import annotations

from typing import assert_never

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.ir import MutationIR
from omnigraph.ir.query import Delete, Insert, Update


@dataclass(frozen=True, slots=True)
class TouchedTables:
    """Table keys a write may change, and table keys its validation looks at."""

    written: frozenset[str]
    read: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.written | self.read


def tables_of_mutation(ir: MutationIR, catalog: Catalog) -> TouchedTables:
    """The tables of every statement, cascades and endpoint checks included."""
    written: set[str] = set()
    read: set[str] = set()
    for op in ir.ops:
        match op:
            case Insert("edge", name):
                edge = catalog.edges[name]
                written.add(edge.table_key)
                read |= {f"node:{edge.source}", f"node:{edge.target}"}
            case Delete("edge", name):
                written.add(f"edge:{name}")
                # A removed edge can break its source's minimum, unless that source goes as well.
                read.add(f"node:{catalog.edges[name].source}")
            case Delete(_, name):
                written.add(f"node:{name}")
                for edge in catalog.edges_of(name):
                    written.add(edge.table_key)
                    read.add(f"node:{edge.source}")
            case Insert() | Update():
                written.add(f"node:{op.type_name}")
            case _:
                assert_never(op)
    return TouchedTables(frozenset(written), frozenset(read - written))
