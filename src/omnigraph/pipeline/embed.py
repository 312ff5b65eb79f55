"""Embed: fill the vectors of `@embed` properties while loading.

A row brings its vector, or the text to make it from, or neither. Only the second kind needs a
provider, and a load without such rows never asks for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog import EntityType
from omnigraph.embed import Embedder, Filled, embedder_of_documents, fill_vectors
from omnigraph.write.embedding import embed_columns

Settings: TypeAlias = tuple[tuple[str, str], ...]
"""The environment variables that configure a provider, as the driver has them."""

_PREFIXES = ("OMNIGRAPH_EMBED", "OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


def embed_settings(environment: Mapping[str, str]) -> Settings:
    """What a worker needs to embed as this process would."""
    wanted = {name: environment[name] for name in environment if name.startswith(_PREFIXES)}
    return tuple(sorted(wanted.items()))


def with_vectors(entity: EntityType, rows: pa.Table, settings: Settings) -> Filled:
    """Embed the source text of every row whose vector is missing."""
    return fill_vectors(rows, embed_columns(entity), lambda: _embedder(settings))


@lru_cache(maxsize=4)
def _embedder(settings: Settings) -> Embedder | None:
    return embedder_of_documents(dict(settings))
