"""Embedding providers behind one Protocol, and filling `@embed` vectors with them.

In: texts and a dimension. Out: unit vectors of float32, or a typed error that names the setting.

    config.py     environment → `EmbedConfig`: provider, model, address, key, patience
    embedder.py   the `Embedder` Protocol, the checks every vector passes, the model check
    local.py      static word vectors, offline; what is used when nothing is chosen and it fits
    sentence.py   models of sentence-transformers, when it is installed
    function.py   the embedder that a program brings
    mock.py       deterministic vectors, for tests and the demo; chosen by name only
    http.py       one JSON request with retries and a deadline
    openai.py  gemini.py   the two wire formats
    providers.py  `EmbedConfig` → `Embedder`, by the provider's name
    remember.py   an embedder that asks for no text twice
    source.py     who embeds for a property, given what is chosen and what is recorded of it
    fill.py       rows with missing `@embed` vectors → the same rows with vectors
"""

from omnigraph.embed.config import LOCAL_MODEL, EmbedConfig, Provider, config_from_environment
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.fill import FillCount, Filled, fill_vectors
from omnigraph.embed.providers import (
    embedder_from_environment,
    embedder_of_documents,
    make_embedder,
)
from omnigraph.embed.source import (
    EmbedColumn,
    EmbedSource,
    describe_default,
    embed_query_text,
    explain_missing,
)

__all__ = [
    "LOCAL_MODEL",
    "EmbedColumn",
    "EmbedConfig",
    "EmbedSource",
    "Embedder",
    "FillCount",
    "Filled",
    "Provider",
    "config_from_environment",
    "describe_default",
    "embed_query_text",
    "embedder_from_environment",
    "embedder_of_documents",
    "explain_missing",
    "fill_vectors",
    "make_embedder",
]
