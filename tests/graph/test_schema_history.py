"""A commit is read in its own schema, and through identities with the names of today."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, NotFoundError, TypeCheckError

FIRST = """
node Person {
    name: String @key
    age: I32
    bio: String? @index
    face: Vector(2)? @index
    photo: Blob?
}
node City { code: String @key }
edge LivesIn: Person -> City { since: I32? }
"""

RENAMED = """
node Person {
    full_name: String @key @rename_from("name")
    years: I32 @rename_from("age")
    bio: String? @index
    face: Vector(2)? @index
    photo: Blob?
    email: String?
    score: Vector(2)?
    scan: Blob?
}
node City { code: String @key }
edge LivesIn: Person -> City { since: I32? }
node Venue { title: String @key }
edge Visited: Person -> Venue
"""

OTHER_TYPES = """
node Human @rename_from("Person") {
    name: String @key
    age: I32
    bio: String? @index
    face: Vector(2)? @index
    photo: Blob?
}
node City { code: String @key }
edge DwellsIn: Human -> City @rename_from("LivesIn") { since: I32? }
"""

WITHOUT_CITIES = """
node Person {
    name: String @key
    age: I32
    bio: String? @index
    face: Vector(2)? @index
    photo: Blob?
}
"""

BACK = FIRST.replace("@key", '@key @rename_from("full_name")', 1).replace(
    "age: I32", 'age: I32 @rename_from("years")'
)

ROWS: list[dict[str, Any]] = [
    {
        "type": "Person",
        "data": {
            "name": name,
            "age": age,
            "bio": f"{name} by the river",
            "face": [float(age), 0.0],
            "photo": "base64:AAEC",
        },
    }
    for name, age in (("ann", 31), ("bob", 42))
] + [
    {"type": "City", "data": {"code": "lis"}},
    {"edge": "LivesIn", "from": "ann", "to": "lis", "data": {"since": 2001}},
]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    made = og.init(tmp_path / "graph", schema=FIRST, durability="process", self_care=False)
    made.load(ROWS, mode="append")
    with made:
        yield made


def head(graph: og.Graph) -> str:
    return graph.snapshot().head.commit_id


def asked(graph: og.Graph, body: str, **target: Any) -> list[dict[str, Any]]:
    return graph.query(f"query q() {{ {body} }}", **target).rows()


PEOPLE = "match { $p: Person } return { $p.name, $p.age } order { $p.name }"
PEOPLE_NOW = "match { $p: Person } return { $p.full_name, $p.years } order { $p.full_name }"


def test_an_older_commit_answers_in_the_names_of_its_own_schema(graph: og.Graph) -> None:
    """Also a required property, the key, and filters over both."""
    before, at_that_time = head(graph), asked(graph, PEOPLE)
    version = graph.snapshot().manifest_version
    graph.apply_schema(RENAMED)

    assert at_that_time == [{"p.name": "ann", "p.age": 31}, {"p.name": "bob", "p.age": 42}]
    assert asked(graph, PEOPLE, commit=before) == at_that_time
    assert asked(graph, PEOPLE, version=version) == at_that_time
    assert asked(
        graph, 'match { $p: Person { name: "ann" } $p.age < 40 } return { $p.age }', commit=before
    ) == [{"p.age": 31}]
    assert asked(
        graph,
        "match { $p: Person  $p livesIn $c } return { $p.name, $c.code }",
        commit=before,
    ) == [{"p.name": "ann", "c.code": "lis"}]


def test_the_names_of_today_find_the_old_values_through_identities(graph: og.Graph) -> None:
    before = head(graph)
    graph.apply_schema(RENAMED)
    graph.mutate(
        'query q() { update Person set { years: 99, email: "a@b" } where full_name="ann" }'
    )

    assert asked(graph, PEOPLE_NOW, commit=before) == [
        {"p.full_name": "ann", "p.years": 31},
        {"p.full_name": "bob", "p.years": 42},
    ]
    assert asked(
        graph,
        'match { $p: Person { full_name: "bob" } $p.years >= 42 } return { $p.years, $p.email }',
        commit=before,
    ) == [{"p.years": 42, "p.email": None}]
    assert (
        asked(graph, 'match { $p: Person { email: "a@b" } } return { $p.full_name }', commit=before)
        == []
    )
    assert asked(graph, "match { $v: Venue } return { $v.title }", commit=before) == []
    assert (
        asked(graph, "match { $p: Person  $p visited $v } return { $v.title }", commit=before) == []
    )
    assert asked(
        graph,
        'match { $p: Person  search($p.bio, "river") } return { $p.years } order { $p.years }',
        commit=before,
    ) == [{"p.years": 31}, {"p.years": 42}]
    assert asked(
        graph,
        "match { $p: Person } return { $p.years } order { nearest($p.face, [42.0, 0.0]) } limit 1",
        commit=before,
        schema="current",
    ) == [{"p.years": 42}]
    assert asked(graph, PEOPLE_NOW)[0] == {"p.full_name": "ann", "p.years": 99}
    assert asked(graph, PEOPLE, commit=before)[0] == {"p.name": "ann", "p.age": 31}


def test_a_query_that_fits_neither_schema_is_refused_in_the_words_of_its_commit(
    graph: og.Graph,
) -> None:
    before = head(graph)
    graph.apply_schema(RENAMED)

    with pytest.raises(TypeCheckError, match="Person has no property `nmae`"):
        asked(graph, "match { $p: Person } return { $p.nmae }", commit=before)
    with pytest.raises(TypeCheckError, match="name"):
        asked(graph, PEOPLE, commit=before, schema="current")
    with pytest.raises(BadRequestError, match="schema is 'newest', expected"):
        asked(graph, PEOPLE, commit=before, schema="newest")


def test_a_name_used_again_is_not_mistaken_for_the_old_property(graph: og.Graph) -> None:
    before = head(graph)
    graph.apply_schema(FIRST.replace("    bio: String? @index\n", ""))
    graph.apply_schema(FIRST)
    query = "match { $p: Person } return { $p.name, $p.bio } order { $p.name }"

    own = asked(graph, query, commit=before)
    through_identity = asked(graph, query, commit=before, schema="current")

    assert [row["p.bio"] for row in own] == ["ann by the river", "bob by the river"]
    assert [row["p.bio"] for row in through_identity] == [None, None]
    assert asked(graph, query, commit=before) == own
    assert [each.op.value for each in graph.diff(before, "main")] == ["update", "update"]


def test_after_a_type_rename_both_names_read_an_older_commit(graph: og.Graph) -> None:
    before = head(graph)
    graph.apply_schema(OTHER_TYPES)

    assert asked(graph, PEOPLE, commit=before)[0] == {"p.name": "ann", "p.age": 31}
    assert asked(
        graph,
        "match { $h: Human  $h dwellsIn $c } return { $h.name, $c.code }",
        commit=before,
    ) == [{"h.name": "ann", "c.code": "lis"}]
    assert [record.get("type") for record in graph.export(commit=before)] == [
        None,
        "City",
        "Person",
        "Person",
    ]


def test_an_export_of_an_older_commit_is_in_its_schema(graph: og.Graph, tmp_path: Path) -> None:
    before, at_that_time = head(graph), list(graph.export())
    graph.apply_schema(RENAMED)

    assert list(graph.export(commit=before)) == at_that_time
    path = graph.export(tmp_path / "old.jsonl", commit=before)
    fresh = og.init(tmp_path / "fresh", schema=FIRST, durability="process")
    fresh.load(path, mode="overwrite")
    assert list(fresh.export()) == at_that_time
    now = list(graph.export(commit=before, schema="current"))
    assert now == list(graph.export())
    (ann, *_) = [record for record in now if record.get("type") == "Person"]
    assert (ann["data"]["full_name"], ann["data"]["email"]) == ("ann", None)
    assert (ann["data"]["photo"], ann["data"]["scan"]) == ("base64:AAEC", None)
    assert list(graph.export(commit=before, types=["Venue"])) == []


def test_frames_entities_and_blobs_of_an_older_commit_are_in_its_schema(graph: og.Graph) -> None:
    before, version = head(graph), graph.snapshot().manifest_version
    graph.apply_schema(RENAMED)
    ann = graph.nodes("Person").to_arrow().to_pylist()[0]["id"]

    assert graph.nodes("Person", commit=before).schema.names == [
        "id",
        "age",
        "bio",
        "face",
        "name",
        "photo",
    ]
    assert sorted(graph.nodes("Person", commit=before).to_pandas()["age"]) == [31, 42]
    current = graph.nodes("Person", commit=before, schema="current")
    assert current.schema.names == graph.nodes("Person").schema.names
    assert current.to_arrow().sort_by("years")["years"].to_pylist() == [31, 42]
    assert current.to_arrow()["scan"].null_count == 2
    by_new_name = graph.nodes("Person", commit=before, columns=["years"])
    assert sorted(by_new_name.to_arrow()["years"].to_pylist()) == [31, 42]
    assert graph.nodes("Venue", commit=before).count_rows() == 0
    with pytest.raises(BadRequestError, match="unknown type 'node:Ghost'"):
        graph.nodes("Ghost", commit=before)
    was = graph.entity_at("node:Person", ann, version)
    assert was is not None
    assert was["name"] == "ann"
    assert graph.entity_at("node:Venue", ann, version) is None
    with pytest.raises(NotFoundError, match="there is no table 'node:Ghost'"):
        graph.entity_at("node:Ghost", ann, version)
    assert bytes(graph.read_blob("node", "Person", ann, "photo", commit=before)) == b"\x00\x01\x02"
    with pytest.raises(NotFoundError, match="scan of node:Person"):
        graph.read_blob("node", "Person", ann, "scan", commit=before)


def test_a_rename_changes_no_row(graph: og.Graph) -> None:
    """An added property is an update of the rows that hold a value in it, and of no other."""
    before = head(graph)
    graph.apply_schema(RENAMED)
    renamed = head(graph)
    graph.mutate('query q() { update Person set { email: "a@b" } where full_name = "ann" }')

    assert list(graph.diff(before, renamed)) == []
    assert list(graph.diff(renamed, before)) == []
    (change,) = graph.diff(before, "main")
    assert change.properties == ["email"]
    assert (change.before or {})["name"] == (change.after or {})["full_name"] == "ann"
    (back,) = graph.diff("main", before)
    assert back.properties == ["email"]


def test_a_dropped_property_is_an_update_of_the_rows_that_held_a_value(graph: og.Graph) -> None:
    graph.load(
        [{"type": "Person", "data": {"name": "cid", "age": 5}}],
        mode="append",
    )
    before = head(graph)
    graph.apply_schema(FIRST.replace("    bio: String? @index\n", ""))

    assert [each.op.value for each in graph.diff(before, "main")] == ["update", "update"]
    assert all(each.properties == ["bio"] for each in graph.diff(before, "main"))


def test_a_type_rename_changes_no_row(graph: og.Graph) -> None:
    before = head(graph)
    graph.apply_schema(OTHER_TYPES)
    graph.mutate('query q() { update Human set { age: 32 } where name = "ann" }')

    (change,) = graph.diff(before, "main")
    assert (change.table_key, change.type_name, change.properties) == (
        "node:Human",
        "Human",
        ["age"],
    )
    assert list(graph.diff(before, "main", types=["City"])) == []
    assert len(graph.diff(before, "main", types=["Human"])) == 1
    assert len(graph.diff(before, "main", types=["Person"])) == 1
    with pytest.raises(BadRequestError, match="there is no type 'Ghost'"):
        graph.diff(before, "main", types=["Ghost"])


def test_dropped_types_are_deletes_and_added_ones_inserts(graph: og.Graph) -> None:
    before = head(graph)
    graph.apply_schema(WITHOUT_CITIES)
    after = head(graph)

    gone = [(each.op.value, each.table_key) for each in graph.diff(before, after)]
    back = [(each.op.value, each.table_key) for each in graph.diff(after, before)]
    (block,) = graph.changes(before)

    assert gone == [("delete", "edge:LivesIn"), ("delete", "node:City")]
    assert back == [("insert", "edge:LivesIn"), ("insert", "node:City")]
    assert [(each.op.value, each.table_key) for each in block.changes] == gone
    assert "lis" in graph.diff_html(before, after)
    (edge, _) = graph.diff(before, after)
    assert edge.endpoints == ("ann", "lis")
    assert [len(block.changes) for block in graph.changes(before, types=["City"])] == [1]


@pytest.mark.slow
def test_every_step_of_the_feed_is_in_its_own_pair_of_schemas(graph: og.Graph) -> None:
    start = head(graph)
    graph.apply_schema(RENAMED)
    graph.mutate('query q() { insert Venue { title: "hall" } }')
    graph.mutate('query q() { update Person set { years: 50 } where full_name = "bob" }')
    graph.apply_schema(BACK)

    blocks = list(graph.changes(start))

    assert [
        [(each.op.value, each.type_name, each.id) for each in block.changes] for block in blocks
    ] == [
        [],
        [("insert", "Venue", "hall")],
        [("update", "Person", "bob")],
        [("delete", "Venue", "hall")],
    ]
    assert [len(block.changes) for block in graph.changes(start, types=["Venue"])] == [0, 1, 0, 1]


def test_a_change_set_says_which_schema_each_side_has(graph: og.Graph) -> None:
    before = head(graph)
    same = graph.diff(before, before).to_json()
    graph.apply_schema(RENAMED)

    told = graph.diff(before, "main").to_json()

    assert same["from_schema"] == same["to_schema"] == told["from_schema"]
    assert told["to_schema"] != told["from_schema"]
    assert (Path(graph.uri) / "__schemas" / f"{told['from_schema']}.json").exists()
    assert (Path(graph.uri) / "__schemas" / f"{told['to_schema']}.json").exists()


def test_an_old_handle_of_another_process_reads_the_past_alike(graph: og.Graph) -> None:
    other = og.open(graph.uri, mode="r")
    before = head(graph)
    assert asked(other, PEOPLE)[0] == {"p.name": "ann", "p.age": 31}
    graph.apply_schema(RENAMED)

    assert asked(other, PEOPLE, commit=before)[0] == {"p.name": "ann", "p.age": 31}
    assert asked(other, PEOPLE_NOW)[0] == {"p.full_name": "ann", "p.years": 31}
    assert asked(other, PEOPLE_NOW, commit=before)[0] == {"p.full_name": "ann", "p.years": 31}


def test_a_commit_whose_schema_text_is_gone_is_read_by_the_names_that_match(
    graph: og.Graph,
) -> None:
    before = head(graph)
    graph.apply_schema(RENAMED)
    graph.close()
    kept = Path(graph.uri) / "__schemas"
    schema = og.open(graph.uri, mode="r").diff(before, "main").to_json()["from_schema"]
    (kept / f"{schema}.json").unlink()
    graph = og.open(graph.uri, mode="r")

    assert asked(graph, "match { $p: Person } return { $p.bio, $p.years }", commit=before)[0] == {
        "p.bio": "ann by the river",
        "p.years": None,
    }
    records = [each for each in graph.export(commit=before) if each.get("type") == "Person"]
    assert [each["data"]["bio"] for each in records] == ["ann by the river", "bob by the river"]


def test_a_handle_that_knows_an_earlier_branch_of_the_name_writes_in_the_new_schema(
    tmp_path: Path,
) -> None:
    one = og.init(tmp_path / "graph", schema="node P { name: String @key }", durability="process")
    two = og.open(tmp_path / "graph", durability="process")
    one.mutate('query q() { insert P { name: "a" } }')
    one.create_branch("b")
    assert list(two.export(branch="b"))
    one.delete_branch("b")
    one.apply_schema("node P { name: String @key  extra: I32? }")
    one.create_branch("b")

    two.mutate('query q() { update P set { extra: 1 } where name = "a" }', branch="b")

    (record,) = one.export(branch="b")
    assert record["data"]["extra"] == 1
