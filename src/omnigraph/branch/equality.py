"""Equality: whether two rows have the same content, column by column, typed.

Null equals null and nothing else, so it is not the empty text. Floats are equal when their bits
are, or when both are NaN. Blobs are their bytes. Values are compared in their columns, so nothing
inside a value can look like a boundary. What Lance keeps beside the columns is not looked at.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.projection import is_number_type, recast

Flags = npt.NDArray[np.bool_]


def equal_rows(first: pa.RecordBatch, second: pa.RecordBatch) -> Flags:
    """Which rows are equal; both batches have the same rows in the same order.

    A column that only one side has equals null on the other.
    """
    names = dict.fromkeys([*first.schema.names, *second.schema.names])
    result = np.ones(first.num_rows, dtype=np.bool_)
    for name in names:
        result &= equal_values(_column(first, name), _column(second, name))
    return result


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name in batch.schema.names:
        return batch.column(name)
    return pa.nulls(batch.num_rows)


def equal_values(first: pa.Array, second: pa.Array) -> Flags:
    """Which positions of two equally long arrays hold the same value."""
    first_valid, second_valid = _flags(first.is_valid()), _flags(second.is_valid())
    if first.type != second.type:
        return _equal_numbers(first, second)
    both = first_valid & second_valid
    result: Flags = np.logical_not(first_valid ^ second_valid)
    if not both.any():
        return result
    keep = pa.array(both)
    result[both] = _equal_valid(first.filter(keep), second.filter(keep))
    return result


def _equal_numbers(first: pa.Array, second: pa.Array) -> Flags:
    """As above, of a column that changed its type: a number that is still the same, and null."""
    neither = np.logical_not(_flags(first.is_valid()) | _flags(second.is_valid()))
    if not is_number_type(first.type) or not is_number_type(second.type):
        return neither
    moved, _ = recast(first, second.type)
    return neither | _flags(pc.fill_null(pc.equal(moved, second), False))


def _equal_valid(first: pa.Array, second: pa.Array) -> Flags:
    """As above, where neither side has a null."""
    if pa.types.is_floating(first.type):
        return _equal_floats(first, second)
    if pa.types.is_fixed_size_list(first.type):
        width = first.type.list_size
        if width == 0:
            return np.ones(len(first), dtype=np.bool_)
        items = equal_values(first.flatten(), second.flatten())
        rows: Flags = np.asarray(items.reshape(-1, width).all(axis=1), dtype=np.bool_)
        return rows
    if pa.types.is_list(first.type):
        return _equal_lists(first, second)
    return _flags(pc.equal(first, second))


def _equal_floats(first: pa.Array, second: pa.Array) -> Flags:
    left, right = first.to_numpy(), second.to_numpy()
    bits = np.uint32 if first.type.bit_width == 32 else np.uint64
    same = left.view(bits) == right.view(bits)
    return np.asarray(same | (np.isnan(left) & np.isnan(right)), dtype=np.bool_)


def _equal_lists(first: pa.Array, second: pa.Array) -> Flags:
    lengths = pc.list_value_length(first).to_numpy()
    result: Flags = lengths == pc.list_value_length(second).to_numpy()
    keep = pa.array(result)
    items = equal_values(first.filter(keep).flatten(), second.filter(keep).flatten())
    # How many items of each list differ: sums over a running total, which empty lists do not upset.
    differing = np.concatenate([[0], np.cumsum(~items)])
    ends = np.cumsum(lengths[result])
    starts = ends - lengths[result]
    result[result] = differing[ends] == differing[starts]
    return result


def _flags(flags: pa.BooleanArray) -> Flags:
    return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=np.bool_)
