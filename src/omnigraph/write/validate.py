"""Validate: the value rules of a type, over whole columns: required, enum, `@range`, `@check`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import Check, EntityType, NodeType, Range
from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar
from omnigraph.write.bad_rows import SHOWN_MAX, BadRow, BadRows, excerpt, shorten
from omnigraph.write.convert import null_reason
from omnigraph.write.fit import to_mask
from omnigraph.write.keys import whole_column
from omnigraph.write.matching import find_matches


def value_violations(entity: EntityType, table: pa.Table, limit: int | None = SHOWN_MAX) -> BadRows:
    """Every row of a stored table that breaks a value rule of its type."""
    return BadRows.of_batch(
        [null_violations(entity, table, limit), constraint_violations(entity, table, limit)], limit
    )


def null_violations(entity: EntityType, table: pa.Table, limit: int | None = SHOWN_MAX) -> BadRows:
    """Null in a required property or a structural column, as far as the table has them."""
    required = [*entity.structural_columns]
    required += [each.name for each in entity.properties.values() if not each.type.nullable]
    parts = [
        _violations(entity, name, table, to_mask(column.is_null()), null_reason(name), limit)
        for name in required
        if name in table.column_names and (column := whole_column(table, name)).null_count
    ]
    return BadRows.of_batch(parts, limit)


def list_constrained_columns(entity: EntityType) -> list[str]:
    """The columns with an enum, a `@range` or a `@check`."""
    enums = [each.name for each in entity.properties.values() if each.type.variants is not None]
    if not isinstance(entity, NodeType):
        return enums
    ranges, checks = entity.ranges, entity.checks
    return [*enums, *(each.property for each in ranges), *(each.property for each in checks)]


def constraint_violations(
    entity: EntityType, table: pa.Table, limit: int | None = SHOWN_MAX
) -> BadRows:
    """Values outside their enum, `@range` or `@check`. Null is exempt from all three."""
    return BadRows.of_batch(_constraint_parts(entity, table, limit), limit)


def _constraint_parts(entity: EntityType, table: pa.Table, limit: int | None) -> Iterator[BadRows]:
    for each in entity.properties.values():
        if each.type.variants is not None:
            yield _enum_violations(entity, each.name, each.type, table, limit)
    if isinstance(entity, NodeType):
        for range_ in entity.ranges:
            outside = _outside(whole_column(table, range_.property), entity, range_)
            reason = f"@range violation on {entity.name}.{range_.property}"
            yield _violations(entity, range_.property, table, outside, reason, limit)
        for check in entity.checks:
            unmatched = _find_unmatched(whole_column(table, check.property), check)
            reason = f"@check violation on {entity.name}.{check.property}"
            yield _violations(entity, check.property, table, unmatched, reason, limit)


def _violations(
    entity: EntityType,
    name: str,
    table: pa.Table,
    violating: npt.NDArray[np.bool_],
    reason: str | Callable[[object], str],
    limit: int | None,
) -> BadRows:
    def describe(row: int) -> BadRow:
        value = table.column(name)[row].as_py()
        text = reason if isinstance(reason, str) else reason(value)
        return BadRow(row, entity.name, name, excerpt(value), text)

    return BadRows.at(np.flatnonzero(violating), describe, limit)


def _enum_violations(
    entity: EntityType, name: str, type_: PropertyType, table: pa.Table, limit: int | None
) -> BadRows:
    assert type_.variants is not None
    variants = set(type_.variants)
    allowed = pa.array(type_.variants, pa.utf8())
    column = whole_column(table, name)
    texts = pc.list_flatten(column) if type_.is_list else column
    wrong = to_mask(pc.and_(texts.is_valid(), pc.invert(pc.is_in(texts, value_set=allowed))))
    if type_.is_list:
        rows = pc.list_parent_indices(column).to_numpy()[wrong]
        wrong = np.zeros(len(column), dtype=np.bool_)
        wrong[rows] = True

    def reason(value: object) -> str:
        values = value if isinstance(value, list) else [value]
        odd = next(each for each in values if each is not None and each not in variants)
        expected = ", ".join(type_.variants or ())
        return (
            f"invalid enum value '{shorten(str(odd))}' for {entity.name}.{name} "
            f"(expected: {expected})"
        )

    return _violations(entity, name, table, wrong, reason, limit)


def _outside(column: pa.Array, node: NodeType, range_: Range) -> npt.NDArray[np.bool_]:
    """Where a value is not null and not within the bounds. NaN is within none."""
    scalar = node.properties[range_.property].type.scalar
    limits = _integer_limits if scalar.is_integer else _float_limits
    lower, upper = limits(scalar, range_)
    inside = pc.and_(
        pc.greater_equal(column, pa.scalar(lower, column.type)),
        pc.less_equal(column, pa.scalar(upper, column.type)),
    )
    outside: npt.NDArray[np.bool_] = to_mask(pc.invert(inside))
    # Bounds that no value of the type lies between are empty, whatever the comparison says.
    return to_mask(column.is_valid()) if lower > upper else outside


def _integer_limits(scalar: Scalar, range_: Range) -> tuple[int, int]:
    """The same bounds in whole numbers of the column's own width, so that comparing is exact."""
    low, high = INTEGER_BOUNDS[scalar]
    lower = low if range_.lower is None else math.ceil(range_.lower)
    upper = high if range_.upper is None else math.floor(range_.upper)
    if lower > high or upper < low:
        return high, low
    return max(lower, low), min(upper, high)


def _float_limits(_scalar: Scalar, range_: Range) -> tuple[float, float]:
    """The bounds as doubles; as Arrow scalars they round to the column's width, as values do."""
    lower = -math.inf if range_.lower is None else _nearest_double(range_.lower)
    upper = math.inf if range_.upper is None else _nearest_double(range_.upper)
    return lower, upper


def _nearest_double(bound: int | float) -> float:
    try:
        return float(bound)
    except OverflowError:
        return math.inf if bound > 0 else -math.inf


def _find_unmatched(column: pa.Array, check: Check) -> npt.NDArray[np.bool_]:
    return to_mask(pc.invert(find_matches(check.pattern, column)))
