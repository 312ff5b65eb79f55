"""The mock provider: a vector that depends on the text and on nothing else.

The FNV-1a hash of the text seeds a xorshift generator; each step gives one component. The same
text has the same vector in every process and in every implementation of this recipe.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.dataclass import dataclass
from omnigraph.embed.embedder import unit_vectors

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_MASK_64 = 2**64 - 1


@dataclass(frozen=True, slots=True)
class MockEmbedder:
    """Deterministic vectors without meaning. Queries and documents are embedded alike."""

    model: str = ""

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        return unit_vectors(_components(texts, dimension), dimension)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self.embed_documents([text], dimension)[0].tolist()
        return vector


def _components(texts: Sequence[str], dimension: int) -> np.ndarray:
    """One row per text. A component needs the one before it, so a step does all texts at once."""
    state = np.array([_fnv1a_64(text.encode()) for text in texts], dtype=np.uint64)
    components = np.empty((len(texts), dimension), dtype=np.float32)
    for place in range(dimension):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        components[:, place] = state.astype(np.float64) / float(_MASK_64)
    return components * np.float32(2) - np.float32(1)


def _fnv1a_64(data: bytes) -> int:
    state = _FNV_OFFSET
    for byte in data:
        state = ((state ^ byte) * _FNV_PRIME) & _MASK_64
    return state
