"""Paths: what a walk may be, and which of its edges it may follow.

shortest, all shortest    may go on without an end; every other walk has a last hop (T15)
{… where c}               reads the edge of each hop by bare words, and nothing else (T38)
by weight                 plain shortest, no numbers in the bounds, a numeric property (T37)
hops nodes edges cost     the only use of a path variable (T36); cost has a weight
nodes($t, p)              a property of both ends' types, edges($t, p) one of the edge (T6)
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import EdgeType
from omnigraph.compiler.check_filters import check_filter
from omnigraph.compiler.scope import PathVariable, Scope, Words
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.query import HOP_VARIABLE, WalkMode, is_walk
from omnigraph.syntax.query_tree import Shortest, Traversal

_MODES = {
    None: WalkMode.REACH,
    Shortest.ANY: WalkMode.SHORTEST,
    Shortest.ALL: WalkMode.ALL_SHORTEST,
}


def walk_mode(clause: Traversal) -> WalkMode:
    """What a traversal leads to."""
    return _MODES[clause.shortest]


def is_path(clause: Traversal) -> bool:
    """Whether the variable of a traversal is a path."""
    return is_walk(clause.min_hops, clause.max_hops, walk_mode(clause))


def bind_path(clause: Traversal, name: str, ends: tuple[str, str], scope: Scope) -> None:
    """Bind the variable of a walk between these types."""
    edge = scope.catalog.edge(clause.edge)
    assert edge is not None
    scope.paths[name] = PathVariable(edge, *ends, has_weight=clause.weight is not None)


def check_weight(clause: Traversal, edge: EdgeType) -> None:
    """Require of `by` what it needs (T37)."""
    if clause.weight is None:
        return
    if clause.shortest is not Shortest.ANY:
        raise _bad_weight(
            clause,
            "by needs shortest: it looks for the path of least weight",
            f"write `shortest {clause.edge} by {clause.weight}`",
        )
    if clause.has_bounds:
        raise _bad_weight(clause, "by needs shortest without numbers in its bounds")
    found = edge.properties.get(clause.weight)
    if found is None:
        raise _bad_weight(
            clause,
            f"edge {edge.name} has no property `{clause.weight}`, and by needs a numeric one",
            did_you_mean(clause.weight, edge.properties),
        )
    if not found.type.is_numeric:
        raise _bad_weight(
            clause,
            f"by needs a numeric property, and `{clause.weight}` is {found.type}",
            "leave `by` out to count hops",
        )


def _bad_weight(clause: Traversal, message: str, hint: str | None = None) -> TypeCheckError:
    return TypeCheckError(message, code="T37", span=clause.edge_span, hint=hint)


def check_hop_filter(clause: Traversal, edge: EdgeType, scope: Scope) -> tuple[Predicate, ...]:
    """Type the condition on every hop. It reads the edge variable when there is one."""
    if clause.hop_filter is None:
        return ()
    variable = None if is_path(clause) else clause.edge_variable
    inner = replace(
        scope,
        variables={},
        paths={},
        scores={},
        words=Words(variable or HOP_VARIABLE, edge, "T38"),
    )
    return tuple(check_filter(clause.hop_filter, inner))
