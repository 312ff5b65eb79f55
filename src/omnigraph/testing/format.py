"""Readable text of any frozen value: one field a line, defaults left out. For golden cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any


def format_value(value: Any) -> str:
    """Return `value` as indented lines."""
    return "\n".join(_lines(value, 0))


def _lines(value: Any, depth: int, label: str = "") -> Iterator[str]:
    indent = "  " * depth
    if is_dataclass(value) and not isinstance(value, type):
        if type(value).__str__ is not object.__str__:
            yield f"{indent}{label}{value}"
            return
        yield f"{indent}{label}{type(value).__name__}"
        for item in fields(value):
            member = getattr(value, item.name)
            if item.compare and not is_default(item, member):
                yield from _lines(member, depth + 1, f"{item.name}: ")
    elif isinstance(value, Mapping):
        yield f"{indent}{label}".rstrip()
        for key, member in value.items():
            yield from _lines(member, depth + 1, f"{key}: ")
    elif isinstance(value, tuple) and any(map(_is_composite, value)):
        yield f"{indent}{label}".rstrip()
        for member in value:
            yield from _lines(member, depth + 1, "- ")
    else:
        yield f"{indent}{label}{_scalar(value)}"


def _is_composite(value: Any) -> bool:
    return is_dataclass(value) or isinstance(value, (tuple, Mapping))


def is_default(item: Any, member: Any) -> bool:
    """Whether a field has the value that it has when none is given."""
    if item.default is not MISSING:
        return bool(member == item.default) and type(member) is type(item.default)
    return item.default_factory is not MISSING and bool(member == item.default_factory())


def _scalar(value: Any) -> str:
    return str(value) if isinstance(value, Enum) else repr(value)
