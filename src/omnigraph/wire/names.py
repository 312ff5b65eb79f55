"""What both vocabularies call a thing."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def entity_of(table_key: str) -> Json:
    """A table key in the newer words: `node:Person` is the node type Person."""
    kind, _, name = table_key.partition(":")
    return {"entity_kind": kind, "type_name": name}
