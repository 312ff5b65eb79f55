"""Overview: a graph at a glance, for notebooks: types with rows, branches, the last commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.display import Grid, Sheet
from omnigraph.manifest import MAIN

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph

_COMMITS_SHOWN = 5
_BRANCHES_SHOWN = 10


def make_overview(graph: Graph) -> Sheet:
    """What main shows now, the branches beside it, and what was done last."""
    snapshot, branches = graph.snapshot(), graph.branches()
    types = [
        (each.kind, each.name, snapshot.entries[each.table_key].row_count, _describe(each))
        for each in graph.catalog.entities()
        if each.table_key in snapshot.entries
    ]
    shown = ", ".join([MAIN, *(each for each in branches if each != MAIN)][:_BRANCHES_SHOWN])
    left_out = len(branches) - _BRANCHES_SHOWN
    facts = {"branches": f"{shown} and {left_out} more" if left_out > 0 else shown}
    latest = graph.commits(limit=_COMMITS_SHOWN).make_sheet().grids
    return Sheet(f"graph {graph.uri}", facts, [Grid(("", "type", "rows", ""), types), *latest])


def _describe(entity: EntityType) -> str:
    ends = f"{entity.source} → {entity.target}; " if isinstance(entity, EdgeType) else ""
    return f"{ends}{', '.join(entity.properties)}"
