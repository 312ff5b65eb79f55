"""The local provider: static word vectors from the files of the `wordllama` package.

The vector of a text is the sum of the vectors of its tokens, scaled to length 1. No token crosses
a space, so a batch cuts each of its distinct words into tokens once. There is no network, no key
and no GPU. The code of the package is not imported: it configures logging, and it can download.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.embed.config import LOCAL_DIMENSIONS, LOCAL_MODEL, describe_local
from omnigraph.errors import EmbeddingFailed, EmbeddingNotConfigured

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BATCH_BYTES = 8 * 1024 * 1024
"""The distinct words of this much text are cut into tokens once."""

_SUM_TEXTS = 256
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"

Matrix: TypeAlias = npt.NDArray[np.float32]
Numbers: TypeAlias = npt.NDArray[np.integer]


class LocalEmbedder:
    """Embeds in this process. Queries and documents are embedded alike."""

    model = LOCAL_MODEL

    def embed_documents(self, texts: Sequence[str], dimension: int) -> np.ndarray:
        if dimension not in LOCAL_DIMENSIONS:
            raise EmbeddingNotConfigured(
                f"the local model makes {describe_local()}, not Vector({dimension}) — declare "
                "one of these, or choose another provider with OMNIGRAPH_EMBED_PROVIDER"
            )
        parts = [_embed(batch, dimension) for batch in _batches(pa.array(texts, pa.utf8()))]
        if len(parts) == 1:
            return parts[0]  # a copy would cost as much as the sums
        return np.concatenate(parts) if parts else np.zeros((0, dimension), np.float32)

    def embed_query(self, text: str, dimension: int) -> list[float]:
        vector: list[float] = self.embed_documents([text], dimension)[0].tolist()
        return vector


@dataclass(frozen=True, slots=True)
class _Model:
    tokenizer: Tokenizer
    weights: Matrix


@cache
def _load_model() -> _Model:
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise EmbeddingNotConfigured(
            "the local embedding model is not installed — `pip install wordllama`, or choose "
            "another provider with OMNIGRAPH_EMBED_PROVIDER"
        )
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(found.submodule_search_locations[0])
    weights = load_file(folder / _WEIGHTS)["embedding.weight"].astype(np.float32)
    return _Model(Tokenizer.from_file(str(folder / _TOKENIZER)), weights)


def _batches(texts: pa.StringArray) -> Iterator[pa.StringArray]:
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    first = 0
    while first < len(texts):
        done = ends[first - 1] if first else 0
        after = max(int(np.searchsorted(ends, done + BATCH_BYTES, side="right")), first + 1)
        yield texts[first:after]
        first = after


def _embed(texts: pa.StringArray, dimension: int) -> Matrix:
    words = pc.utf8_split_whitespace(texts)
    distinct = words.flatten().dictionary_encode()
    word_vectors = _embed_words(distinct.dictionary.to_pylist(), dimension)
    vectors = _sum_rows(word_vectors, distinct.indices.to_numpy(), words.value_lengths().to_numpy())
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if not norms.all():
        raise EmbeddingFailed("a text without words has no vector — leave it out")
    vectors /= norms[:, np.newaxis]
    return vectors


def _embed_words(words: list[str], dimension: int) -> Matrix:
    """The sum of the token vectors of each word."""
    model = _load_model()
    # One sequence of words and not a batch of texts: a batch starts threads, and a process that
    # forks after that gets a warning.
    encoded = model.tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
    tokens = np.array(encoded.ids, np.int32)
    lengths = np.bincount(np.array(encoded.word_ids, np.int64), minlength=len(words))
    return _sum_rows(model.weights[:, :dimension], tokens, lengths)


def _sum_rows(matrix: Matrix, numbers: Numbers, lengths: Numbers) -> Matrix:
    """Sum the rows of `matrix` that `numbers` names, in runs of these lengths.

    Runs of similar length are summed side by side, their first rows, then their second: several
    times as fast as one run after the other.
    """
    sums = np.empty((len(lengths), matrix.shape[1]), np.float32)
    starts = np.cumsum(lengths) - lengths
    longest_first = np.argsort(-lengths, kind="stable")
    taken, totals = (np.empty((_SUM_TEXTS, matrix.shape[1]), np.float32) for _ in range(2))
    for first in range(0, len(lengths), _SUM_TEXTS):
        runs = longest_first[first : first + _SUM_TEXTS]
        total = totals[: len(runs)]
        total[:] = 0
        # How many of the runs go on at each place.
        counts = np.searchsorted(-lengths[runs], -np.arange(lengths[runs[0]]), side="left")
        for place, count in enumerate(counts.tolist()):
            rows = numbers[starts[runs[:count]] + place]
            np.take(matrix, rows, axis=0, out=taken[:count], mode="clip")
            total[:count] += taken[:count]
        sums[runs] = total
    return sums
