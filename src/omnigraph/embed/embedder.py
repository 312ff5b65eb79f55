"""Embedder: texts → unit vectors, with any provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from omnigraph.embed.config import NOT_CONFIGURED
from omnigraph.errors import EmbeddingFailed, EmbeddingModelMismatch, EmbeddingNotConfigured


class Embedder(Protocol):
    """Embeds documents to store and queries to compare them with. Thread-safe."""

    @property
    def model(self) -> str:
        """The name of the model, compared literally with the one a property records."""
        ...

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        """One unit vector of float32 per text, as rows, in the order of the texts."""
        ...

    def embed_query(self, text: str, dimension: int) -> list[float]:
        """The unit vector of a query."""
        ...


def unit_vectors(vectors: Sequence[Sequence[float]] | np.ndarray, dimension: int) -> np.ndarray:
    """Check what a provider gave and scale it to length 1, as float32.

    Raises:
        EmbeddingFailed: A vector has another dimension, a component that is not a finite
            number, or no length.
    """
    for length in {len(vector) for vector in vectors} - {dimension}:
        raise EmbeddingFailed(
            f"the embedding provider gave a vector of {length} components, expected "
            f"{dimension} — choose a model that can make Vector({dimension})"
        )
    matrix = np.asarray(vectors, dtype=np.float64).reshape(-1, dimension)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt(np.add.reduce(matrix * matrix, axis=1))
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise EmbeddingFailed(
            "the embedding provider gave a vector that is not finite or has no length"
        )
    units: np.ndarray = matrix / norms[:, np.newaxis]
    return units.astype(np.float32)


def require_embedder(embedder: Embedder | None) -> Embedder:
    """Return the embedder.

    Raises:
        EmbeddingNotConfigured: There is none.
    """
    if embedder is None:
        raise EmbeddingNotConfigured(NOT_CONFIGURED)
    return embedder


def model_name(embedder: Embedder) -> str:
    """What is recorded of an embedder; the mock has no name unless it is given one."""
    return embedder.model or "mock"


def check_model(property_name: str, recorded: str | None, embedder: Embedder) -> None:
    """Refuse to mix vectors of two models in one property.

    Raises:
        EmbeddingModelMismatch: The property records another model.
    """
    if recorded is not None and recorded != model_name(embedder):
        raise EmbeddingModelMismatch(
            property_name, recorded=recorded, configured=model_name(embedder)
        )
