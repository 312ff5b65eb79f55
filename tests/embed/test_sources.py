"""Where vectors come from: a function, a model on disk, a server on this machine, a graph's own."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.config.project import EMBEDDING, load_project
from omnigraph.embed import EmbedSource, Provider, config_from_environment
from omnigraph.embed.sentence import SentenceEmbedder, load_model, name_model
from omnigraph.embed.source import GRAPH_SETTINGS, read_settings
from omnigraph.errors import BadRequestError, EmbeddingFailed, EmbeddingNotConfigured
from tests.cli.running import run
from tests.embed.provider import openai_reply, serving

SCHEMA = 'node Doc { name: String @key  body: String  vec: Vector(2)? @embed("body") }'
DOCS = [{"type": "Doc", "data": {"name": word, "body": word}} for word in ("a", "bbbb")]
NEAREST = (
    "query near($q: String) { match { $d: Doc } return { $d.name } "
    "order { nearest($d.vec, $q) } limit 1 }"
)


def by_length(texts: list[str]) -> np.ndarray:
    return np.array([[len(text), 1] for text in texts])


# A function


def test_a_function_of_the_program_embeds(tmp_path: Path) -> None:
    options: dict[str, Any] = {"embedder": by_length, "embedding_model": "length"}
    with og.init(tmp_path / "graph", schema=SCHEMA, **options) as graph:
        result = graph.load(DOCS, mode="append")
        graph.mutate('query q() { insert Doc { name: "c", body: "cc" } }')

        assert (result.rows_embedded, result.notes) == (2, ())
        assert graph.query(NEAREST, params={"q": "dddd"}).rows() == [{"d.name": "bbbb"}]
    with og.open(tmp_path / "graph") as other, pytest.raises(EmbeddingNotConfigured):
        other.query(NEAREST, params={"q": "dddd"})


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda texts: 1 / 0, "'m' failed on 2 texts: ZeroDivisionError"),
        (lambda texts: [[1.0, 0.0]], r"shape \(1, 2\) for 2 texts, expected \(2, 2\)"),
        (lambda texts: [[1.0]] * 2, "a vector of 1 components, expected 2"),
        (lambda texts: [[0.0, 0.0]] * 2, "no length"),
        (lambda texts: ["x", "y"], "'m' failed on 2 texts: ValueError"),
    ],
)
def test_a_function_that_gives_no_vectors_fails_the_load(
    function: Any, words: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"embedder": function, "embedding_model": "m"}
    with og.init(tmp_path / "graph", schema=SCHEMA, **options) as graph:
        with pytest.raises(EmbeddingFailed, match=words):
            graph.load(DOCS, mode="append")
        assert graph.nodes("Doc").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"embedder": by_length}, "needs `embedding_model`"),
        ({"embedder": by_length, "embedding_model": " "}, "needs `embedding_model`"),
        ({"embedding_model": "m"}, "give both"),
        ({"embedder": "m", "embedding_model": "m"}, "expected a function"),
        ({"config": {"embedding": "local"}}, "expected a map"),
        ({"config": {"embedding": {"provder": "local"}}}, "did you mean `provider`"),
        ({"config": {"embedding": {"provider": "locl"}}}, "expected one of local"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=words):
        og.init(tmp_path / "graph", schema=SCHEMA, **options)


# A server on this machine


@pytest.mark.parametrize(
    ("url", "needs_key"),
    [
        ("http://localhost:11434/v1", False),
        ("http://127.0.0.1/v1", False),
        ("http://[::1]:80/v1", False),
        ("http://localhost.example.com/v1", True),
        ("http://127.0.0.1.example.com/v1", True),
        ("https://10.0.0.1/v1", True),
    ],
)
def test_only_a_server_on_this_machine_needs_no_key(url: str, needs_key: bool) -> None:
    environment = {"OMNIGRAPH_EMBED_BASE_URL": url, "OMNIGRAPH_EMBED_MODEL": "m"}

    if needs_key:
        with pytest.raises(EmbeddingNotConfigured, match="needs an API key"):
            config_from_environment(environment)
    else:
        found = config_from_environment(environment)
        assert found is not None
        assert (found.provider, found.api_key) == (Provider.OPENAI_COMPATIBLE, "")


def test_no_key_is_made_up(tmp_path: Path) -> None:
    with serving(openai_reply) as provider:
        config = {"embedding": {"base_url": provider.config().base_url, "model": "m-1"}}
        with og.init(tmp_path / "graph", schema=SCHEMA, config=config) as graph:
            assert graph.load(DOCS, mode="append").rows_embedded == 2

    assert provider.requests[0].body["model"] == "m-1"
    assert "authorization" not in {name.lower() for name in provider.requests[0].headers}


def test_a_server_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    config = {"embedding": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    with og.init(tmp_path / "graph", schema=SCHEMA, config=config) as graph:
        with pytest.raises(EmbeddingFailed, match=r"could not be reached.*--no-embed"):
            graph.load(DOCS, mode="append")
        assert graph.load(DOCS, mode="append", embed=False).rows_unembedded == 2


# A graph's own settings


def test_the_settings_of_a_graph_go_before_the_environment() -> None:
    environment = {
        "OMNIGRAPH_EMBED_PROVIDER": "openai",
        "OMNIGRAPH_EMBED_MODEL": "big",
        "OPENAI_API_KEY": "k",
        "MINE": "secret",
    }

    assert EmbedSource(read_settings(environment, {"provider": "local"})).is_chosen
    settings = dict(read_settings(environment, {"api_key_env": "MINE", "model": "small"}))
    found = config_from_environment(settings)
    assert found is not None
    assert (found.provider, found.model, found.api_key) == ("openai", "small", "secret")
    with pytest.raises(EmbeddingNotConfigured, match="set YOURS"):
        config_from_environment(dict(read_settings(environment, {"api_key_env": "YOURS"})))


def test_the_project_file_has_the_settings_of_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)
    Path("omnigraph.yaml").write_text(
        "graphs:\n  docs:\n    uri: docs.omni\n    embedding: { provider: mock, model: m }\n"
    )
    Path("docs.pg").write_text(SCHEMA)
    Path("docs.jsonl").write_text('{"type": "Doc", "data": {"name": "a", "body": "alpha"}}\n')
    assert run("init", "--target", "docs", "--schema", "docs.pg").code == 0

    loaded = run("load", "--target", "docs", "--data", "docs.jsonl", "--mode", "merge")

    assert "embedded 1 vectors" in loaded.out
    assert load_project().graph("docs").embedding == {"provider": "mock", "model": "m"}
    assert tuple(GRAPH_SETTINGS) == EMBEDDING


# sentence-transformers


def stand_in(loaded: list[tuple[str, bool]]) -> ModuleType:
    """The part of the package that is used; the package itself needs torch."""

    class SentenceTransformer:
        def __init__(self, name: str, *, local_files_only: bool) -> None:
            if name == "absent":
                raise OSError("not on this machine")
            time.sleep(0.02)  # long enough for another thread to begin
            loaded.append((name, local_files_only))

        def encode(self, texts: list[str], **options: Any) -> np.ndarray:
            return by_length(texts)

        def encode_query(self, texts: list[str], **options: Any) -> np.ndarray:
            return by_length(texts)[:, ::-1]

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer  # type: ignore[attr-defined]
    return module


def test_a_model_of_sentence_transformers_is_loaded_from_disk_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[tuple[str, bool]] = []
    monkeypatch.setitem(sys.modules, "sentence_transformers", stand_in(loaded))
    load_model.cache_clear()
    embedder = SentenceEmbedder("./mini")

    documents = embedder.embed_documents(["abc"], 2)
    query = embedder.embed_query("abc", 2)

    assert loaded == [("./mini", True)]
    assert query == documents[0, ::-1].tolist()
    with pytest.raises(EmbeddingNotConfigured, match="download it first"):
        SentenceEmbedder("absent").embed_query("abc", 2)


def test_a_model_in_a_folder_is_named_by_what_is_in_it(tmp_path: Path) -> None:
    """A moved model is the same one; other weights or another pooling in its place are not."""
    for name in ("here", "there"):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "model.safetensors").write_bytes(b"weights")
        (tmp_path / name / "1_Pooling" / "config.json").write_text("{}")
    (tmp_path / "there" / "README.md").write_text("read me")
    here, there = (SentenceEmbedder(str(tmp_path / name)).model for name in ("here", "there"))
    name_model.cache_clear()
    (tmp_path / "there" / "1_Pooling" / "config.json").write_text("{ }")
    (tmp_path / "here" / "model.safetensors").write_bytes(b"others")
    others = [SentenceEmbedder(str(tmp_path / name)).model for name in ("here", "there")]

    assert here == there
    assert here.startswith("sentence-transformers:")
    assert len({here, *others}) == 3
    assert SentenceEmbedder("all-MiniLM-L6-v2").model == "all-MiniLM-L6-v2"


def test_threads_load_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[tuple[str, bool]] = []
    monkeypatch.setitem(sys.modules, "sentence_transformers", stand_in(loaded))
    load_model.cache_clear()
    embedder = SentenceEmbedder("./mini")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: embedder.embed_query(text, 2), ["abc"] * 8))

    assert loaded == [("./mini", True)]
    assert found == [found[0]] * 8


def test_without_the_package_or_a_model_the_provider_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    load_model.cache_clear()

    with pytest.raises(EmbeddingNotConfigured, match="pip install sentence-transformers"):
        SentenceEmbedder("mini").embed_query("abc", 2)
    with pytest.raises(EmbeddingNotConfigured, match="set OMNIGRAPH_EMBED_MODEL"):
        config_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "sentence-transformers"})
