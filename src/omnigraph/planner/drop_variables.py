"""Drop variables: what no later step reads leaves the rows, and equal rows are added up.

Only before a step that makes rows more: the fewer there are, the less it does.

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

from collections.abc import Iterator
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
    bound = set(match.pattern.outer if tree.root is None else (tree.root,))
    held = set(bound)
    dropped: dict[str, tuple[str, ...]] = {}
    for place, branch in enumerate(steps):
        later = steps[place + 1 :]
        bound.update(_bound_by(branch, match))
        held.update(_bound_by(branch, match))
        if not any(_makes_more(each, estimates) for each in later):
            break
        unread = held - match.read - set(match.pattern.outer)
        unread -= {name for each in later for name in _reads(each)}
        for names in _read_together(match):
            if not names <= bound:
                unread -= names
        if unread:
            dropped[branch.child] = tuple(sorted(unread))
            held -= unread
    branches = (replace(each, drops=dropped.get(each.child, ())) for each in tree.branches)
    return replace(tree, branches=tuple(branches)) if dropped else tree


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
