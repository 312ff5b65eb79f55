"""Merge filters: turn a pipeline into a pattern, with every predicate beside what it is about.

over no variable      once per query
over one variable     to the scan or expansion that binds it
over several          where the last of them is bound
same node             closes a cycle: the expansion before it leads to the bound variable
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from omnigraph.ir.expressions import Predicate, SameNode
from omnigraph.ir.query import AntiJoin, Expand, Filter, NodeScan, Operator
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Hop, Negation, Pattern


def merge_filters(
    pipeline: tuple[Operator, ...],
    outer: Mapping[str, str] | None = None,
    outer_edges: Mapping[str, str] | None = None,
) -> Pattern:
    """Return the pattern of a pipeline whose outer variables have these types."""
    gathered = _Gathered(dict(outer or {}), dict(outer_edges or {}))
    for operator in pipeline:
        gathered.add(operator)
    return gathered.finish(pipeline, frozenset(outer or {}))


@dataclass(slots=True)
class _Gathered:
    """A pattern while its operators are read, in order."""

    nodes: dict[str, str]
    outer_edges: dict[str, str]
    hops: dict[str, Hop] = field(default_factory=dict)
    predicates: list[Predicate] = field(default_factory=list)
    negations: list[AntiJoin] = field(default_factory=list)

    def add(self, operator: Operator) -> None:
        match operator:
            case NodeScan(variable, type_name, filters):
                self.nodes[variable] = type_name
                self.predicates.extend(filters)
            case Expand():
                self.nodes[operator.target] = operator.target_type
                self.hops[operator.target] = _hop(operator)
                self.predicates.extend(operator.target_filters)
            case Filter(SameNode(reached, variable)):
                self.hops[reached] = replace(self.hops[reached], target=variable, closes=True)
                del self.nodes[reached]
            case Filter(predicate):
                self.predicates.append(predicate)
            case AntiJoin():
                self.negations.append(operator)
            case _:
                assert_never(operator)

    def finish(self, pipeline: tuple[Operator, ...], outer: frozenset[str]) -> Pattern:
        filters: dict[str, tuple[Predicate, ...]] = {}
        across: list[Predicate] = []
        constants: list[Predicate] = []
        for predicate in self.predicates:
            variables = sorted(predicate_variables(predicate))
            match variables:
                case []:
                    constants.append(predicate)
                case [only]:
                    filters[only] = (*filters.get(only, ()), predicate)
                case _:
                    across.append(predicate)
        hops = tuple(self.hops.values())
        own_edges = {hop.edge_variable: hop.edge for hop in hops if hop.edge_variable}
        mentioned = outer.intersection(_list_variables(pipeline))
        return Pattern(
            nodes={
                name: type_name
                for name, type_name in self.nodes.items()
                if name not in outer or name in mentioned
            },
            hops=tuple(hop for hop in hops if not hop.closes),
            closing=tuple(hop for hop in hops if hop.closes),
            filters=filters,
            across=tuple(across),
            constants=tuple(constants),
            negations=tuple(
                Negation(negation.outer_variables, self._inner(negation, own_edges))
                for negation in self.negations
            ),
            outer=tuple(sorted(mentioned)),
            outer_edges=self.outer_edges,
        )

    def _inner(self, negation: AntiJoin, own_edges: dict[str, str]) -> Pattern:
        return merge_filters(negation.inner, self.nodes, self.outer_edges | own_edges)


def _hop(expand: Expand) -> Hop:
    return Hop(
        source=expand.source,
        target=expand.target,
        edge=expand.edge,
        direction=expand.direction,
        min_hops=expand.min_hops,
        max_hops=expand.max_hops,
        edge_variable=expand.edge_variable,
    )


def _list_variables(pipeline: tuple[Operator, ...]) -> Iterator[str]:
    for operator in pipeline:
        match operator:
            case NodeScan(variable, _, filters):
                yield variable
                yield from _variables_of(filters)
            case Expand():
                yield operator.source
                yield operator.target
                yield from _variables_of(operator.target_filters)
            case Filter(predicate):
                yield from predicate_variables(predicate)
            case AntiJoin(outer_variables, _):
                yield from outer_variables
            case _:
                assert_never(operator)


def _variables_of(predicates: tuple[Predicate, ...]) -> Iterator[str]:
    for predicate in predicates:
        yield from predicate_variables(predicate)
