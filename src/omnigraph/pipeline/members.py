"""Members: names that a JSON object has twice, which parsers do not tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def find_repeated(text: bytes, record: object) -> str | None:
    """A member that an object, or an object in it, has twice; None when there is none.

    `record` is the text as parsed. Each member takes a colon: with no more colons than members,
    none was lost. Only texts with more are parsed again, the slow way.
    """
    if not isinstance(record, Mapping) or text.count(b":") == _count(record):
        return None
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if len(set(names)) != len(names):
            found.append(next(name for name in names if names.count(name) > 1))
        return dict(pairs)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return None
    return found[0] if found else None


def _count(record: Mapping[str, Any]) -> int:
    """The members of a record and of the objects right below it."""
    below = sum(len(each) for each in record.values() if isinstance(each, Mapping))
    return len(record) + below
