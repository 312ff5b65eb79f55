"""Embedding providers behind one Protocol, and filling `@embed` vectors with them.

In: texts and a dimension. Out: unit vectors of float32, or a typed error that names the setting.

    config.py     environment → `EmbedConfig`: provider, model, address, key, patience
    embedder.py   the `Embedder` Protocol, the checks every vector passes, the model check
    mock.py       deterministic vectors, for tests and the demo; chosen by name only
    http.py       one JSON request with retries and a deadline
    openai.py  gemini.py   the two wire formats
    providers.py  `EmbedConfig` → `Embedder`, by the provider's name
    fill.py       rows with missing `@embed` vectors → the same rows with vectors
"""

from omnigraph.embed.config import EmbedConfig, Provider, config_from_environment
from omnigraph.embed.embedder import Embedder, embed_query_text
from omnigraph.embed.fill import EmbedColumn, Filled, fill_vectors
from omnigraph.embed.providers import (
    EnvironmentEmbedder,
    embedder_from_environment,
    embedder_of_documents,
    make_embedder,
)

__all__ = [
    "EmbedColumn",
    "EmbedConfig",
    "Embedder",
    "EnvironmentEmbedder",
    "Filled",
    "Provider",
    "config_from_environment",
    "embed_query_text",
    "embedder_from_environment",
    "embedder_of_documents",
    "fill_vectors",
    "make_embedder",
]
