"""`embed` catches up: what is missing, in parts that stay; or everything anew, in one commit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph import Graph
from omnigraph.embed import LOCAL_MODEL
from omnigraph.embed.local import LocalEmbedder
from omnigraph.errors import EmbeddingModelMismatch, NotFoundError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.pipeline import embed_part
from tests.depth import IS_TORTURE
from tests.graph.test_embedding import NEAREST, OTHER, SCHEMA, SOUP, doc, is_local, nearest, vectors
from tests.ready import copy_ready

PROVIDER = "OMNIGRAPH_EMBED_PROVIDER"
WORK = """
import sys
import omnigraph as og
from omnigraph.pipeline import embed_part
embed_part.PART_ROWS = 2
with og.open(sys.argv[1]) as graph:
    graph.embed()
"""


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMNIGRAPH_EMBED_MODEL", "OMNIGRAPH_EMBEDDINGS_MOCK", PROVIDER):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Five texts without vectors, among rows that have none to make."""
    copy_ready("unembedded", make_unembedded, tmp_path / "graph")
    return og.open(tmp_path / "graph")


def make_unembedded(path: Path) -> Graph:
    graph = og.init(path, schema=SCHEMA)
    records = [doc(f"d{number}", f"{SOUP} {number}") for number in range(5)]
    graph.load([doc("none", None), *records, doc("blank", " ")], mode="append", embed=False)
    return graph


def missing(graph: Graph) -> list[str]:
    return sorted(name for name, vector in vectors(graph).items() if vector is None)


def test_it_makes_the_missing_vectors_and_no_others(graph: Graph) -> None:
    graph.load([doc("given", SOUP, LocalEmbedder().embed_query(SOUP, 64))], mode="append")
    before = vectors(graph)["given"]

    result = graph.embed()
    again = graph.embed()

    assert (result.rows_embedded, result.rows_unembedded) == (5, 0)
    assert result.models["Doc.vec"] == LOCAL_MODEL
    assert "no embedding provider is chosen" in result.notes[0]
    assert missing(graph) == ["blank", "none"]
    assert vectors(graph)["given"] == before
    assert is_local(vectors(graph)["d3"], f"{SOUP} 3")
    assert (again.rows_embedded, again.commit_ids) == (0, ())
    assert graph.verify().is_clean


def test_parts_are_commits_of_their_own(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_part, "PART_ROWS", 2)
    seen: list[int] = []

    result = graph.embed(progress=lambda progress: seen.append(progress.rows), message="new model")

    assert (result.rows_embedded, len(result.commit_ids)) == (5, 3)
    assert [graph.commits()[0].commit_id] == [result.commit_ids[-1]]
    assert {graph.commit(each).message for each in result.commit_ids} == {"new model"}
    assert seen[-1] == 5
    assert missing(graph) == ["blank", "none"]


def test_what_nothing_can_embed_is_counted_and_said(graph: Graph) -> None:
    graph.load([doc("w", SOUP, kind="Wide")], mode="append")

    result = graph.embed(types=["Wide"])

    assert (result.rows_embedded, result.rows_unembedded) == (0, 1)
    assert "Vector(384)" in result.notes[0]
    with pytest.raises(NotFoundError, match="did you mean `Wide`"):
        graph.embed(types=["Wid"])


def test_another_writer_loses_nothing(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that changes while its old text is being embedded gets the vector of the new one."""
    embed = LocalEmbedder.embed_documents
    calls: list[int] = []

    def change_meanwhile(self: LocalEmbedder, texts: Any, dimension: int) -> np.ndarray:
        calls.append(len(texts))
        if len(calls) == 1:
            with og.open(graph.uri) as other:
                other.mutate(
                    NEAREST.replace("query change(", "query set(").split("query change_both")[0],
                    "set",
                    params={"name": "d1", "body": "Ships at sea"},
                )
        return embed(self, texts, dimension)

    monkeypatch.setattr(LocalEmbedder, "embed_documents", change_meanwhile)

    graph.embed()

    rows = {row["name"]: row for row in graph.nodes("Doc").to_arrow().to_pylist()}
    assert rows["d1"]["body"] == "Ships at sea"
    assert is_local(rows["d1"]["vec"], "Ships at sea")
    assert missing(graph) == ["blank", "none"]


def test_a_run_that_fails_is_continued(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed_part, "PART_ROWS", 2)
    point = Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT
    with arm_failpoints({point: "raise@2"}), pytest.raises(FailpointError):
        graph.embed()

    with og.open(graph.uri) as reopened:
        assert len(missing(reopened)) == 3
        assert reopened.embed().rows_embedded == 1
        assert missing(reopened) == ["blank", "none"]


@pytest.mark.skipif(not IS_TORTURE, reason="`make torture` runs it")
@pytest.mark.slow
def test_a_run_that_is_killed_is_continued(graph: Graph) -> None:
    graph.close()
    point = "graph_publish.after_manifest_commit=kill@2"
    killed = subprocess.run(
        [sys.executable, "-c", WORK, graph.uri],
        env={"PYTHONPATH": ":".join(sys.path), "OMNIGRAPH_FAILPOINTS": point},
        check=False,
    )

    with og.open(graph.uri) as reopened:
        kept = missing(reopened)
        result = reopened.embed()

        assert killed.returncode == -signal.SIGKILL
        assert len(kept) == 3
        assert result.rows_embedded == 1
        assert missing(reopened) == ["blank", "none"]
        assert nearest(reopened, SOUP).startswith("d")
        assert reopened.verify().is_clean


def test_all_anew_changes_the_model_in_one_commit(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed_part, "PART_ROWS", 2)
    graph.embed()
    before = graph.commits()[0].commit_id
    monkeypatch.setenv(PROVIDER, "mock")
    with pytest.raises(EmbeddingModelMismatch):
        graph.embed()

    result = graph.embed(types=["Doc"], reembed_all=True)

    assert (result.rows_embedded, len(result.commit_ids)) == (5, 1)
    assert nearest(graph, f"{SOUP} 4") == "d4"
    assert nearest(graph, f"{SOUP} 4", commit=before).startswith("d")  # by the model of then
    assert graph.load([doc("new", SOUP)], mode="append").rows_embedded == 1
    assert graph.verify().is_clean


def test_all_anew_leaves_no_vector_of_another_model(graph: Graph) -> None:
    """A vector without a text cannot be made anew, so it goes."""
    graph.load([doc("given", None, OTHER), doc("known", SOUP, OTHER)], mode="append")

    graph.embed(reembed_all=True)

    assert vectors(graph)["given"] is None
    assert is_local(vectors(graph)["known"], SOUP)


def test_a_branch_is_embedded_and_merged(graph: Graph) -> None:
    graph.create_branch("vectors")

    graph.embed(branch="vectors")
    unchanged = missing(graph)
    graph.merge("vectors")

    assert len(unchanged) == 7
    assert missing(graph) == ["blank", "none"]
    assert nearest(graph, SOUP).startswith("d")
