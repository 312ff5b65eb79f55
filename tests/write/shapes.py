"""Small node and edge types for the tests of the data rules."""

from __future__ import annotations

from typing import Any

from omnigraph.catalog.model import EdgeType, NodeType, Property
from omnigraph.types import PropertyType, Scalar

STRING = PropertyType(Scalar.STRING)
BOOL = PropertyType(Scalar.BOOL)
I32 = PropertyType(Scalar.I32)
I64 = PropertyType(Scalar.I64)
U32 = PropertyType(Scalar.U32)
U64 = PropertyType(Scalar.U64)
F32 = PropertyType(Scalar.F32)
F64 = PropertyType(Scalar.F64)
DATE = PropertyType(Scalar.DATE)
DATETIME = PropertyType(Scalar.DATETIME)
BLOB = PropertyType(Scalar.BLOB)
SCALARS = (STRING, BOOL, I32, I64, U32, U64, F32, F64, DATE, DATETIME)


def vector(dimension: int) -> PropertyType:
    return PropertyType(Scalar.VECTOR, dimension=dimension)


def enum(*variants: str) -> PropertyType:
    return PropertyType(Scalar.STRING, variants=tuple(sorted(variants)))


def list_of(type_: PropertyType) -> PropertyType:
    return PropertyType(type_.scalar, is_list=True, variants=type_.variants)


def optional(type_: PropertyType) -> PropertyType:
    return PropertyType(type_.scalar, type_.is_list, True, type_.dimension, type_.variants)


def _properties(types: dict[str, PropertyType]) -> dict[str, Property]:
    return {name: Property(name, types[name], at) for at, name in enumerate(sorted(types))}


def node(types: dict[str, PropertyType], name: str = "Thing", **rules: Any) -> NodeType:
    return NodeType(name, 1, 1, _properties(types), **rules)


def edge(types: dict[str, PropertyType] | None = None, **rules: Any) -> EdgeType:
    return EdgeType("Wrote", 2, 2, "Author", "Paper", properties=_properties(types or {}), **rules)
