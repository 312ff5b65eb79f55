"""Sort clauses: one plan for one pattern, in whatever order its clauses were written.

Variables, hops, predicates and negations get an order of their own, and a hop of one edge is read
along the stored direction. What follows decides by cost, and between equals by this order. A walk
of several hops keeps its source: where it starts decides which loops count.

    match { $t: Town  $p livesIn $t  $p.age > 30  $p.name = "Ada" }  return { $t.size }

    before
        scan $t: Town
          expand $t to $p along in LivesIn
        filter $p.age > 30
        filter $p.name = "Ada"
        project $t.size
    after
        scan $p: Person
          expand $p to $t along out LivesIn
        filter $p.name = "Ada"
        filter $p.age > 30
        project $t.size
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.print import format_predicate, format_where
from omnigraph.ir.query import HIDDEN_PREFIX, Direction
from omnigraph.planner.estimate import equality_property
from omnigraph.planner.pattern import Hop
from omnigraph.planner.plan import MatchPlan, NegationPlan, Plan, Statistics
from omnigraph.planner.trees import AS_WRITTEN, grow_trees


def sort_clauses(plan: Plan, _catalog: Catalog, _statistics: Statistics) -> Plan:
    """Sort what a plan is made of."""
    return replace(plan, match=_sort(plan.match, hidden=0))


def _sort(match: MatchPlan, hidden: int) -> MatchPlan:
    """Sort one match; `hidden` names are used by those around it."""
    pattern = match.pattern
    names = _rename_hidden(pattern.hops, hidden)
    hops = [_turn(_rename(hop, names)) for hop in pattern.hops]
    nodes = {names.get(name, name): type_name for name, type_name in pattern.nodes.items()}
    renamed = replace(
        pattern,
        nodes=dict(sorted(nodes.items())),
        hops=tuple(sorted(hops, key=_hop_key)),
        across=tuple(sorted(pattern.across, key=_predicate_key)),
    )
    negations = [
        replace(each, plan=_sort(each.plan, hidden + len(names))) for each in match.negations
    ]
    blocks = tuple(
        replace(each, plans=tuple(_sort(plan, hidden + len(names)) for plan in each.plans))
        for each in match.blocks
    )
    bound = frozenset(names.get(name, name) for name in match.bound)
    return replace(
        match,
        pattern=renamed,
        bound=bound,
        read=bound,
        trees=grow_trees(renamed, bound, AS_WRITTEN),
        negations=tuple(sorted(negations, key=_negation_key)),
        blocks=blocks,
    )


def _rename_hidden(hops: tuple[Hop, ...], used: int) -> dict[str, str]:
    """Number the hidden variables by what they hang on: each is an end of one hop."""
    ends = [
        (_hop_key(_turn(without_end)), name)
        for hop in hops
        for without_end, name in (
            (replace(hop, source=""), hop.source),
            (replace(hop, target=""), hop.target),
        )
        if name.startswith(HIDDEN_PREFIX)
    ]
    ordered = dict.fromkeys(name for _, name in sorted(ends))
    return {name: f"{HIDDEN_PREFIX}{number}" for number, name in enumerate(ordered, start=used + 1)}


def _rename(hop: Hop, names: dict[str, str]) -> Hop:
    source, target = names.get(hop.source, hop.source), names.get(hop.target, hop.target)
    return replace(hop, source=source, target=target)


def _turn(hop: Hop) -> Hop:
    """The same pairs, read from the end where the stored edge starts."""
    is_turned = hop.direction is Direction.IN
    if hop.direction is Direction.BOTH:
        is_turned = hop.target < hop.source
    if not hop.is_single or not is_turned:
        return hop
    return replace(hop, source=hop.target, target=hop.source, direction=hop.direction.reverse())


def _hop_key(hop: Hop) -> tuple[object, ...]:
    return (
        hop.source, hop.target, hop.edge, hop.direction,
        hop.min_hops, -1 if hop.max_hops is None else hop.max_hops, hop.edge_variable or "",
        hop.mode, format_where(hop.filters), hop.weight or "", hop.is_reversed,
    )  # fmt: skip


def _predicate_key(predicate: Predicate) -> tuple[bool, str]:
    return equality_property(predicate) is None, format_predicate(predicate)


def _negation_key(negation: NegationPlan) -> tuple[object, ...]:
    return negation.outer, repr(negation.plan.pattern), repr(negation.plan.negations)
