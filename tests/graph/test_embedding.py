"""Vectors of a graph: made where they are missing, anew where their text changed, never mixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph import Graph
from omnigraph.embed import LOCAL_MODEL
from omnigraph.embed.local import LocalEmbedder
from omnigraph.errors import (
    ConflictError,
    ConstraintError,
    EmbeddingModelMismatch,
    EmbeddingNotConfigured,
    MergeConflicts,
)
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from tests.ready import copy_ready

SCHEMA = """
node Doc { name: String @key  body: String?  vec: Vector(64)? @embed("body") }
node Wide { name: String @key  body: String  vec: Vector(384)? @embed("body") }
node Strict { name: String @key  body: String  vec: Vector(64) @embed("body") }
"""
NEAREST = """
query near($q: String) {
    match { $d: Doc }
    return { $d.name }
    order { nearest($d.vec, $q) }
    limit 1
}
query add($name: String, $body: String?, $vec: Vector(64)?) {
    insert Doc { name: $name, body: $body, vec: $vec }
}
query plain($name: String, $body: String) { insert Doc { name: $name, body: $body } }
query strict($name: String, $body: String) { insert Strict { name: $name, body: $body } }
query change($name: String, $body: String) {
    update Doc set { body: $body } where name = $name
}
query change_both($name: String, $body: String, $vec: Vector(64)) {
    update Doc set { body: $body, vec: $vec } where name = $name
}
query change_strict($name: String, $body: String) {
    update Strict set { body: $body } where name = $name
}
"""
SOUP, SHARES = "A recipe for tomato soup", "Shares fell on the stock market"
OTHER = [1.0, *[0.0] * 63]
LOCAL = LocalEmbedder()


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROVIDER", "MODEL", "BASE_URL"):
        monkeypatch.delenv(f"OMNIGRAPH_EMBED_{name}", raising=False)
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK", raising=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    copy_ready("embedding", lambda path: og.init(path, schema=SCHEMA), tmp_path / "graph")
    return og.open(tmp_path / "graph")


def doc(name: str, body: str | None, vec: list[float] | None = None, kind: str = "Doc") -> Any:
    data = {"name": name, "body": body, "vec": vec}
    return {"type": kind, "data": {key: each for key, each in data.items() if each is not None}}


def run(graph: Graph, query: str, /, **params: Any) -> Any:
    return graph.mutate(NEAREST, query, params=params)


def nearest(graph: Graph, text: str, **options: Any) -> str:
    found = graph.query(NEAREST, "near", params={"q": text}, **options).rows()
    return str(found[0]["d.name"]) if found else ""


def vectors(graph: Graph, kind: str = "Doc", **options: Any) -> dict[str, list[float] | None]:
    rows = graph.nodes(kind, **options).to_arrow().to_pylist()
    return {row["name"]: row["vec"] for row in rows}


def is_local(vector: list[float] | None, text: str) -> bool:
    return vector is not None and np.allclose(vector, LOCAL.embed_query(text, 64), atol=1e-4)


# Loads


def test_a_load_fills_vectors_with_the_local_model_and_says_so(graph: Graph) -> None:
    records = [doc("soup", SOUP), doc("shares", SHARES), doc("none", None), doc("blank", " ")]

    result = graph.load(records, mode="append")

    assert (result.rows_embedded, result.rows_unembedded) == (2, 0)
    assert len(result.notes) == 1
    assert "Doc.vec: no embedding provider is chosen" in result.notes[0]
    assert LOCAL_MODEL in result.notes[0]
    assert nearest(graph, "vegetable broth") == "soup"
    assert [name for name, vec in vectors(graph).items() if vec is None] == ["none", "blank"]


def test_a_dimension_that_does_not_fit_is_left_empty_and_says_why(graph: Graph) -> None:
    result = graph.load([doc("w", SOUP, kind="Wide")], mode="append")

    assert (result.rows_embedded, result.rows_unembedded) == (0, 1)
    assert "Wide.vec: 1 rows have no vector" in result.notes[0]
    assert "Vector(384)" in result.notes[0]
    assert "OMNIGRAPH_EMBED_PROVIDER" in result.notes[0]


def test_a_load_without_embedding_counts_what_it_left(graph: Graph) -> None:
    result = graph.load([doc("soup", SOUP), doc("none", None)], mode="append", embed=False)

    assert (result.rows_embedded, result.rows_unembedded) == (0, 1)
    assert "embedding was turned off" in result.notes[0]


def test_vectors_that_came_along_are_not_mixed_with_those_of_the_default(graph: Graph) -> None:
    """Which model made the given vector is not known, so the default adds none of its own."""
    result = graph.load([doc("a", SOUP, OTHER), doc("b", SHARES)], mode="append")
    later = graph.load([doc("c", SHARES)], mode="append")
    run(graph, "plain", name="d", body=SOUP)

    assert (result.rows_embedded, result.rows_unembedded) == (0, 1)
    assert (later.rows_embedded, later.rows_unembedded) == (0, 1)
    assert "not recorded" in later.notes[0]
    assert vectors(graph) == {"a": OTHER, "b": None, "c": None, "d": None}
    with pytest.raises(EmbeddingNotConfigured):
        nearest(graph, SOUP)


def test_a_provider_that_is_chosen_may_add_to_given_vectors(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")

    result = graph.load([doc("a", SOUP, OTHER), doc("b", SHARES)], mode="append")

    assert result.rows_embedded == 1
    assert result.notes == ()
    assert vectors(graph)["a"] == OTHER


def test_an_export_that_is_loaded_again_keeps_its_model(graph: Graph, tmp_path: Path) -> None:
    graph.load([doc("soup", SOUP), doc("shares", SHARES)], mode="append")
    graph.export(tmp_path / "all.jsonl")
    copy = og.init(tmp_path / "copy", schema=SCHEMA)

    result = copy.load(tmp_path / "all.jsonl", mode="append")
    later = copy.load([doc("new", "Bread and butter")], mode="append")

    assert (result.rows_embedded, result.rows_unembedded) == (0, 0)
    assert later.rows_embedded == 1
    assert nearest(copy, "vegetable broth") == "soup"


@pytest.mark.parametrize("file_format", ["jsonl", "csv.gz", "parquet"])
def test_an_export_says_which_model_made_its_vectors(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """Loaded again, they are not mixed with those of another model, whoever is chosen by then."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.load([doc("soup", SOUP), doc("shares", SHARES)], mode="append")
    out = tmp_path / ("all.jsonl" if file_format == "jsonl" else "out")
    graph.export(out, format=file_format)
    copy = og.init(tmp_path / "copy", schema=SCHEMA)
    other = og.init(tmp_path / "other", schema=SCHEMA)
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    other.load([doc("local", SOUP)], mode="append")

    copy.load(out, mode="append")
    with pytest.raises(EmbeddingModelMismatch, match=r"'Doc.vec'.*'mock'"):
        copy.load([doc("new", "Bread and butter")], mode="append")
    with pytest.raises(EmbeddingModelMismatch, match=r"'Doc.vec'.*'mock'"):
        other.load(out, mode="merge")
    other.load(out, mode="overwrite")

    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert nearest(copy, SOUP) == nearest(other, SOUP) == "soup"
    assert list(vectors(copy)) == ["shares", "soup"]


