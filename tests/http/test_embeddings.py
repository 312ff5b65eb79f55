"""Embedding over HTTP: at load, at query time, and never across models."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.serving import ndjson, new_graph, served, single

SCHEMA = """
node Doc { slug: String @key  text: String  vector: Vector(8)? @embed("text") }
node Other { slug: String @key  text: String  vector: Vector(8)? @embed("text", model="big") }
"""
NEAREST = (
    "query near($text: String) { match { $d: Doc } return { $d.slug } "
    "order { nearest($d.vector, $text) } limit 1 }"
)
DOCS = [{"type": "Doc", "data": {"slug": word, "text": word}} for word in ("sea", "sky", "sun")]


@pytest.fixture(autouse=True)
def mock_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.delenv("OMNIGRAPH_EMBED_MODEL", raising=False)


def test_vectors_are_made_at_load_and_texts_at_query_time(tmp_path: Path) -> None:
    """The mock gives one text one vector, in every process, so a text finds itself."""
    path = new_graph(tmp_path / "graph", SCHEMA, [])
    with served(single(path)) as server, server.client() as client:
        loaded = client.load(DOCS)
        found = client.rows(NEAREST, params={"text": "sky"})

        assert loaded.json()["rows_embedded"] == 3
        assert found == [{"d.slug": "sky"}]


@pytest.mark.parametrize("path", ["/load", "/load/ndjson"])
def test_a_load_may_leave_vectors_out(tmp_path: Path, path: str) -> None:
    graph = new_graph(tmp_path / "graph", SCHEMA, [])
    with served(single(graph)) as server, server.client() as client:
        if path == "/load":
            loaded = client.load(DOCS, embed=False)
        else:
            loaded = client.send(
                "POST",
                path,
                content=ndjson(DOCS),
                params={"embed": "false"},
                headers={"Content-Type": "application/x-ndjson"},
            )

        assert (loaded.json()["rows_embedded"], loaded.json()["rows_unembedded"]) == (0, 3)
        assert "embedding was turned off" in loaded.json()["notes"][0]
        assert client.rows(NEAREST, params={"text": "sky"}) == []


def test_a_text_is_not_compared_with_vectors_of_another_model(tmp_path: Path) -> None:
    path = new_graph(tmp_path / "graph", SCHEMA, [])
    with served(single(path)) as server, server.client() as client:
        answer = client.query(NEAREST.replace("Doc", "Other"), params={"text": "sky"})

        assert answer.status_code == 400
        assert "'big'" in answer.json()["error"]
