"""JSON form: a dataclass as a JSON object of its fields, in the order of their declaration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from omnigraph.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class JsonForm:
    """Base of the dataclasses that are reported as JSON."""

    def to_json(self) -> dict[str, Any]:
        return {each.name: to_json(getattr(self, each.name)) for each in fields(self)}


def to_json(value: Any) -> Any:
    """The JSON form of a field: enums by value, tuples as lists, dataclasses as objects."""
    match value:
        case JsonForm():
            return value.to_json()
        case StrEnum():
            return value.value
        case Mapping():
            return {name: to_json(each) for name, each in value.items()}
        case tuple() | list():
            return [to_json(each) for each in value]
        case _:
            return value


def without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out the members that are null or an empty list."""
    return {name: value for name, value in document.items() if value is not None and value != []}
