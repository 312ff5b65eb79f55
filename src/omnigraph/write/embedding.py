"""Embedding on write: which vectors of a type may be missing, because a text makes them."""

from __future__ import annotations

from omnigraph.catalog import EntityType
from omnigraph.embed import EmbedColumn


def embed_columns(entity: EntityType) -> tuple[EmbedColumn, ...]:
    """The vector properties that may be missing from a row: they are made from a text."""
    return tuple(
        EmbedColumn(
            each.name,
            each.embed.source,
            each.type.dimension or 0,
            each.type.nullable,
            each.embed.model,
        )
        for each in entity.properties.values()
        if each.embed is not None
    )
