"""Defaults: the value of `@default`, checked against the type and the rules of its property.

A default is kept as the annotation it is written as: the shape of a schema has it among the others.
"""

from __future__ import annotations

from omnigraph.catalog.constraints import Constraints
from omnigraph.catalog.model import DEFAULT, OpaqueAnnotation
from omnigraph.catalog.patterns import compile_pattern
from omnigraph.errors import BadRequestError, ParseError
from omnigraph.source_text import Span
from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar, parse_date, parse_datetime


def check_default(
    annotation: OpaqueAnnotation, type_: PropertyType, subject: str, span: Span
) -> None:
    """Check that a row may have the value that `@default` names.

    Raises:
        ParseError: There is no value, or one that is not of the type.
    """
    if type_.is_list or type_.is_vector or type_.is_blob:
        reason = f"is not supported on {subject}, which is {type_} — only single values have one"
    elif annotation.value is None or annotation.kwargs:
        reason = f"on {subject} takes exactly one value, as in `@default(0)`"
    elif not _is_of_type(annotation.value, type_):
        reason = f"on {subject} is not {type_}"
    else:
        return
    raise ParseError(f"@{DEFAULT} {reason}", span=span)


def check_default_rules(
    name: str, value: object, constraints: Constraints, subject: str, span: Span
) -> None:
    """Check that a row with this default would not break a rule of its own.

    Raises:
        ParseError: The default is out of range, matches no pattern, or would be every row's key.
    """
    reason = None
    if constraints.key == (name,):
        reason = "would give every row the same key — remove it, or name more properties in @key"
    for each in constraints.ranges:
        if each.property == name and isinstance(value, int | float):
            is_low = each.lower is not None and value < each.lower
            if is_low or (each.upper is not None and value > each.upper):
                reason = "is outside of its @range"
    for check in constraints.checks:
        if check.property == name and not compile_pattern(check.pattern, span).search(str(value)):
            reason = "does not match its @check"
    if reason is not None:
        raise ParseError(f"@{DEFAULT} on {subject} {reason}", span=span)


def _is_of_type(value: str | int | float | bool, type_: PropertyType) -> bool:
    match value:
        case bool():  # Before int, which a bool is too.
            return type_.scalar is Scalar.BOOL
        case int() if type_.scalar.is_integer:
            low, high = INTEGER_BOUNDS[type_.scalar]
            return low <= value <= high
        case int() | float():
            return type_.scalar.is_float
        case str():
            return _is_text_of(value, type_)


def _is_text_of(text: str, type_: PropertyType) -> bool:
    try:
        match type_.scalar:
            case Scalar.DATE:
                parse_date(text)
            case Scalar.DATETIME:
                parse_datetime(text)
            case _:
                return type_.is_text and (type_.variants is None or text in type_.variants)
    except BadRequestError:
        return False
    return True
