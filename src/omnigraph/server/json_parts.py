"""JSON parts: a document with long lists as bytes, so that none of it is whole in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson


def encode_parts(value: Any) -> Iterator[bytes]:
    """Encode a JSON value.

    A list that is given as an iterator is read item by item, and what is given as a function is
    asked for when all before it was encoded.
    """
    match value:
        case Mapping():
            yield from _encode_members(value)
        case Iterator():
            yield from _encode_items(value)
        case Callable():
            yield from encode_parts(value())
        case _:
            yield orjson.dumps(value)


def _encode_members(members: Mapping[str, Any]) -> Iterator[bytes]:
    mark = b"{"
    for name, value in members.items():
        yield mark + orjson.dumps(name) + b":"
        yield from encode_parts(value)
        mark = b","
    yield b"{}" if mark == b"{" else b"}"


def _encode_items(items: Iterator[Any]) -> Iterator[bytes]:
    mark = b"["
    for each in items:
        yield mark + orjson.dumps(each)
        mark = b","
    yield b"[]" if mark == b"[" else b"]"
