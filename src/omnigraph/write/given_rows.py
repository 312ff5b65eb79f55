"""Given rows: what the statements of a mutation run over, and the values they assign.

A plain statement runs over one row without columns; a statement after `match` over the matched
rows; one in a batched `for` over the elements. A `where` adds the rows that it found, as SELF.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConstraintError
from omnigraph.executor.evaluate import evaluate
from omnigraph.executor.values import Values
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.ir.expressions import PropertyRef, TextMatch
from omnigraph.ir.mutations import Assignment
from omnigraph.types import INTEGER_BOUNDS, PropertyType
from omnigraph.write.convert import python_value
from omnigraph.write.fit import fit_column
from omnigraph.write.keys import column_type
from omnigraph.write.values import unfit_reason

Fields = Mapping[str, pa.Array]


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows by variable and column. `is_matched`: rows that disagree about an entity are refused."""

    values: Values
    count: int = 1
    columns: Mapping[str, Fields] = field(default_factory=dict)
    is_matched: bool = False

    def property(self, ref: PropertyRef) -> pa.Array:
        return self.columns[ref.variable][ref.property]

    def search(self, match: TextMatch) -> BoolArray:
        raise AssertionError(f"{match} is a condition of `match`")

    def take(self, indices: IntArray) -> GivenRows:
        places = pa.array(indices)
        taken = {
            variable: {name: column.take(places) for name, column in fields.items()}
            for variable, fields in self.columns.items()
        }
        return GivenRows(self.values, len(indices), taken, self.is_matched)


def one_row(params: Mapping[str, Any]) -> GivenRows:
    """The row that a plain statement runs over."""
    return GivenRows(Values((), params))


def evaluate_assignments(
    entity: EntityType, assignments: Iterable[Assignment], given: GivenRows
) -> dict[str, pa.Array]:
    """What each assigned column gets in every row, in its stored type.

    Raises:
        ConstraintError: A value does not fit its property.
    """
    return {
        each.property: _fit(entity, each.property, evaluate(each.value, given))
        for each in assignments
    }


def _fit(entity: EntityType, name: str, values: pa.Array) -> pa.Array:
    type_ = column_type(entity, name)
    fitted = fit_column(type_, values)
    if fitted.unfit is not None:
        value = python_value(values[int(np.flatnonzero(fitted.unfit)[0])])
        raise ConstraintError(
            f"property '{name}' of {entity.name}: {_misfit(type_, value)} — nothing was written"
        )
    return fitted.values


def _misfit(type_: PropertyType, value: object) -> str:
    bounds = INTEGER_BOUNDS.get(type_.scalar)
    if bounds is not None and isinstance(value, int) and not type_.is_list:
        return f"{value} exceeds {type_.scalar} range ({bounds[0]} to {bounds[1]})"
    return unfit_reason(type_, value)


def find_entities(
    entity: EntityType, ids: pa.StringArray, values: Mapping[str, pa.Array], *, is_matched: bool
) -> tuple[pa.StringArray, IntArray]:
    """Every id once, and the row that says what it gets: the last one.

    Raises:
        BadRequestError: Matched rows give an entity different values.
    """
    encoded = ids.dictionary_encode()
    codes = encoded.indices.to_numpy()
    last = np.zeros(len(encoded.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    if is_matched and len(last) < len(codes):
        _refuse_ambiguous(entity, ids, values, last[codes])
    return encoded.dictionary, last


def _refuse_ambiguous(
    entity: EntityType, ids: pa.StringArray, values: Mapping[str, pa.Array], chosen: IntArray
) -> None:
    places = pa.array(chosen)
    for name, column in values.items():
        decided = column.take(places)
        if decided.equals(column):
            continue
        row = next(row for row in range(len(column)) if not _same(column[row], decided[row]))
        raise BadRequestError(
            f"ambiguous: rows of the match give {entity.name} {ids[row].as_py()!r} different "
            f"values for `{name}` — nothing was written; aggregate or narrow the match"
        )


def _same(left: pa.Scalar, right: pa.Scalar) -> bool:
    return bool(left.equals(right))


def without_null_ids(ids: pa.StringArray, given: GivenRows) -> tuple[pa.StringArray, GivenRows]:
    """The rows that have an entity: what an `optional` did not find is skipped."""
    if ids.null_count == 0:
        return ids, given
    kept = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
    return ids.drop_null(), given.take(kept)


def replace_columns(
    rows: pa.Table, values: Mapping[str, pa.Array], places: IntArray | None = None
) -> pa.Table:
    """The rows with other values in some columns, taken from `places` of the values."""
    for name, column in values.items():
        taken = column if places is None else column.take(pa.array(places))
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), taken)
    return rows


def find_places(wanted: pa.Array, among: pa.Array) -> IntArray:
    """Where each of `wanted` stands in `among`; -1 for what does not."""
    found = pc.index_in(wanted, value_set=among)
    return np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int64)
