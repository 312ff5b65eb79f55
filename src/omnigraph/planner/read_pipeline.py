"""Read the pipeline: the typed query as a first plan, which binds everything and filters last.

    match { $p: Person { name: "Ada" }  $p knows $f  $f knows $p }  return { $f.age }

    scan $p: Person
      intersect at $f: $p along out Knows and $p along in Knows
    filter $p.name = "Ada"
    project $f.age

A hop to a variable that is already bound closes a cycle: the compiler writes it as an expansion to
a hidden variable and a `SameNode` predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import assert_never

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Aggregate, Predicate, SameNode
from omnigraph.ir.query import AntiJoin, Expand, Filter, NodeScan, Operator, QueryIR
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.plan import MatchPlan, NegationPlan, Plan
from omnigraph.planner.trees import AS_WRITTEN, grow_trees


def read_pipeline(ir: QueryIR) -> Plan:
    """Return the plan that does what the pipeline says, in its order."""
    return Plan(
        match=_read_match(ir.pipeline, {}, {}),
        returns=ir.returns,
        order=ir.order,
        limit=ir.limit,
        is_grouped=any(isinstance(item.expression, Aggregate) for item in ir.returns),
    )


def _read_match(
    pipeline: tuple[Operator, ...], outer: Mapping[str, str], outer_edges: Mapping[str, str]
) -> MatchPlan:
    """The match of a pipeline whose outer variables have these types."""
    read = _Operators(dict(outer))
    for operator in pipeline:
        read.add(operator)
    mentioned = outer.keys() & read.list_mentioned()
    pattern = Pattern(
        nodes={
            name: type_name
            for name, type_name in read.nodes.items()
            if name not in outer or name in mentioned
        },
        hops=tuple(read.hops.values()),
        across=tuple(read.predicates),
        outer=tuple(sorted(mentioned)),
        outer_edges=outer_edges,
    )
    bound = frozenset([*pattern.nodes, *pattern.edge_hops()])
    edges = pattern.edge_types()
    return MatchPlan(
        pattern=pattern,
        bound=bound,
        read=bound,
        trees=grow_trees(pattern, bound, AS_WRITTEN),
        negations=tuple(
            NegationPlan(each.outer_variables, _read_match(each.inner, read.nodes, edges))
            for each in read.negations
        ),
    )


@dataclass(slots=True)
class _Operators:
    """What the operators read so far say."""

    nodes: dict[str, str]
    hops: dict[str, Hop] = field(default_factory=dict)
    predicates: list[Predicate] = field(default_factory=list)
    negations: list[AntiJoin] = field(default_factory=list)
    scanned: set[str] = field(default_factory=set)

    def add(self, operator: Operator) -> None:
        match operator:
            case NodeScan(variable, type_name, filters):
                self.nodes[variable] = type_name
                self.scanned.add(variable)
                self.predicates.extend(filters)
            case Expand():
                self.nodes[operator.target] = operator.target_type
                self.hops[operator.target] = Hop(
                    source=operator.source,
                    target=operator.target,
                    edge=operator.edge,
                    direction=operator.direction,
                    min_hops=operator.min_hops,
                    max_hops=operator.max_hops,
                    edge_variable=operator.edge_variable,
                )
                self.predicates.extend(operator.target_filters)
            case Filter(SameNode(reached, variable)):
                self.hops[reached] = replace(self.hops[reached], target=variable)
                del self.nodes[reached]
            case Filter(predicate):
                self.predicates.append(predicate)
            case AntiJoin():
                self.negations.append(operator)
            case _:
                assert_never(operator)

    def list_mentioned(self) -> set[str]:
        """The variables that an operator names."""
        mentioned = set(self.scanned)
        for hop in self.hops.values():
            mentioned.update((hop.source, hop.target))
        for predicate in self.predicates:
            mentioned |= predicate_variables(predicate)
        for negation in self.negations:
            mentioned.update(negation.outer_variables)
        return mentioned
