"""Blocks: what `optional` and `either` add to rows, and the seeds of every inner pattern.

An inner pattern is matched once per combination of what the rows bind its outer variables to. A
combination that cannot match is no seed: one with a null that the pattern follows, or with an
entity of another type. What is found is joined back to the rows by the number of its combination:

    optional    every match; null where there is none
    either      every distinct binding of the visible variables, whichever alternative found it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import TypeAlias

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.executor.closing import split_runs
from omnigraph.executor.folding import fold_rows, join_blocks, number_rows
from omnigraph.executor.kernels import expand_runs, to_selection
from omnigraph.executor.rows import Rows
from omnigraph.executor.run import Run
from omnigraph.executor.views import UnionView
from omnigraph.index import Selection
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.planner.pattern import Pattern
from omnigraph.planner.plan import BlockPlan, MatchPlan

ROWS_PER_BLOCK = 1 << 20
_NONE: IntArray = np.empty(0, dtype=np.int64)

MatchInner: TypeAlias = Callable[[MatchPlan, Rows, dict[str, Selection]], Rows]
"""The matches of an inner plan from these seeds; outer variables are bound to the selections."""


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """`rows` has one row per combination of the outer variables, `of_row` the one of each row."""

    rows: Rows
    of_row: IntArray | None


def combine(rows: Rows, outer: Iterable[str], *, per_row: bool = False) -> Combinations:
    """The combinations that rows bind some variables to; with `per_row` each row is one."""
    names = tuple(outer)
    bare = Rows(
        rows.count,
        {name: rows.nodes[name] for name in names if name in rows.nodes},
        {name: rows.edges[name] for name in names if name in rows.edges},
    )
    if per_row or rows.distinct in names:
        return Combinations(bare, None)
    groups = number_rows(rows, names)
    assert groups.first is not None
    return Combinations(bare.take(groups.first), groups.of_row)


def match_combinations(
    run: Run, outer: Pattern, plan: MatchPlan, combinations: Rows, match: MatchInner
) -> Rows:
    """The matches of an inner plan; `seeds` of each is the number of its combination."""
    seeds = combinations.take(slice(None))
    seeds.seeds = np.arange(seeds.count)
    seeds, selections = enter_rows(run, outer, plan.pattern, seeds)
    if seeds.count == 0:
        return Rows(0, seeds=_NONE)
    return match(plan, seeds, selections)


def enter_rows(
    run: Run, outer: Pattern, inner: Pattern, rows: Rows
) -> tuple[Rows, dict[str, Selection]]:
    """The rows that an inner pattern can start from, as it binds them; and what they bind."""
    for name in inner.outer:
        fits, positions = _enter(run, outer, inner, name, rows.nodes[name])
        rows.nodes[name] = positions
        if fits is not None:
            rows = rows.take(fits)
    selections = {
        name: to_selection(rows.nodes[name], run.scanned(inner.nodes[name]).size)
        for name in inner.outer
    }
    return rows, selections


def _enter(
    run: Run, outer: Pattern, inner: Pattern, name: str, positions: IntArray
) -> tuple[BoolArray | None, IntArray]:
    """An outer variable as the inner pattern has it, and where it can be bound there."""
    fits: BoolArray | None = None
    view = run.entities(name, outer)
    if name in outer.nullable:
        fits = positions < view.size
    wanted = inner.nodes[name]
    if (
        isinstance(view, UnionView)
        and wanted in view.type_names
        and wanted != outer.node_type(name)
    ):
        positions = positions - view.start_of(wanted)
        is_inside = (positions >= 0) & (positions < run.nodes(wanted).size)
        fits = is_inside if fits is None else fits & is_inside
    return fits, positions


def enter_selection(
    run: Run, outer: Pattern, inner: Pattern, name: str, selection: Selection
) -> Selection:
    """What is selected of an outer variable, as the inner pattern has it."""
    if outer.nodes[name] == inner.nodes[name]:
        return selection
    fits, positions = _enter(run, outer, inner, name, selection.positions())
    return Selection(run.nodes(inner.nodes[name]).size, positions=positions[fits])


def leave(run: Run, inner: Pattern, name: str, wanted: str, positions: IntArray) -> IntArray:
    """What an inner pattern binds a variable to, as positions of the type it has outside."""
    found = inner.node_type(name)
    view = run.scanned(wanted)
    if isinstance(view, UnionView) and found != wanted:
        return positions + view.start_of(str(found))
    return positions


def add_block(
    run: Run, outer: Pattern, block: BlockPlan, rows: Rows, match: MatchInner
) -> Iterator[Rows]:
    """The rows with what a block adds to them, some at a time."""
    combinations = combine(rows, block.outer)
    parts = [
        _visible(run, block, plan, match_combinations(run, outer, plan, combinations.rows, match))
        for plan in block.plans
    ]
    found = parts[0] if block.is_optional else fold_rows(join_blocks(parts), exists=True)
    run.note("matched the optional" if block.is_optional else "matched the either", found.count)
    yield from _join_back(run, block, rows, combinations, found)


def _visible(run: Run, block: BlockPlan, plan: MatchPlan, found: Rows) -> Rows:
    """Matches without what stays inside of the block."""
    nodes = {
        name: leave(run, plan.pattern, name, type_name, found.nodes.get(name, _NONE))
        for name, type_name in block.nodes.items()
        if name in plan.read
    }
    edges = {name: found.edges.get(name, _NONE) for name in block.edges if name in plan.read}
    weight = found.weight if block.is_optional else None
    return Rows(found.count, nodes, edges, weight, seeds=found.seeds)


def _join_back(
    run: Run, block: BlockPlan, rows: Rows, combinations: Combinations, found: Rows
) -> Iterator[Rows]:
    """Each row beside the matches of its combination."""
    assert found.seeds is not None
    order = np.argsort(found.seeds, kind="stable")
    counts = np.bincount(found.seeds, minlength=combinations.rows.count)
    ends = np.cumsum(counts)
    starts = ends - counts
    if block.is_optional:
        # One entry after the last match stands for null.
        is_null = counts == 0
        starts = np.where(is_null, found.count, starts)
        ends = np.where(is_null, found.count + 1, ends)
    if combinations.of_row is not None:
        starts, ends = starts[combinations.of_row], ends[combinations.of_row]
    nodes = {
        name: np.append(positions[order], run.scanned(block.nodes[name]).size)
        for name, positions in found.nodes.items()
    }
    edges = {
        name: np.append(positions[order], run.followed(name, block.edges[name]).size)
        for name, positions in found.edges.items()
    }
    weight = None if found.weight is None else np.append(found.weight[order], 1)
    for part in split_runs(ends - starts, repeat(ROWS_PER_BLOCK)):
        indices, entries = expand_runs(starts[part], ends[part])
        grown = rows.take(indices + part.start)
        grown.nodes |= {name: positions[entries] for name, positions in nodes.items()}
        grown.edges |= {name: positions[entries] for name, positions in edges.items()}
        yield grown if weight is None else grown.scale(weight[entries])
