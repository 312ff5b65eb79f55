"""Match stages: where in the enumeration of a pattern each predicate and negation is applied.

A predicate is applied at the first stage that has bound all of its variables, so that no later one
grows rows that it drops. `can_drop_later` is False from the stage on after which every row is part
of an answer: there an enumeration may stop at the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.ir.expressions import Predicate
from omnigraph.ir.variables import predicate_variables
from omnigraph.planner.plan import BlockPlan, MatchPlan, NegationPlan
from omnigraph.planner.trees import Branch, Tree

LONG_TREE = 8
"""From this many stages on, columns are put away until the end instead of copied at every stage."""

Applied: TypeAlias = Predicate | NegationPlan


@dataclass(frozen=True, slots=True)
class Stage:
    """A branch, or the start of a tree, and what can be applied once it is bound.

    `can_drop_later` says whether a row made here may still turn out to be no answer. What is in
    `put_away` is not read before the tree is done.
    """

    branch: Branch | None
    applied: tuple[Applied, ...]
    can_drop_later: bool
    put_away: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TreeStages:
    """The stages of one tree, and what its rows are joined by with those before it."""

    tree: Tree
    stages: tuple[Stage, ...]
    joined_by: tuple[Applied, ...]
    can_drop_later: bool


@dataclass(frozen=True, slots=True)
class BlockStage:
    """A block, and what can be applied once its variables are bound."""

    block: BlockPlan
    applied: tuple[Applied, ...]
    can_drop_later: bool


@dataclass(frozen=True, slots=True)
class Stages:
    """What can be applied before the first tree, the trees in order, and the blocks after them."""

    start: tuple[Applied, ...]
    trees: tuple[TreeStages, ...]
    blocks: tuple[BlockStage, ...]


def arrange_stages(plan: MatchPlan) -> Stages:
    """Say where each predicate and negation is applied: as soon as its variables are bound."""
    pending: list[Applied] = [
        *plan.pattern.across,
        *(each for each in plan.negations if each.mask_of is None),
    ]
    # From the last closing hop or either on nothing but what is pending can drop a row.
    closing = sum(
        _count_closing(tree, each) for tree in plan.trees for each in _list_branches(tree)
    )
    closing += sum(not block.is_optional for block in plan.blocks)

    def take(bound: set[str]) -> tuple[Applied, ...]:
        ready = tuple(each for each in pending if _list_variables(each) <= bound)
        pending[:] = [each for each in pending if not _list_variables(each) <= bound]
        return ready

    pattern = plan.pattern
    bound = {*pattern.outer, *pattern.outer_edges, *pattern.given}
    bound -= {name for block in plan.blocks for name in block.variables}
    start = take(bound)
    arranged: list[TreeStages] = []
    for tree in plan.trees:
        own = set(bound) if tree.root is None else set()
        stages = []
        for branch in _list_branches(tree):
            own.update(_list_bound(plan, tree, branch))
            closing -= _count_closing(tree, branch)
            applied = take(own)
            stages.append(Stage(branch, applied, bool(pending) or closing > 0))
        bound |= own
        joined_by = take(bound)
        can_drop_later = bool(pending) or closing > 0
        arranged.append(TreeStages(tree, _put_away(plan, tree, stages), joined_by, can_drop_later))
    added: list[BlockStage] = []
    for block in plan.blocks:
        bound |= block.variables
        closing -= not block.is_optional
        added.append(BlockStage(block, take(bound), bool(pending) or closing > 0))
    return Stages(start, tuple(arranged), tuple(added))


def _put_away(plan: MatchPlan, tree: Tree, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Put away what is read again only when the tree is done."""
    # Rows that are folded on the way have to show all of their columns.
    if len(stages) < LONG_TREE or any(branch.folds for branch in tree.branches):
        return tuple(stages)
    read: set[str] = set()
    shelved: list[Stage] = []
    for stage in reversed(stages):
        own = set(_list_bound(plan, tree, stage.branch))
        # What this stage binds, and what it is the last one to read before the end.
        used = own | _list_read(stage)
        shelved.append(replace(stage, put_away=frozenset(used - read) if read else frozenset()))
        read |= used
    return tuple(reversed(shelved))


def _list_bound(plan: MatchPlan, tree: Tree, branch: Branch | None) -> Iterator[str]:
    """What a branch, or the start of a tree, binds that rows hold."""
    if branch is None:
        if tree.root is not None and not tree.is_counted:
            yield tree.root
        hops = tree.closing
    else:
        if branch.is_bound:
            yield branch.child
        hops = (branch.hop, *branch.closing) if branch.is_bound else ()
    for hop in hops:
        if hop.edge_variable is not None and hop.edge_variable in plan.bound:
            yield hop.edge_variable


def _list_branches(tree: Tree) -> list[Branch | None]:
    """The start of a tree, and the branches that make or check rows."""
    return [None, *(branch for branch in tree.branches if not branch.is_tail)]


def _count_closing(tree: Tree, branch: Branch | None) -> int:
    return len(tree.closing if branch is None else branch.closing)


def _list_read(stage: Stage) -> set[str]:
    hops = () if stage.branch is None else (stage.branch.hop, *stage.branch.closing)
    ends = {end for hop in hops for end in (hop.source, hop.target)}
    return ends.union(*(_list_variables(each) for each in stage.applied))


def _list_variables(applied: Applied) -> frozenset[str]:
    if isinstance(applied, NegationPlan):
        return frozenset(applied.outer)
    return predicate_variables(applied)
