"""Python records: what a program hands over as values may be no JSON at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from omnigraph.types import is_unicode
from omnigraph.write.bad_rows import excerpt

_ENDS = ("from", "to")


def fault_of(record: Any) -> str | None:
    """What no JSON text could have spelled where the record itself is read."""
    if not isinstance(record, Mapping):
        return None
    for name in _ENDS:
        end = record.get(name)
        if isinstance(end, str) and not is_unicode(end):
            return f"`{name}` is not valid Unicode: it has a lone surrogate"
    data = record.get("data")
    if isinstance(data, Mapping):
        for name in data:
            if not isinstance(name, str):
                return f"a name of `data` is {_show(name)}, expected text"
    return None


def text_of(record: Any) -> str:
    """A record as JSON, as near as JSON comes to it."""
    try:
        return orjson.dumps(record, default=str).decode()
    except TypeError:
        # Halves of surrogate pairs and integers of any size, which only Python's own writer takes.
        pass
    try:
        return json.dumps(record, default=str, skipkeys=True)
    except (TypeError, ValueError):
        return json.dumps(_show(record))


def _show(value: object) -> str:
    try:
        return excerpt(value) or "null"
    except (TypeError, ValueError):
        return f"a value of type {type(value).__name__}"