# Models


def test_a_model_is_not_mixed_with_another(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")

    with pytest.raises(EmbeddingModelMismatch, match=rf"'Doc.vec'.*{LOCAL_MODEL}.*'mock'"):
        graph.load([doc("b", SHARES)], mode="append")
    with pytest.raises(EmbeddingModelMismatch):
        run(graph, "plain", name="b", body=SHARES)
    with pytest.raises(EmbeddingModelMismatch):
        run(graph, "change", name="soup", body=SHARES)

    assert list(vectors(graph)) == ["soup"]
    assert nearest(graph, SOUP) == "soup"  # a text is compared by the model that is recorded


def test_the_record_outlives_the_handle_and_a_compaction(graph: Graph, tmp_path: Path) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    graph.optimize()
    graph.close()

    with og.open(tmp_path / "graph", mode="r") as reopened:
        assert nearest(reopened, "vegetable broth") == "soup"


def test_an_overwrite_may_change_the_model(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """No vector of the old model stays, so none is mixed; the past keeps its own."""
    graph.load([doc("soup", SOUP)], mode="append")
    before = graph.commits()[0].commit_id
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.load([doc("a", "alpha"), doc("b", "beta")], mode="overwrite")

    assert nearest(graph, "beta") == "b"
    assert nearest(graph, "anything", commit=before) == "soup"
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    with pytest.raises(EmbeddingModelMismatch):
        nearest(graph, "beta")


def test_an_overwrite_with_given_vectors_forgets_the_model(graph: Graph) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    graph.load([doc("a", SOUP, OTHER)], mode="overwrite")

    with pytest.raises(EmbeddingNotConfigured):
        nearest(graph, SOUP)


def test_a_renamed_type_keeps_its_model(graph: Graph) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    renamed = SCHEMA.replace("node Doc {", 'node Page @rename_from("Doc") {')
    graph.apply_schema(renamed)

    found = graph.query(NEAREST.split("query add")[0].replace("Doc", "Page"), params={"q": "broth"})

    assert found.rows() == [{"d.name": "soup"}]


# Branches


def test_a_branch_carries_the_model_and_a_merge_brings_it(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([doc("soup", SOUP)], mode="append", branch="draft")
    graph.load([doc("none", None)], mode="append")

    graph.merge("draft")

    assert nearest(graph, "vegetable broth") == "soup"
    assert run(graph, "plain", name="new", body=SOUP).affected_nodes == 1
    assert is_local(vectors(graph)["new"], SOUP)


def test_branches_of_two_models_do_not_merge(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.create_branch("draft")
    graph.load([doc("soup", SOUP)], mode="append")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.load([doc("a", "alpha")], mode="append", branch="draft")

    with pytest.raises(MergeConflicts, match="node:Doc embedding_models") as raised:
        graph.merge("draft")

    assert LOCAL_MODEL in raised.value.conflicts[0].message
    assert list(vectors(graph)) == ["soup"]
    assert graph.merge("draft", preview=True).conflicts[0].kind == "embedding_models"


def test_a_branch_made_anew_with_another_model_is_taken_over(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    graph.create_branch("draft")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    graph.load([doc("soup", SOUP), doc("a", "alpha")], mode="overwrite", branch="draft")

    graph.merge("draft")

    assert nearest(graph, "alpha") == "a"
    assert graph.load([doc("b", "beta")], mode="append").rows_embedded == 1


# Inserts and updates


def test_an_insert_fills_an_optional_vector(graph: Graph) -> None:
    run(graph, "plain", name="soup", body=SOUP)
    run(graph, "add", name="none")
    run(graph, "add", name="given", body=SHARES, vec=LOCAL.embed_query("given", 64))

    found = vectors(graph)
    assert is_local(found["soup"], SOUP)
    assert found["none"] is None
    assert is_local(found["given"], "given")
    assert nearest(graph, "vegetable broth") == "soup"


def test_a_required_vector_without_a_text_is_refused(graph: Graph) -> None:
    with pytest.raises(ConstraintError, match="vec"):
        run(graph, "strict", name="a", body=" ")
    run(graph, "strict", name="a", body=SOUP)
    with pytest.raises(ConstraintError, match="vec"):
        run(graph, "change_strict", name="a", body=" ")

    assert is_local(vectors(graph, "Strict")["a"], SOUP)


def test_an_update_of_the_text_makes_the_vector_anew(graph: Graph) -> None:
    graph.load([doc("a", SOUP), doc("b", SHARES)], mode="append")

    run(graph, "change", name="a", body="Ships at sea")
    run(graph, "change_both", name="b", body=SOUP, vec=OTHER)

    found = vectors(graph)
    assert is_local(found["a"], "Ships at sea")
    assert found["b"] == OTHER


def test_an_update_that_keeps_the_text_keeps_the_vector(graph: Graph) -> None:
    graph.load([doc("a", SOUP, OTHER)], mode="append")

    run(graph, "change", name="a", body=SOUP)

    assert vectors(graph)["a"] == OTHER


def test_a_stale_vector_goes_when_nothing_can_make_a_new_one(graph: Graph) -> None:
    graph.load([doc("a", SOUP, OTHER), doc("b", SHARES, OTHER)], mode="append")

    run(graph, "change", name="a", body="Ships at sea")

    assert vectors(graph) == {"a": None, "b": OTHER}


# Crashes, races and what outlives a branch


def test_recovery_keeps_the_model_of_the_write_that_it_finishes(graph: Graph) -> None:
    uri = graph.uri
    point = Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.load([doc("soup", SOUP)], mode="append")

    with og.open(uri) as recovered:
        assert nearest(recovered, "vegetable broth") == "soup"
        assert recovered.load([doc("b", SHARES)], mode="append").rows_embedded == 1


def test_a_writer_with_another_model_that_comes_second_is_refused(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both start from an empty table; the second finds what the first has recorded meanwhile."""
    embed = LocalEmbedder.embed_documents

    def load_meanwhile(self: LocalEmbedder, texts: Any, dimension: int) -> np.ndarray:
        monkeypatch.setattr(LocalEmbedder, "embed_documents", embed)
        settings = {"embedding": {"provider": "mock"}}
        with og.open(graph.uri, config=settings) as other:
            other.load([doc("first", "alpha")], mode="append")
        return embed(self, texts, dimension)

    monkeypatch.setattr(LocalEmbedder, "embed_documents", load_meanwhile)
    with pytest.raises(EmbeddingModelMismatch, match="'mock'"):
        graph.load([doc("second", SOUP)], mode="append")

    assert list(vectors(graph)) == ["first"]


def test_vectors_of_another_writer_that_nothing_is_known_of_stop_the_default(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = LocalEmbedder.embed_documents

    def load_meanwhile(self: LocalEmbedder, texts: Any, dimension: int) -> np.ndarray:
        monkeypatch.setattr(LocalEmbedder, "embed_documents", embed)
        with og.open(graph.uri) as other:
            other.load([doc("first", SHARES, OTHER)], mode="append")
        return embed(self, texts, dimension)

    monkeypatch.setattr(LocalEmbedder, "embed_documents", load_meanwhile)
    with pytest.raises(ConflictError, match="try again"):
        graph.load([doc("second", SOUP)], mode="append")

    again = graph.load([doc("second", SOUP)], mode="append")
    assert (again.rows_embedded, again.rows_unembedded) == (0, 1)


def test_an_insert_does_not_join_vectors_that_came_meanwhile(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = LocalEmbedder.embed_documents

    def load_meanwhile(self: LocalEmbedder, texts: Any, dimension: int) -> np.ndarray:
        monkeypatch.setattr(LocalEmbedder, "embed_documents", embed)
        with og.open(graph.uri, config={"embedding": {"provider": "mock"}}) as other:
            other.load([doc("first", "alpha")], mode="append")
        return embed(self, texts, dimension)

    monkeypatch.setattr(LocalEmbedder, "embed_documents", load_meanwhile)
    with pytest.raises(EmbeddingModelMismatch):
        run(graph, "plain", name="second", body=SOUP)

    assert list(vectors(graph)) == ["first"]


def test_a_handle_that_is_behind_does_not_add_the_default_to_unknown_vectors(
    graph: Graph,
) -> None:
    """The handle has seen an empty table; another process has filled it since."""
    graph.query("query q() { match { $d: Doc } return { $d.name } }")
    with og.open(graph.uri) as other:
        other.load([doc("first", SHARES, OTHER)], mode="append")

    with pytest.raises(ConflictError, match="try again"):
        run(graph, "plain", name="second", body=SOUP)
    run(graph, "plain", name="second", body=SOUP)

    assert vectors(graph) == {"first": OTHER, "second": None}


def test_a_commit_of_a_deleted_branch_knows_its_model(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load([doc("soup", SOUP)], mode="append", branch="draft")
    commit = graph.commits("draft")[0].commit_id
    graph.merge("draft")
    graph.delete_branch("draft")
    graph.load([doc("a", SOUP, OTHER)], mode="overwrite")

    assert nearest(graph, "vegetable broth", commit=commit) == "soup"


def test_a_graph_that_was_moved_knows_its_model(graph: Graph, tmp_path: Path) -> None:
    graph.load([doc("soup", SOUP)], mode="append")
    graph.close()
    (tmp_path / "graph").rename(tmp_path / "moved")

    with og.open(tmp_path / "moved") as moved:
        assert nearest(moved, "vegetable broth") == "soup"
