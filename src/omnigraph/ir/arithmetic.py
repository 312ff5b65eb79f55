"""Arithmetic: the types that computing gives, one rule book for the checker and every engine.

+ - *    whole numbers    I64          with a fraction    F64
/        any numbers      F64, always
%        as *; the sign is that of the dividend
+        two Strings      String
+ -      a DateTime and a duration     DateTime        a Date and whole days    Date
+ -      two durations                 duration
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.syntax.query_tree import ArithmeticOp
from omnigraph.types import DAYS, DURATION, PropertyType, Scalar

INTEGER = PropertyType(Scalar.I64, nullable=True)
FLOAT = PropertyType(Scalar.F64, nullable=True)
TEXT = PropertyType(Scalar.STRING, nullable=True)


def result_type(op: ArithmeticOp, left: PropertyType, right: PropertyType) -> PropertyType | None:
    """The type of `left op right`; None where there is none."""
    if left.is_list or right.is_list:
        return None
    if left.is_numeric and right.is_numeric:
        return FLOAT if op is ArithmeticOp.OVER else number_type((left, right))
    if op is ArithmeticOp.PLUS and left.is_text and right.is_text:
        return TEXT
    return _time_type(op, left, right) if op.is_additive else None


def _time_type(op: ArithmeticOp, left: PropertyType, right: PropertyType) -> PropertyType | None:
    if left.is_duration and right.is_duration:
        return DAYS if left.unit == right.unit == "days" else DURATION
    if op is ArithmeticOp.PLUS and left.is_duration:
        left, right = right, left
    is_date = left.scalar is Scalar.DATE and right.unit == "days"
    is_instant = left.scalar is Scalar.DATETIME and right.is_duration
    return PropertyType(left.scalar, nullable=True) if is_date or is_instant else None


def number_type(types: Sequence[PropertyType]) -> PropertyType:
    """The type of numbers brought together: whole when all of them are."""
    return INTEGER if all(each.scalar.is_integer for each in types) else FLOAT


def common_type(types: Sequence[PropertyType]) -> PropertyType | None:
    """The type of a value that comes from one of several places; None where they disagree."""
    first = types[0]
    if any(not each.compatible_with(first) for each in types):
        return None
    if all(each.is_numeric for each in types) and len({each.scalar for each in types}) > 1:
        return number_type(types)
    return PropertyType(first.scalar, first.is_list, nullable=True, dimension=first.dimension)
