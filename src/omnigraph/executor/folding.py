"""Folding: rows that bind the same become one, which stands for all of them.

What is folded away leaves its values behind: sums, and least and greatest values, travel on with
the row. So a count holds one row for each thing that is still told apart, however many it counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from omnigraph.executor.grouping import Groups, group_by
from omnigraph.executor.kernels import scatter_sums
from omnigraph.executor.rows import Rows, map_sums, too_many_matches
from omnigraph.executor.weights import fold_extremes
from omnigraph.index.arrays import AnyArray, IntArray

_TOO_MANY = 2.0**62
_KEY_SPACE_MAX = 2**62
_DENSE = 4
"""Numbers are counted instead of sorted when no more than this many are possible for each row."""


def fold_rows(rows: Rows, *, exists: bool = False) -> Rows:
    """Rows that differ from each other; with `exists` each stands for itself, however often."""
    columns = [*rows.nodes.values(), *rows.edges.values()]
    if rows.seeds is not None:
        columns.append(rows.seeds)
    if rows.count <= 1:
        return rows
    spaces = [int(each.max()) + 1 for each in columns]
    is_plain = rows.weight is None and not rows.sums and not rows.extremes
    if is_plain and columns and math.prod(spaces) <= _KEY_SPACE_MAX:
        return _fold_plain(rows, columns, spaces, exists=exists)
    groups = _group(columns, spaces, rows.count)
    assert groups.first is not None
    assert groups.of_row is not None
    index, size = groups.of_row, groups.count
    folded = _with_columns(rows, size, [each[groups.first] for each in columns])
    folded.weight = None if exists else sum_weights(rows.weight, index, size)
    folded.sums = map_sums(rows.sums, lambda numbers: scatter_sums(index, numbers, size))
    folded.extremes = fold_extremes(rows.extremes, index, size)
    return folded


def _fold_plain(
    rows: Rows, columns: Sequence[IntArray], spaces: Sequence[int], *, exists: bool
) -> Rows:
    """Count or sort the rows as numbers: cheaper than to keep track of which row is where."""
    keys = columns[0].astype(np.int64)
    for column, space in zip(columns[1:], spaces[1:], strict=True):
        keys *= space
        keys += column
    space = math.prod(spaces)
    if space <= _DENSE * len(keys):
        counts = np.bincount(keys, minlength=space)
        left = np.flatnonzero(counts)
        weight = counts[left]
    else:
        keys.sort()
        firsts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        left, weight = keys[firsts], np.diff(firsts, append=rows.count)
    found: list[IntArray] = []
    for space in reversed(spaces[1:]):
        left, last = np.divmod(left, space)
        found.append(last)
    folded = _with_columns(rows, len(weight), [left, *reversed(found)])
    folded.weight = None if exists else weight
    return folded


def _with_columns(rows: Rows, count: int, columns: Sequence[IntArray]) -> Rows:
    """Rows with the same variables, bound to these."""
    left = iter(columns)
    return Rows(
        count,
        {name: next(left) for name in rows.nodes},
        {name: next(left) for name in rows.edges},
        seeds=None if rows.seeds is None else next(left),
        distinct=next(iter(rows.nodes)) if len(columns) == 1 and rows.nodes else None,
    )


def _group(columns: Sequence[IntArray], spaces: Sequence[int], rows: int) -> Groups:
    if not columns:
        return Groups(1, np.zeros(rows, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return group_by(zip(columns, spaces, strict=True), rows)


def number_rows(rows: Rows, names: Iterable[str]) -> Groups:
    """Rows that bind these variables to the same have one number."""
    columns = [rows.positions(name) for name in names]
    return _group(columns, [int(np.max(each, initial=0)) + 1 for each in columns], rows.count)


def sum_weights(weight: AnyArray | None, index: IntArray, size: int) -> AnyArray:
    """The sum of the weights of each index; more than an I64 can count is refused."""
    if weight is None:
        return np.bincount(index, minlength=size)
    if float(np.max(weight, initial=0)) * len(weight) > _TOO_MANY:
        sums = np.bincount(index, weight.astype(np.float64), size)
        if float(np.max(sums, initial=0)) > _TOO_MANY:
            raise too_many_matches()
    return scatter_sums(index, weight, size)


def join_blocks(blocks: Sequence[Rows]) -> Rows:
    """The rows of all blocks, which bind the same variables."""
    if len(blocks) == 1:
        return blocks[0]
    first = blocks[0]
    is_weighted = any(block.weight is not None for block in blocks)
    return Rows(
        sum(block.count for block in blocks),
        {name: _join(block.nodes[name] for block in blocks) for name in first.nodes},
        {name: _join(block.edges[name] for block in blocks) for name in first.edges},
        _join(_weights_of(block) for block in blocks) if is_weighted else None,
        {key: _join_sums([(block, block.sums[key]) for block in blocks]) for key in first.sums},
        {
            key: (_join(block.extremes[key][0] for block in blocks), ranks)
            for key, (_, ranks) in first.extremes.items()
        },
        _join(block.seeds for block in blocks if block.seeds is not None)
        if first.seeds is not None
        else None,
    )


def _join(parts: Iterable[AnyArray]) -> AnyArray:
    return np.concatenate(list(parts))


def _join_sums(
    parts: Sequence[tuple[Rows, tuple[AnyArray, AnyArray | None]]],
) -> tuple[AnyArray, AnyArray | None]:
    totals = _join(total for _, (total, _) in parts)
    if all(known is None for _, (_, known) in parts):
        return totals, None
    return totals, _join(
        _weights_of(block) if known is None else known for block, (_, known) in parts
    )


def _weights_of(rows: Rows) -> AnyArray:
    return np.ones(rows.count, dtype=np.int64) if rows.weight is None else rows.weight
