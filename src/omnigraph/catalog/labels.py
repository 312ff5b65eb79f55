"""Labels: the property that a person would know a node by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.catalog.model import Catalog

LABELS = ("name", "title", "label", "subject", "text")
"""The properties that people know a thing by, the best first."""


def find_label(catalog: Catalog, type_name: str) -> str | None:
    """The property that a node of the type is known by; its id serves where there is none."""
    declared = catalog.nodes.get(type_name)
    if declared is None:
        return None
    texts = [each.name for each in declared.properties.values() if each.type.is_text]
    return next((name for name in LABELS if name in texts), None)


def choose_label(values: Mapping[str, Any], id_: str) -> str:
    """What a node with these values is called."""
    texts = (values.get(name) for name in LABELS)
    return next((each for each in texts if isinstance(each, str) and each), id_)
