"""Pictures: what a read matched is what is drawn, and other libraries get the same graph."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import igraph
import networkx
import numpy as np
import pytest
from ipywidgets.widgets import widget

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.graph import picture_widget

WIDGET = "application/vnd.jupyter.widget-view+json"
needs_renderer = pytest.mark.skipif(
    picture_widget.read_renderer() is None, reason="needs the workbench: make ui"
)
SCHEMA = """
interface Named { name: String @key }
node Person implements Named { age: I32?  face: Vector(2)?  photo: Blob? }
node Firm implements Named { city: String? }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Firm
edge In: Firm -> Firm
"""
PEOPLE = [("ann", 30, [1, 0]), ("bob", 40, [0, 1]), ("cem", None, None), ("dia", 20, [1, 1])]
KNOWS = [("ann", "bob"), ("bob", "cem"), ("cem", "dia"), ("ann", "cem")]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("pictures") / "g", schema=SCHEMA, durability="process")
    people = [
        {"type": "Person", "data": {"name": name, "age": age, "face": face}}
        for name, age, face in PEOPLE
    ]
    # A firm has the id of a person: only the type tells them apart.
    firms = [{"type": "Firm", "data": {"name": name}} for name in ("ann", "acme")]
    knows = [{"edge": "Knows", "from": a, "to": b, "data": {}} for a, b in KNOWS]
    works = [{"edge": "WorksAt", "from": "ann", "to": "ann", "data": {}}]
    inside = [{"edge": "In", "from": "ann", "to": "acme", "data": {}}]
    graph.load([*people, *firms, *knows, *works, *inside], mode="append")
    return graph


def names_of(graph: og.Graph, body: str, **params: object) -> tuple[set[str], set[str]]:
    """Nodes and edges of what a query matches, as short texts."""
    drawn = graph.query(f"query q($n: String? = null) {{ {body} }}", params=params).graph()
    nodes = {f"{type_}:{id_}" for type_, id_ in drawn.subgraph.nodes}
    edges = {f"{e.source[1]}-{e.type}-{e.target[1]}" for e in drawn.subgraph.edges}
    return nodes, edges


CASES = {
    "one hop": (
        'match { $a: Person { name: "ann" } $a knows $b } return { $b.name }',
        {"Person:ann", "Person:bob", "Person:cem"},
        {"ann-Knows-bob", "ann-Knows-cem"},
    ),
    "limit and order": (
        'match { $a: Person { name: "ann" } $a knows $b } return { $b.name as n } '
        "order { n desc } limit 1",
        {"Person:ann", "Person:cem"},
        {"ann-Knows-cem"},
    ),
    "groups": (
        "match { $a: Person $a worksAt $f } return { count($f) as n } limit 1",
        {"Person:ann", "Firm:ann"},
        {"ann-WorksAt-ann"},
    ),
    "path": (
        'match { $a: Person { name: "bob" } $a knows{1,2} $b $b.name = "dia" } return { $b.name }',
        {"Person:bob", "Person:cem", "Person:dia"},
        {"bob-Knows-cem", "cem-Knows-dia"},
    ),
    "undirected shortest": (
        'match { $a: Person { name: "dia" } $b: Person { name: "ann" } $a shortest <knows> $b } '
        "return { $b.name }",
        {"Person:ann", "Person:cem", "Person:dia"},
        {"ann-Knows-cem", "cem-Knows-dia"},
    ),
    "anonymous end": (
        'match { $a: Person { name: "cem" } $a knows $_ } return { $a.name }',
        {"Person:cem", "Person:dia"},
        {"cem-Knows-dia"},
    ),
    "optional without a match": (
        'match { $a: Person { name: "dia" } optional { $a knows $b } } return { $a.name, $b.name }',
        {"Person:dia"},
        set(),
    ),
    "interface": (
        'match { $x: Named { name: "ann" } } return { type($x) as t }',
        {"Person:ann", "Firm:ann"},
        set(),
    ),
    "stage": (
        "top 1 by $p.age desc { $p: Person $p.age is not null } match { $p knows $q } "
        "return { $q.name }",
        {"Person:bob", "Person:cem"},
        {"bob-Knows-cem"},
    ),
    "negation": (
        "match { $a: Person not { $a knows $_ } } return { $a.name }",
        {"Person:dia"},
        set(),
    ),
    "edge called in": (
        "match { $a: Firm $b: Firm $a in $b } return { $a.name }",
        {"Firm:ann", "Firm:acme"},
        {"ann-In-acme"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_picture_of_a_read_holds_what_it_matched(graph: og.Graph, case: str) -> None:
    body, nodes, edges = CASES[case]

    assert names_of(graph, body) == (nodes, edges)


def test_a_picture_shows_the_graph_as_it_was_read(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", schema=SCHEMA, durability="process")
    add = "query add($name: String) { insert Firm { name: $name } }"
    graph.mutate(add, params={"name": "acme"})
    result = graph.query("query q() { match { $f: Firm } return { $f.name } }")

    graph.mutate(add, params={"name": "later"})

    assert list(result.graph().subgraph.nodes) == [("Firm", "acme")]


def test_a_sample_of_the_graph_hangs_together_and_says_that_it_is_one(graph: og.Graph) -> None:
    whole, cut = graph.picture(), graph.picture(limit=3)

    assert len(whole.subgraph.nodes) == 6
    assert len(whole.subgraph.edges) == 6
    assert not whole.subgraph.is_cut
    assert len(cut.subgraph.nodes) == 3
    assert cut.subgraph.edges
    assert "the first of more" in repr(cut)
    firms = graph.picture(types=["Firm"]).subgraph
    assert {each for each, _ in firms.nodes} == {"Firm"}
    assert [each.type for each in firms.edges] == ["In"]


def test_a_sample_that_has_everything_does_not_claim_to_be_cut(graph: og.Graph) -> None:
    """Six edges of three types are no more than a limit of six nodes allows."""
    assert not graph.picture(limit=6).subgraph.is_cut
    assert graph.picture(limit=5).subgraph.is_cut


@needs_renderer
def test_a_notebook_gets_a_widget_and_a_still_drawing_for_front_ends_without(
    graph: og.Graph,
) -> None:
    picture = graph.picture()

    shown, again = picture._repr_mimebundle_(), picture._repr_mimebundle_()

    assert shown["text/html"].count("<circle") == 6
    assert shown["text/plain"] == repr(picture)
    assert WIDGET in shown
    assert shown[WIDGET] == again[WIDGET]  # one model, however often it is shown
    data = widget._instances[shown[WIDGET]["model_id"]].data
    assert [each["label"] for each in data["nodes"]] == [id_ for _, id_ in list_keys(graph)]
    assert len(data["edges"]) == 6


def list_keys(graph: og.Graph) -> list[tuple[str, str]]:
    return list(graph.picture().subgraph.nodes)


@needs_renderer
@pytest.mark.parametrize("missing", ["anywidget", "renderer"])
def test_without_the_package_or_the_renderer_a_picture_is_a_still_drawing(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "anywidget":
        monkeypatch.setitem(sys.modules, "anywidget", None)
    else:
        monkeypatch.setattr(picture_widget, "read_renderer", lambda: None)

    shown = graph.picture()._repr_mimebundle_()
    page = graph.picture().to_html(tmp_path / "g.html").read_text()

    assert set(shown) == {"text/plain", "text/html"}
    assert ("<script" in page) == (missing == "anywidget")  # a page needs no package
    assert "default-src &#x27;none&#x27;" in page


@needs_renderer
def test_a_value_cannot_end_the_script_of_a_page(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        hostile = "</script><script>hacked = 1</script><!--"
        graph.load([{"type": "Firm", "data": {"name": hostile}}], mode="append")
        page = graph.picture().to_html(tmp_path / "g.html").read_text()

    assert page.count("</script>") == 2
    assert "hacked = 1</script>" not in page
    (data,) = re.findall(r'id="data">(.*)</script>', page)
    assert json.loads(data)["nodes"][0]["label"] == hostile


@needs_renderer
def test_rows_of_nodes_and_paths_show_as_a_picture_and_rows_of_values_as_a_table(
    graph: og.Graph,
) -> None:
    match = 'match { $a: Person { name: "ann" } $a $t:knows{1,2} $b }'
    returned = {"$a": True, "nodes($t) as n": True, "$b.name": False, "count($b) as n": False}

    drawn = {
        each: WIDGET
        in graph.query(f"query q() {{ {match} return {{ {each} }} }}")._repr_mimebundle_()
        for each in returned
    }

    assert drawn == returned


@pytest.mark.parametrize("limit", [0, -1, 5001])
def test_a_picture_of_no_or_too_many_nodes_is_refused(graph: og.Graph, limit: int) -> None:
    with pytest.raises(BadRequestError, match=r"expected 1 to 5,000"):
        graph.picture(limit=limit)


def test_an_unknown_type_is_refused_with_the_nearest_name(graph: og.Graph) -> None:
    with pytest.raises(BadRequestError, match=r"no type 'Persn'.*`Person`"):
        graph.to_networkx(["Persn"])


def test_networkx_gets_every_node_edge_and_property(graph: og.Graph) -> None:
    made = graph.to_networkx()

    assert isinstance(made, networkx.MultiDiGraph)
    assert made.number_of_nodes() == 6
    assert made.nodes["Person", "ann"] == {"type": "Person", "id": "ann", "name": "ann", "age": 30}
    assert made.has_edge(("Person", "ann"), ("Firm", "ann"))
    assert networkx.shortest_path_length(made, ("Person", "ann"), ("Person", "dia")) == 2
    people = graph.to_networkx(["Person"])
    assert people.number_of_nodes() == len(PEOPLE)
    assert people.number_of_edges() == len(KNOWS)


def test_igraph_gets_the_same_graph(graph: og.Graph) -> None:
    made = graph.to_igraph()

    assert isinstance(made, igraph.Graph)
    assert (made.vcount(), made.ecount(), made.is_directed()) == (6, 6, True)
    named = {(made.vs[e.source]["id"], e["type"], made.vs[e.target]["id"]) for e in made.es}
    assert named >= {(a, "Knows", b) for a, b in KNOWS}


def test_the_rows_of_a_read_become_a_networkx_graph(graph: og.Graph) -> None:
    body = 'query q() { match { $a: Person { name: "ann" } $a knows $b } return { $b.name } }'

    assert set(graph.query(body).to_networkx().nodes) == {
        ("Person", name) for name in ("ann", "bob", "cem")
    }
    assert graph.query(body).to_igraph().ecount() == 2


def test_arrays_index_the_rows_of_nodes_without_a_copy(graph: og.Graph) -> None:
    arrays = graph.to_arrays()

    ids = arrays.nodes["Person"]["id"].to_pylist()
    sources, targets = arrays.edge_index["Person", "Knows", "Person"]
    assert {(ids[a], ids[b]) for a, b in zip(sources, targets, strict=True)} == set(KNOWS)
    assert sources.dtype == np.int64
    assert "photo" not in arrays.nodes["Person"].column_names
    known = arrays.nodes["Person"].filter(arrays.nodes["Person"]["face"].is_valid())
    faces = og.graph.arrays.GraphArrays({"Person": known}, {}, {}).column("Person", "face")
    assert faces.shape == (3, 2)
