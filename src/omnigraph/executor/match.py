"""Match: a planned pattern to rows of positions.

    reduce       what each variable can be bound to: filters, then messages along the trees
    not          negations that hang on one variable narrow its selection
    enumerate    rows of the bound variables, from the roots along the trees, block by block
    apply        predicates over several variables, other negations: as soon as both ends are bound
    blocks       what `optional` and `either` add to each row, in order

A tree without a bound variable is one number; trees meet as a cross product. Rows are made in
blocks of bounded size, and each block goes all the way before the next one is begun. So what is
held is one block for each step, and what the caller keeps of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.blocks import (
    add_block,
    combine,
    enter_rows,
    enter_selection,
    leave,
    match_combinations,
)
from omnigraph.executor.filters import constants_hold, rows_where
from omnigraph.executor.folding import fold_rows, join_blocks
from omnigraph.executor.joins import join
from omnigraph.executor.match_stages import Applied, BlockStage, Stage, TreeStages, arrange_stages
from omnigraph.executor.reduce import Reducer
from omnigraph.executor.rows import ANSWER, GROUPS, PRODUCT, Rows, require_room, rows_max
from omnigraph.executor.run import Run
from omnigraph.executor.sorting import first_and_ties, property_column
from omnigraph.executor.steps import Steps
from omnigraph.executor.weights import Payload
from omnigraph.index import Selection
from omnigraph.index.query_memory import require_bytes
from omnigraph.planner.plan import MatchPlan, NegationPlan

HELD_BEFORE_FOLDING = 1 << 21


@dataclass(frozen=True, slots=True)
class FirstRoots:
    """Only the first `limit` roots by a property matter, and those that tie with the last."""

    property: str
    descending: bool
    limit: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller needs of a match.

    `payload` is what variables that are only counted send. With `exists` only the distinct bindings
    matter, and weights are left out. `limit` allows to stop after that many rows of any kind,
    `first` to leave out roots that an order with a limit cannot reach. With `groups_by` only these
    variables are told apart, and with `cut` only the rows that it keeps matter.
    """

    payload: Payload = field(default_factory=Payload)
    exists: bool = False
    limit: int | None = None
    first: FirstRoots | None = None
    groups_by: frozenset[str] | None = None
    cut: Callable[[Rows], Rows] | None = None


def match_rows(
    run: Run,
    plan: MatchPlan,
    wanted: Wanted,
    *,
    selections: Mapping[str, Selection] | None = None,
    seeds: Rows | None = None,
) -> Rows:
    """The rows of a pattern. `selections` narrows its variables; `seeds` binds the outer ones.

    Without any the outer ones are those of the last stage.
    """
    _expect_paths(run, plan)
    if seeds is None and (plan.pattern.outer or plan.pattern.outer_edges):
        seeds, selections = _staged_rows(run, plan)
    reducer = Reducer(run, plan.pattern, wanted.payload, wanted.exists, dict(selections or {}))
    return _Match(run, plan, wanted, reducer, Steps(run, plan, reducer, wanted.limit), seeds).rows()


