"""Hostile strings: stored and matched as they are, and never a way out of the graph root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import BadRequestError, OmnigraphError
from tests.depth import depth
from tests.graph.reading import ADD, add, ages, links, names, new_graph, reopen, rows

HOSTILE = [
    *("'", "''", '"', "`", "\\", "\\'", "' OR 1=1 --", "'; DROP TABLE x; --", "%", "_", "%%", "*"),
    *(
        "\0",
        "a\0b",
        "\n",
        "\r\n",
        "\t",
        " ",
        "  a  ",
        "\ufeff",
        "\u200d",
        "\u202e",
        "\x7f",
        "\x1b[2J",
    ),
    *(
        "é",
        "e\u0301",
        "ß",
        "ẞ",
        "I",
        "ı",
        "\u03a9",
        "\u2126",
        "ﬁ",
        "𝔘",
        "👩‍👩‍👧",
        "‘",
        "’",
        "null",
        "NULL",
    ),
    *("true", "1", "-0", "1e5", "nan", "../x", "/etc/passwd", "$(reboot)", "${x}", "{{x}}", "<b>"),
    *("node:Person", "graph_head:main", "$tombstone$", "a" * 10_000, "'" * 500, "base64:AAAA"),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return new_graph(tmp_path_factory.mktemp("strings") / "graph")


@pytest.mark.slow
def test_every_string_is_its_own_key(tmp_path: Path) -> None:
    """Keys are compared as exact text: no folding, no trimming, no normalising."""
    graph = new_graph(tmp_path / "graph")
    records = [{"type": "Person", "data": {"name": text, "age": 1}} for text in HOSTILE]
    graph.load(records, mode="append")

    assert sorted(names(graph)) == sorted(HOSTILE)
    for text in HOSTILE[::4]:
        assert add(graph, "age", name=text, age=2).affected_nodes == 1
    assert [name for name, age in ages(graph).items() if age == 2] == sorted(HOSTILE[::4])
    for text in HOSTILE[::6]:
        assert add(graph, "gone", name=text).affected_nodes == 1
    assert sorted(names(graph)) == sorted(set(HOSTILE) - set(HOSTILE[::6]))


@pytest.mark.slow
@settings(max_examples=depth(10, 100), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=30), other=st.sampled_from(HOSTILE))
def test_a_string_comes_back_as_it_went_in(graph: og.Graph, text: str, other: str) -> None:
    """In keys, endpoints, values and predicates; a model in Python says what must be there."""
    expected = set(names(graph)) | {text, other}

    add(graph, "pair", a=text, b=other)

    assert set(names(graph)) == expected
    assert (text, other) in links(graph)
    count = sum(source == text for source, _ in links(graph))
    assert add(graph, "apart", a=text).affected_edges == count
    assert all(source != text for source, _ in links(graph))


@pytest.mark.parametrize("actor", HOSTILE[::3])
def test_an_actor_is_kept_to_the_letter(graph: og.Graph, actor: str) -> None:
    result = graph.mutate(ADD, "note", {"text": actor}, actor=actor)

    assert graph.commit(str(result.commit_id)).actor == actor
    assert reopen(graph).commits(actor=actor)[0].commit_id == result.commit_id
    assert actor in [row["text"] for row in rows(graph, "Note")]


PATHS = [
    *("..", "../x", "../../x", "a/../../x", "/tmp/x", "//x", "a//b", "./a", "a/.", "a\\..\\b"),
    *("%2e%2e/x", "..%2fx", "a\0", "a\n", "x.lock", "C:\\x", "~/x", "a/", "/", "a:b", "\u2025/x"),
    *("CON", "tree", "_refs", "_versions", "x" * 150, "a.", "a-", "-a", "é", "日本", "_", "1.2.3"),
]


@pytest.fixture(scope="module")
def enclosed(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that is alone in its directory."""
    graph = new_graph(tmp_path_factory.mktemp("around") / "graph")
    add(graph, "person", name="ann")
    return graph


@pytest.mark.parametrize("name", PATHS)
def test_a_branch_name_never_leads_out_of_the_graph(enclosed: og.Graph, name: str) -> None:
    """Either it is refused, or it is an ordinary branch, and both ways nothing lies outside."""
    graph, around = enclosed, Path(enclosed.uri).parent

    try:
        graph.create_branch(name)
    except BadRequestError:
        for act in (
            lambda: add(graph, "person", branch=name, name="x"),
            lambda: graph.delete_branch(name),
            lambda: graph.snapshot(name),
            lambda: graph.create_branch("b", name),
        ):
            with pytest.raises(OmnigraphError):
                act()
    else:
        add(graph, "person", branch=name, name="bob")
        assert names(graph, name) == ["ann", "bob"]
        graph.delete_branch(name)

    assert graph.branches() == ["main"]
    assert names(reopen(graph)) == ["ann"]
    assert os.listdir(around) == ["graph"]
    assert not {"x", "b"} & set(os.listdir(around.parent))
    assert not Path("/tmp/x").exists()
