"""Backfill: what rows that exist get as the value of a new property.

`@backfill(name)` takes the value of another property as it is, or as text; `@backfill("{first}
{last}")` makes a text of several. Like a rename hint it is read once, when the property is added,
and means nothing afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

from omnigraph.catalog.model import EDGE_COLUMNS, NODE_COLUMNS, Backfill, TypeKind
from omnigraph.catalog.type_changes import judge_change
from omnigraph.errors import ParseError, did_you_mean
from omnigraph.source_text import Span
from omnigraph.syntax.schema_tree import Annotation, Identifier
from omnigraph.types import PropertyType, Scalar

_TEXT = PropertyType(Scalar.STRING)


def read_backfill(annotation: Annotation, subject: str) -> Backfill:
    """Read the argument of `@backfill`.

    Raises:
        ParseError: It is neither the name of a property nor a text with names in braces.
    """
    value = annotation.value
    if isinstance(value, Identifier) and not annotation.kwargs:
        return Backfill((("", value.name),), is_text=False)
    if isinstance(value, str) and not annotation.kwargs:
        parts = _read_parts(value)
        if parts is not None:
            return Backfill(parts, is_text=True)
    raise ParseError(
        f"@backfill on {subject} takes the name of a property, or a text with names in braces, "
        'as in `@backfill("{first} {last}")`',
        span=annotation.span,
    )


def _read_parts(text: str) -> tuple[tuple[str, str | None], ...] | None:
    try:
        parts = [(literal, name, spec) for literal, name, spec, _ in Formatter().parse(text)]
    except ValueError:
        return None
    if any(name == "" or spec for _, name, spec in parts):
        return None
    return tuple((literal, name) for literal, name, _ in parts)


def check_backfill(
    backfill: Backfill,
    name: str,
    types: Mapping[str, PropertyType],
    kind: TypeKind,
    subject: str,
    span: Span,
) -> None:
    """Check that a backfill names properties whose values can become one of property `name`.

    Raises:
        ParseError: It names something else, or values of a type that cannot be converted.
    """
    columns = EDGE_COLUMNS if kind == "edge" else NODE_COLUMNS
    known = dict.fromkeys(columns, _TEXT) | {each: types[each] for each in types if each != name}
    for member in backfill.members:
        if member not in known:
            raise ParseError(
                f"@backfill on {subject} names `{member}`, which is no other property of the type",
                span=span,
                hint=did_you_mean(member, known),
            )
        if not _can_convert(known[member], types[name], backfill.is_text):
            raise ParseError(
                f"@backfill on {subject}: `{member}` is {known[member]}, which does not become "
                f"{types[name]}",
                span=span,
            )


def _can_convert(source: PropertyType, target: PropertyType, is_text: bool) -> bool:
    if source.is_list or source.is_vector or source.is_blob:
        return not is_text and source.scalar is target.scalar and source.is_list is target.is_list
    return target.is_text or (not is_text and judge_change(source, target) is not None)
