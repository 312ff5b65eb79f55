"""Drop variables: what no later step reads leaves the rows.

Before a step that makes rows more, those that became equal are added up: the fewer there are, the
less it does.

    match { $a knows $b  $b knows $c  $c knows $d  $d knows $a }  return { count($a) as n }

    before
        scan $a: Person
          expand $a to $b along out Knows
          expand $b to $c along out Knows
          count at $d: $c along out Knows and $a along in Knows
        group count($a)
    after
        scan $a: Person
          expand $a to $b along out Knows
          expand $b to $c along out Knows
          drop $b and add up equal rows
          count at $d: $c along out Knows and $a along in Knows
        group count($a)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.catalog.model import Catalog
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.estimate import Estimates
from omnigraph.planner.plan import MatchPlan, Plan, Statistics
from omnigraph.planner.trees import Branch, Tree


def drop_variables(plan: Plan, catalog: Catalog, statistics: Statistics) -> Plan:
    """Say at every step of every match which variables have been read for the last time."""

    def drop(match: MatchPlan) -> MatchPlan:
        estimates = Estimates(match.pattern, catalog, statistics)
        trees = tuple(_drop_in_tree(tree, match, estimates) for tree in match.trees)
        return replace(match, trees=trees)

    return replace(plan, match=plan.match.rewrite(drop))


def _drop_in_tree(tree: Tree, match: MatchPlan, estimates: Estimates) -> Tree:
    steps = [branch for branch in tree.branches if not branch.is_tail]
    last_use = {name: len(steps) for name in match.read}
    last_use |= dict.fromkeys(match.pattern.outer, len(steps))
    for block in match.blocks:
        last_use |= dict.fromkeys(block.outer, len(steps))
    bound_at = _places(tree, steps, match)
    for place, branch in enumerate(steps):
        for name in _reads(branch):
            last_use[name] = max(last_use.get(name, 0), place)
    for names in _read_together(match):
        # What waits for another tree is read when this one is done.
        at = max((bound_at.get(name, len(steps)) for name in names), default=0)
        for name in names:
            last_use[name] = max(last_use.get(name, 0), at)
    makes_more = [place for place, each in enumerate(steps) if _makes_more(each, estimates)]
    dropped: dict[int, list[str]] = {}
    for name, place in bound_at.items():
        at = max(last_use.get(name, 0), place, 0)
        if at + 1 < len(steps):
            dropped.setdefault(at, []).append(name)
    if not dropped:
        return tree
    changed = {
        steps[place].child: replace(
            steps[place], drops=tuple(sorted(names)), folds=place < max(makes_more, default=0)
        )
        for place, names in dropped.items()
    }
    return replace(tree, branches=tuple(changed.get(each.child, each) for each in tree.branches))


def _places(tree: Tree, steps: Sequence[Branch], match: MatchPlan) -> dict[str, int]:
    """At which step each variable is bound; -1 before the first."""
    places = {} if tree.root is None else {tree.root: -1}
    for place, branch in enumerate(steps):
        places |= dict.fromkeys(_bound_by(branch, match), place)
    return places


def _bound_by(branch: Branch, match: MatchPlan) -> Iterator[str]:
    if branch.is_bound:
        yield branch.child
        for hop in (branch.hop, *branch.closing):
            if hop.edge_variable in match.bound:
                yield str(hop.edge_variable)


def _reads(branch: Branch) -> Iterator[str]:
    for hop in (branch.hop, *branch.closing):
        yield from (hop.source, hop.target)


def _read_together(match: MatchPlan) -> Iterator[frozenset[str]]:
    """What is applied to rows as soon as they hold all of its variables."""
    for predicate in match.pattern.across:
        yield predicate_variables(predicate)
    for negation in match.negations:
        if negation.mask_of is None:
            yield frozenset(negation.outer)


def _makes_more(branch: Branch, estimates: Estimates) -> bool:
    return estimates.fan_out(branch.hop, branch.parent) > 1
