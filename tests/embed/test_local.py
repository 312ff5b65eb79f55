"""The local provider: meaning without network, key or import at start-up."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from omnigraph.embed import LOCAL_MODEL, EmbedColumn, EmbedSource, config_from_environment
from omnigraph.embed import local as local_module
from omnigraph.embed.local import LocalEmbedder
from omnigraph.embed.source import read_settings
from omnigraph.errors import EmbeddingFailed, EmbeddingModelMismatch, EmbeddingNotConfigured

LOCAL = LocalEmbedder()
TEXTS = [
    "Joining two branches together",
    "A recipe for tomato soup",
    "Shares fell on the stock market",
    "  spaces\tand\nlines, and spaces  ",
    "naïve 日本語 🙂",
    "word " * 3_000,
]

OFFLINE = """
import socket, sys
def refuse(*args, **kwargs):
    raise AssertionError("the network was asked for")
socket.socket.connect = socket.socket.connect_ex = refuse
socket.create_connection = socket.getaddrinfo = refuse

import omnigraph as og
with og.init(sys.argv[1], schema=sys.argv[2]) as graph:
    print(sorted(name for name in sys.modules if name in ("tokenizers", "wordllama", "torch")))
    result = graph.load(sys.argv[3], mode="merge")
    print(result.rows_embedded, result.rows_unembedded)
    rows = graph.query(sys.argv[4], params={"q": "vegetable broth"})
    print([row["d.name"] for row in rows.rows()])
print(sorted(name for name in sys.modules if name in ("wordllama", "torch", "huggingface_hub")))
"""
SCHEMA = 'node Doc { name: String @key  body: String?  vec: Vector(256)? @embed("body") }'
NEAREST = (
    "query near($q: String) { match { $d: Doc } return { $d.name } "
    "order { nearest($d.vec, $q) } limit 1 }"
)


@cache
def files() -> tuple[Tokenizer, np.ndarray]:
    found = importlib.util.find_spec("wordllama")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    weights = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    return tokenizer, weights


def reference(text: str) -> np.ndarray:
    """The vector by the recipe: the token vectors of the whole text, added up."""
    tokenizer, weights = files()
    ids = tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids
    total = weights[ids].astype(np.float64).sum(axis=0)
    vector: np.ndarray = total / np.linalg.norm(total)
    return vector


def test_a_vector_is_the_sum_of_the_token_vectors_of_its_text() -> None:
    """Words are embedded once per batch, whatever the text they are in; the result is the same."""
    vectors = LOCAL.embed_documents(TEXTS, 256)

    for text, vector in zip(TEXTS, vectors, strict=True):
        assert np.allclose(vector, reference(text), atol=1e-4), text


def test_batches_do_not_change_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    together = LOCAL.embed_documents(TEXTS, 64)
    monkeypatch.setattr(local_module, "BATCH_BYTES", 10)

    apart = LOCAL.embed_documents(TEXTS, 64)

    assert np.allclose(together, apart, atol=1e-6)
    assert LOCAL.embed_documents([], 64).shape == (0, 64)


@pytest.mark.parametrize("dimension", [64, 128, 256])
def test_texts_of_like_meaning_are_near_each_other(dimension: int) -> None:
    vectors = LOCAL.embed_documents(TEXTS[:3], dimension)
    query = np.array(LOCAL.embed_query("how do I merge branches", dimension))

    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors @ query).argmax() == 0


def test_a_dimension_that_the_model_does_not_have_names_the_setting() -> None:
    with pytest.raises(
        EmbeddingNotConfigured, match=r"not Vector\(384\).*OMNIGRAPH_EMBED_PROVIDER"
    ):
        LOCAL.embed_documents(["text"], 384)


def test_a_text_without_words_has_no_vector() -> None:
    with pytest.raises(EmbeddingFailed, match="without words"):
        LOCAL.embed_documents(["text", " "], 64)


def test_the_local_provider_has_one_model() -> None:
    config = config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "local"})

    assert config is not None
    assert config.model == LOCAL_MODEL
    with pytest.raises(EmbeddingNotConfigured, match="OMNIGRAPH_EMBED_MODEL is 'other'"):
        config_from_environment(
            {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "other"}
        )


@pytest.mark.parametrize(
    ("dimension", "model", "is_foreign", "is_used"),
    [
        (256, None, False, True),
        (64, LOCAL_MODEL, False, True),
        (384, None, False, False),
        (256, "another", False, False),
        (256, None, True, False),
    ],
)
def test_it_is_used_by_default_only_where_it_fits(
    dimension: int, model: str | None, is_foreign: bool, is_used: bool
) -> None:
    column = EmbedColumn("vec", "body", dimension, True, model, is_foreign)

    found = EmbedSource(read_settings({"OPENAI_API_KEY": "k"})).find_for_documents(column)

    assert isinstance(found, LocalEmbedder) is is_used
    assert (found is None) is not is_used


def test_a_query_uses_the_recorded_local_model_whatever_is_chosen() -> None:
    chosen = EmbedSource(read_settings({"OMNIGRAPH_EMBED_PROVIDER": "mock"}))
    column = EmbedColumn("vec", "body", 256, True, LOCAL_MODEL)

    assert isinstance(chosen.find_for_query(column), LocalEmbedder)
    with pytest.raises(EmbeddingModelMismatch):
        chosen.find_for_documents(column)


@pytest.mark.slow
def test_it_loads_and_answers_without_a_network(tmp_path: Path) -> None:
    """Nothing is downloaded, looked up or imported that could be; and nothing at start-up."""
    data = tmp_path / "docs.jsonl"
    data.write_text(
        '{"type": "Doc", "data": {"name": "soup", "body": "A recipe for tomato soup"}}\n'
        '{"type": "Doc", "data": {"name": "shares", "body": "Shares fell on the stock market"}}\n'
        '{"type": "Doc", "data": {"name": "empty", "body": " "}}\n'
    )

    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(tmp_path / "graph"), SCHEMA, str(data), NEAREST],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[]", "2 0", "['soup']", "[]"]
