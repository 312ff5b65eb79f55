"""Documents to search: words of a skewed distribution, and vectors around random centres."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DIMENSIONS = 64
ASKED = 10
"""How many documents a search returns."""
_QUESTIONS = 20


@dataclass(frozen=True, slots=True)
class Documents:
    """A table of `key`, `text` and `vector`, and what is asked of it."""

    table: pa.Table
    vectors: np.ndarray
    texts_asked: list[str]
    vectors_asked: list[list[float]]

    def find_nearest(self) -> list[list[str]]:
        """The keys of the nearest documents of each question, by all distances."""
        keys = self.table["key"].to_pylist()
        found = []
        for asked in self.vectors_asked:
            distances = ((self.vectors - np.array(asked, np.float32)) ** 2).sum(axis=1)
            found.append([keys[each] for each in np.argsort(distances)[:ASKED]])
        return found

    def make_row(self, key: str) -> dict[str, object]:
        """One more document."""
        return {"key": key, "text": self.texts_asked[0], "vector": self.vectors_asked[0]}


def make_documents(count: int) -> Documents:
    """The same documents in every system and every run."""
    chance = np.random.default_rng(5)
    words = np.array([f"w{number}" for number in range(20_000)])
    places = np.minimum(chance.zipf(1.3, (count, 30)) - 1, len(words) - 1)
    texts = [" ".join(each) for each in words[places]]
    centres = chance.normal(size=(100, DIMENSIONS))
    vectors = centres[chance.integers(0, 100, count)] + chance.normal(size=(count, DIMENSIONS)) / 3
    vectors = vectors.astype(np.float32)
    asked = vectors[chance.integers(0, count, _QUESTIONS)] + np.float32(0.05)
    table = pa.table(
        {
            "key": [f"d{number}" for number in range(count)],
            "text": texts,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
        }
    )
    questions = [" ".join(words[20 + 7 * n : 22 + 7 * n]) for n in range(_QUESTIONS)]
    return Documents(table, vectors, questions, asked.tolist())