@dataclass(slots=True)
class _Match:
    run: Run
    plan: MatchPlan
    wanted: Wanted
    reducer: Reducer
    steps: Steps
    seeds: Rows | None

    def rows(self) -> Rows:
        pattern = self.plan.pattern
        if not constants_hold(self.run, pattern.constants):
            return self._nothing()
        self.reducer.filter()
        for tree in self.plan.trees:
            self.reducer.narrow(tree)
        for negation in self.plan.negations:
            if negation.mask_of is not None:
                self._mask_out(negation, negation.mask_of)
        if any(selection.count == 0 for selection in self.reducer.selections.values()):
            return self._nothing()
        for tree in self.plan.trees:
            self.reducer.reduce(tree)
        if self._is_one_root():
            return self._only_root()
        rows = self._hold(self._blocks())
        self.steps.note_made()
        return rows

    # one root: most queries by far, and the shortest

    def _is_one_root(self) -> bool:
        """Whether there is one tree, and all of it is its root and what is counted below that."""
        if self.seeds is not None or len(self.plan.trees) != 1 or self.plan.pattern.across:
            return False
        if self.plan.blocks:
            return False
        if any(negation.mask_of is None for negation in self.plan.negations):
            return False
        (tree,) = self.plan.trees
        return not tree.closing and all(branch.is_tail for branch in tree.branches)

    def _only_root(self) -> Rows:
        (tree,) = self.plan.trees
        assert tree.root is not None
        if self.reducer.selections[tree.root].count == 0:
            return self._nothing()
        if tree.is_counted:
            return self._count_tree(tree.root)
        rows = self._cut(self._roots(tree.root, can_drop=False), can_drop_later=False)
        if self.wanted.groups_by is None:
            require_room(rows.count, ANSWER)
        return rows

    # not

    def _mask_out(self, negation: NegationPlan, variable: str) -> None:
        selection = self.reducer.selections[variable]
        outer, inner = self.plan.pattern, negation.plan.pattern
        wanted = Wanted(exists=True, groups_by=frozenset({variable}))
        given = enter_selection(self.run, outer, inner, variable, selection)
        found = match_rows(self.run, negation.plan, wanted, selections={variable: given})
        if found.count:
            positions = leave(
                self.run, inner, variable, outer.nodes[variable], found.nodes[variable]
            )
            self.reducer.selections[variable] = selection.without(positions)
        self.run.note(f"not, as a mask of ${variable}", self.reducer.selections[variable].count)

    # enumerate

    def _blocks(self) -> Iterator[Rows]:
        """All rows, a block at a time."""
        stages = arrange_stages(self.plan)
        self._require_room_for_the_product(stages.trees)
        rows = self._apply(self._start(), stages.start)
        blocks = iter([rows] if rows.count else [])
        for tree in stages.trees:
            blocks = self._add_tree(blocks, tree)
        for each in stages.blocks:
            blocks = self._add_block(blocks, each)
        return blocks

    def _start(self) -> Rows:
        if self.seeds is None:
            return Rows(1)
        rows = self.seeds
        for variable, kept in self.reducer.kept_edges.items():
            if variable in rows.edges:
                rows = rows.take(kept.contains(rows.edges[variable]))
        return rows

    def _keep_selected(self, rows: Rows) -> Rows:
        for variable in self.plan.pattern.outer:
            selection = self.reducer.selections[variable]
            if not selection.is_all:
                rows = rows.take(selection.contains(rows.nodes[variable]))
        return rows

    def _require_room_for_the_product(self, trees: Sequence[TreeStages]) -> None:
        """Refuse a cross product that is too large before any part of it is made."""
        bound = [each.tree for each in trees if each.tree.root and not each.tree.is_counted]
        if len(bound) < 2 or self.wanted.limit is not None or trees[0].stages[0].can_drop_later:
            return
        # After reduction every root is part of an answer: there are at least so many rows.
        rows = math.prod(self.reducer.selections[str(tree.root)].count for tree in bound)
        require_room(rows, PRODUCT)

    def _add_tree(self, blocks: Iterator[Rows], tree: TreeStages) -> Iterator[Rows]:
        others: Rows | None = None
        for rows in blocks:
            if tree.tree.root is None:
                outer = self.plan.pattern.outer
                kept = self.steps.apply_weights(self._keep_selected(rows), outer)
                yield from self._grow(kept, tree)
            elif rows.is_unit:
                yield from self._grow_from_root(tree)
            else:
                if others is None:
                    others = self._collect(self._grow_from_root(tree))
                if others is None:
                    return
                for joined in self._cross(rows, others, tree):
                    applied = self._apply(joined, tree.joined_by)
                    yield self._cut(applied, can_drop_later=tree.can_drop_later)

    def _add_block(self, blocks: Iterator[Rows], stage: BlockStage) -> Iterator[Rows]:
        block = stage.block
        kind = Wanted(exists=not block.is_optional)
        match = partial(self._match_inner, kind)
        for rows in blocks:
            for grown in add_block(self.run, self.plan.pattern, block, rows, match):
                applied = self._apply(grown, stage.applied)
                yield self._cut(applied, can_drop_later=stage.can_drop_later)

    def _match_inner(
        self, wanted: Wanted, plan: MatchPlan, seeds: Rows, selections: Mapping[str, Selection]
    ) -> Rows:
        return match_rows(self.run, plan, wanted, selections=selections, seeds=seeds)

    def _grow_from_root(self, tree: TreeStages) -> Iterator[Rows]:
        root = tree.tree.root
        assert root is not None
        if self.reducer.selections[root].count == 0:
            return iter(())
        if tree.tree.is_counted:
            return iter([self._count_tree(root)])
        begin = tree.stages[0]
        can_drop = begin.can_drop_later or bool(begin.applied or tree.tree.closing)
        return self._grow(self._roots(root, can_drop=can_drop), tree)

    def _collect(self, blocks: Iterator[Rows]) -> Rows | None:
        held: list[Rows] = []
        count = 0
        for block in blocks:
            held.append(block)
            count += block.count
            require_room(count, ANSWER)
            _require_bytes(held)
        return join_blocks(held) if held else None

    def _cross(self, rows: Rows, others: Rows, tree: TreeStages) -> Iterator[Rows]:
        limit = self.wanted.limit
        if limit is not None and not tree.joined_by and not tree.can_drop_later:
            others = others.take(slice(0, limit))
            rows = rows.take(slice(0, -(-limit // max(others.count, 1))))
        pattern, conditions = self.plan.pattern, tree.joined_by
        return join(self.run, pattern, rows, others, conditions, stops_early=limit is not None)

    def _roots(self, root: str, *, can_drop: bool) -> Rows:
        selection = self.reducer.selections[root]
        rows = Rows(selection.count, {root: selection.positions()}, distinct=root)
        weights = self.reducer.weights.get(root)
        if weights is not None:
            rows = weights.of(selection).apply(rows)
        first = self.wanted.first
        if first is None or can_drop or rows.count <= first.limit:
            return rows
        view = self.run.view_of(root, self.plan.pattern)
        key = property_column(view, first.property, rows.nodes[root], descending=first.descending)
        return rows.take(first_and_ties(key.ascending_numbers(None), first.limit))

    def _count_tree(self, root: str) -> Rows:
        """A tree that nothing reads, as one row that stands for all its matches."""
        if self.wanted.exists:
            return Rows(1)
        weights = self.reducer.weights_of(root)
        selection = self.reducer.selections[root]
        return weights.of(selection).total(selection.count)

    def _grow(self, rows: Rows, tree: TreeStages) -> Iterator[Rows]:
        """Take each block through every stage before the next block is begun."""
        begin = tree.stages[0]
        rows = self._finish(self.steps.close(rows, tree.tree.closing), begin)
        stack = [iter([rows])]
        while stack:
            block = next(stack[-1], None)
            if block is None:
                stack.pop()
            elif block.count == 0:
                continue
            elif len(stack) == len(tree.stages):
                yield block if block.shelf is None else block.take_back()
            else:
                stack.append(self._take_stage(block, tree.stages[len(stack)]))

    def _take_stage(self, rows: Rows, stage: Stage) -> Iterator[Rows]:
        assert stage.branch is not None
        for grown in self.steps.take(rows, stage.branch):
            self.run.look_at(grown.count)
            yield self._finish(grown, stage)

    def _finish(self, rows: Rows, stage: Stage) -> Rows:
        rows = self._cut(self._apply(rows, stage.applied), can_drop_later=stage.can_drop_later)
        if stage.branch is not None and stage.branch.drops:
            rows = self.steps.drop(rows, stage.branch)
        return rows.put_away(stage.put_away) if stage.put_away else rows

    def _cut(self, rows: Rows, *, can_drop_later: bool) -> Rows:
        """Drop rows beyond the limit, when nothing that follows can drop any."""
        limit = self.wanted.limit
        if limit is None or can_drop_later or rows.count <= limit:
            return rows
        return rows.take(slice(0, limit))

    # apply

    def _apply(self, rows: Rows, applied: Sequence[Applied]) -> Rows:
        for each in applied:
            if rows.count == 0:
                return rows
            if isinstance(each, NegationPlan):
                rows = self._without(rows, each)
            else:
                rows = rows.take(rows_where(self.run, self.plan.pattern, each, rows))
        return rows

    def _without(self, rows: Rows, negation: NegationPlan) -> Rows:
        """Drop the rows for which the inner pattern has a match."""
        found = combine(rows, negation.outer, per_row=negation.is_per_row)
        match = partial(self._match_inner, Wanted(exists=True, groups_by=frozenset()))
        matched = match_combinations(self.run, self.plan.pattern, negation.plan, found.rows, match)
        is_kept = np.ones(found.rows.count, dtype=bool)
        if matched.seeds is not None:
            is_kept[matched.seeds] = False
        return rows.take(is_kept if found.of_row is None else is_kept[found.of_row])

    # hold

    def _hold(self, blocks: Iterator[Rows]) -> Rows:
        """What the caller keeps of the blocks."""
        fresh: list[Rows] = []
        kept: list[Rows] = []
        room = fold_at = min(HELD_BEFORE_FOLDING, rows_max())
        for block in blocks:
            fresh.append(block)
            count = _count(fresh)
            if self.wanted.limit is not None and count + _count(kept) >= self.wanted.limit:
                break
            _require_bytes([*kept, *fresh])
            if count > fold_at:
                kept.append(self._keep_less(join_blocks(fresh)))
                fresh = []
                if _count(kept) > min(room, rows_max()):
                    kept = [self._keep_less(join_blocks(kept))]
                    # Twice as many again: folding stays in proportion to the rows.
                    room = max(room, 2 * kept[0].count)
                require_room(_count(kept), ANSWER if self.wanted.groups_by is None else GROUPS)
        if not fresh and not kept:
            return self._nothing()
        if not kept:
            return join_blocks(fresh)
        if fresh:
            kept.append(self._keep_less(join_blocks(fresh)))
        return self._keep_less(join_blocks(kept))

    def _keep_less(self, rows: Rows) -> Rows:
        if self.wanted.groups_by is not None:
            names = [*rows.nodes, *rows.edges]
            rows = self.steps.forget(rows, [n for n in names if n not in self.wanted.groups_by])
            return fold_rows(rows, exists=self.wanted.exists)
        return rows if self.wanted.cut is None else self.wanted.cut(rows)

    def _nothing(self) -> Rows:
        empty = np.empty(0, dtype=np.int64)
        pattern = self.plan.pattern
        known = [*pattern.nodes, *pattern.given]
        nodes = {name: empty for name in known if name in self.plan.bound}
        edges = {name: empty for name in pattern.edge_types() if name in self.plan.bound}
        return Rows(0, nodes, edges, seeds=empty)


def _expect_paths(run: Run, plan: MatchPlan) -> None:
    """Know what paths are made of, also when there turns out to be none."""
    for hop in plan.pattern.hops:
        if hop.edge_variable is not None and not hop.is_single:
            run.paths(hop)
    for block in plan.blocks:
        for inner in block.plans:
            _expect_paths(run, inner)


def _staged_rows(run: Run, plan: MatchPlan) -> tuple[Rows, dict[str, Selection]]:
    staged = run.staged
    assert staged is not None, "a match that hangs on outer variables is seeded"
    return enter_rows(run, staged.pattern, plan.pattern, staged.rows.take(slice(None)))


def _require_bytes(blocks: Sequence[Rows]) -> None:
    """Refuse blocks that cannot be held, and joined beside that; one is as large as blocks are."""
    if len(blocks) > 1:
        require_bytes(2 * sum(block.nbytes for block in blocks))


def _count(blocks: Sequence[Rows]) -> int:
    return sum(block.count for block in blocks)
