"""Walk: every node of a tree or a typed expression, the outer ones first; and put others there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any


def walk(part: object) -> Iterator[object]:
    """Yield `part` and whatever it consists of."""
    if isinstance(part, tuple):
        for each in part:
            yield from walk(each)
    elif is_dataclass(part):
        yield part
        for field in fields(part):
            yield from walk(getattr(part, field.name))


def rebuild(part: Any, change: Callable[[Any], Any]) -> Any:
    """Return `part` with whatever it consists of as `change` gives it; None leaves a node."""
    if isinstance(part, tuple):
        return tuple(rebuild(each, change) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changed = change(part)
    if changed is not None:
        return changed
    found = {field.name: getattr(part, field.name) for field in fields(part)}
    return replace(part, **{name: rebuild(value, change) for name, value in found.items()})
