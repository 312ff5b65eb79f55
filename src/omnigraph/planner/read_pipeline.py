"""Read the pipeline: the typed query as a first plan, which binds everything and filters last.

    match { $p: Person { name: "Ada" }  $p knows $f  $f knows $p }  return { $f.age }

    scan $p: Person
      intersect at $f: $p along out Knows and $p along in Knows
    filter $p.name = "Ada"
    project $f.age

A hop to a variable that is already bound closes a cycle: the compiler writes it as an expansion to
a hidden variable and a `SameNode` predicate. An outer variable that may be null is no variable of
an inner pattern unless a hop or a type needs it there: then null matches nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import TypeVar, assert_never, cast

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import (
    ID_PROPERTY,
    Aggregate,
    NodeRef,
    Param,
    Predicate,
    PropertyRef,
    SameNode,
)
from omnigraph.ir.query import (
    SCORE,
    AntiJoin,
    EitherMatch,
    Expand,
    Filter,
    Narrow,
    NodeScan,
    Operator,
    OptionalMatch,
    QueryIR,
    Top,
)
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.pattern import Hop, Pattern
from omnigraph.planner.plan import BlockPlan, MatchPlan, NegationPlan, Plan, StagePlan
from omnigraph.planner.trees import AS_WRITTEN, grow_trees
from omnigraph.syntax.query_tree import AggregateFunction
from omnigraph.types import PropertyType, Scalar

_T = TypeVar("_T")


def read_pipeline(ir: QueryIR) -> Plan:
    """Return the plan that does what the pipeline says, in its order."""
    stages, rest = _read_stages(ir.pipeline)
    match = _read_match(rest, _bound_after(stages), is_staged=bool(stages))
    nullable = match.pattern.nullable
    return Plan(
        match=match,
        returns=tuple(_count_known(each, nullable) for each in ir.returns),
        order=tuple(_count_known(each, nullable) for each in ir.order),
        limit=_limit(ir),
        is_grouped=ir.is_grouped or any(isinstance(i.expression, Aggregate) for i in ir.returns),
        counts=(ir.limit, ir.offset),
        finish=ir.finish,
        stages=tuple(stages),
    )


def _read_stages(
    pipeline: tuple[Operator, ...],
) -> tuple[list[StagePlan], tuple[Operator, ...]]:
    """The part before each `Top` is a stage; what is left is the match."""
    stages: list[StagePlan] = []
    begin = 0
    for place, operator in enumerate(pipeline):
        if isinstance(operator, Top):
            outer = _bound_after(stages)
            match = _read_match(pipeline[begin:place], outer, is_staged=bool(stages))
            plan = Plan(match, (), operator.order, None, is_grouped=False)
            stages.append(StagePlan(plan, operator.count, operator.score))
            begin = place + 1
    return stages, pipeline[begin:]


def _bound_after(stages: Sequence[StagePlan]) -> Pattern:
    """What rows bind after these stages."""
    if not stages:
        return Pattern({})
    pattern = stages[-1].plan.match.pattern
    types = {name: pattern.node_type(name) for name in pattern.visible_variables()}
    edges = pattern.edge_types()
    if stages[-1].score is not None:
        edges[stages[-1].score] = SCORE
    nodes = {name: found for name, found in types.items() if found is not None}
    return Pattern(nodes, outer_edges=edges, nullable=pattern.nullable)


def _limit(ir: QueryIR) -> int | None:
    """How many rows have to be made, as far as that is known before the parameters are."""
    if ir.limit is None or ir.finish is not None:
        return None
    if isinstance(ir.limit, Param) or isinstance(ir.offset, Param):
        return sys.maxsize
    return min(ir.limit + (ir.offset or 0), sys.maxsize)


def _count_known(part: _T, nullable: frozenset[str]) -> _T:
    """Count the ids of a variable that may be null: rows without one are not counted."""
    if not nullable:
        return part
    match part:
        case Aggregate(AggregateFunction.COUNT, NodeRef(variable), is_distinct=False) if (
            variable in nullable
        ):
            found = PropertyRef(variable, ID_PROPERTY, PropertyType(Scalar.STRING))
            return cast("_T", replace(part, argument=found))
        case tuple():
            return cast("_T", tuple(_count_known(each, nullable) for each in part))
        case _ if is_dataclass(part) and not isinstance(part, type):
            own = {each.name: getattr(part, each.name) for each in fields(part)}
            changed = {name: _count_known(each, nullable) for name, each in own.items()}
            return part if changed == own else cast("_T", replace(part, **changed))
    return part


def _read_match(
    pipeline: tuple[Operator, ...], outer: Pattern, *, is_staged: bool = False
) -> MatchPlan:
    """The match of a pipeline inside of this pattern.

    With `is_staged` it starts from rows that bind all of it, else from what it mentions.
    """
    known = dict(outer.nodes) | dict(outer.given)
    read = _Operators(dict(known))
    for operator in pipeline:
        read.add(operator)
    mentioned = known.keys() if is_staged else known.keys() & read.list_mentioned()
    carried = (mentioned & outer.nullable) - read.list_needed()
    nodes = {
        name: type_name
        for name, type_name in read.nodes.items()
        if name not in known or (name in mentioned and name not in carried)
    }
    edges = outer.edge_types()
    pattern = Pattern(
        nodes=nodes,
        hops=tuple(read.hops.values()),
        across=tuple(read.predicates),
        outer=tuple(sorted(mentioned - carried)),
        outer_edges=edges,
        given={name: known[name] for name in sorted(carried)} | read.added_nodes(),
        given_edges=read.added_edges(),
        nullable=frozenset(carried | (outer.nullable & edges.keys()) | read.list_nullable()),
    )
    bound = frozenset([*pattern.nodes, *pattern.edge_hops()])
    return MatchPlan(
        pattern=pattern,
        bound=bound,
        read=bound,
        trees=grow_trees(pattern, bound, AS_WRITTEN),
        negations=tuple(
            NegationPlan(each.outer_variables, _read_match(each.inner, pattern))
            for each in read.negations
        ),
        blocks=tuple(_read_blocks(read.blocks, pattern)),
    )


def _read_blocks(
    blocks: Sequence[OptionalMatch | EitherMatch], pattern: Pattern
) -> Iterator[BlockPlan]:
    """The blocks of a pattern; each sees what those before it have added."""
    later = {name for block in blocks for name, _ in (*block.nodes, *block.edges)}
    for block in blocks:
        inner = (block.inner,) if isinstance(block, OptionalMatch) else block.alternatives
        outer = pattern.without(later)
        yield BlockPlan(
            isinstance(block, OptionalMatch),
            block.outer_variables,
            tuple(_read_match(each, outer) for each in inner),
            dict(block.nodes),
            dict(block.edges),
        )
        later.difference_update(name for name, _ in (*block.nodes, *block.edges))


@dataclass(slots=True)
class _Operators:
    """What the operators read so far say."""

    nodes: dict[str, str]
    hops: dict[str, Hop] = field(default_factory=dict)
    predicates: list[Predicate] = field(default_factory=list)
    negations: list[AntiJoin] = field(default_factory=list)
    blocks: list[OptionalMatch | EitherMatch] = field(default_factory=list)
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
                    mode=operator.mode,
                    filters=operator.hop_filters,
                    weight=operator.weight,
                    is_reversed=operator.is_reversed,
                )
                self.predicates.extend(operator.target_filters)
            case Filter(SameNode(reached, variable)):
                self.hops[reached] = replace(self.hops[reached], target=variable)
                del self.nodes[reached]
            case Filter(predicate):
                self.predicates.append(predicate)
            case AntiJoin():
                self.negations.append(operator)
            case Narrow(variable, type_name):
                self.nodes[variable] = type_name
                self.scanned.add(variable)
            case OptionalMatch() | EitherMatch():
                self.blocks.append(operator)
            case Top():
                raise AssertionError("a stage ends here")
            case _:
                assert_never(operator)

    def list_mentioned(self) -> set[str]:
        """The variables that an operator names."""
        mentioned = self.list_needed()
        for predicate in self.predicates:
            mentioned |= predicate_variables(predicate)
        for each in (*self.negations, *self.blocks):
            mentioned.update(each.outer_variables)
        return mentioned

    def list_needed(self) -> set[str]:
        """The variables that have to be bound to a node for anything to match."""
        needed = set(self.scanned)
        for hop in self.hops.values():
            needed.update((hop.source, hop.target))
        return needed

    def added_nodes(self) -> dict[str, str]:
        return {name: type_name for block in self.blocks for name, type_name in block.nodes}

    def added_edges(self) -> dict[str, str]:
        return {name: edge for block in self.blocks for name, edge in block.edges}

    def list_nullable(self) -> frozenset[str]:
        """The variables that blocks add to rows and may leave null."""
        return frozenset(
            name
            for block in self.blocks
            if isinstance(block, OptionalMatch)
            for name, _ in (*block.nodes, *block.edges)
        )
