"""Every branch is in a schema of its own: applied, read, written and kept apart from the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.catalog import catalog_from_json
from omnigraph.errors import ConflictError, NotFoundError, OmnigraphError, SourceError
from omnigraph.manifest.stamp import read_stamp
from omnigraph.testing.inside import inside

pytestmark = pytest.mark.slow

SCHEMA = """node Person {
    slug: String @key
    name: String
    age: I32?
}
node Place {
    slug: String @key
}
edge Knows: Person -> Person
"""
EMAIL = SCHEMA.replace("    age: I32?\n", "    age: I32?\n    email: String?\n")
PHONE = SCHEMA.replace("    age: I32?\n", "    age: I32?\n    phone: String?\n")
RENAMED = (
    SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {')
    .replace("edge Knows: Person -> Person", "edge Knows: Human -> Human")
    .replace("    name: String\n", '    full_name: String @rename_from("name")\n')
)
WITH_PET = SCHEMA + "node Pet {\n    slug: String @key\n    kind: String?\n}\n"
NO_PLACE = SCHEMA.replace("node Place {\n    slug: String @key\n}\n", "")


def new_graph(path: Path) -> og.Graph:
    graph = og.init(path / "g", schema=SCHEMA, durability="process", self_care=False)
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"slug": "ada", "name": "Ada", "age": 36}},
        {"type": "Person", "data": {"slug": "lin", "name": "Lin"}},
        {"type": "Place", "data": {"slug": "rome"}},
        {"edge": "Knows", "from": "ada", "to": "lin"},
    ]
    graph.load(records, mode="append")
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    made.create_branch("x")
    return made


def reopen(graph: og.Graph, **options: Any) -> og.Graph:
    return og.open(graph.uri, durability="process", self_care=False, **options)


def rows(graph: og.Graph, type_: str, branch: str = "main") -> list[dict[str, Any]]:
    found = graph.scan(type_, branch=branch).to_arrow().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def people(graph: og.Graph, branch: str = "main") -> list[dict[str, Any]]:
    return rows(graph, "Person", branch)


def is_sound(graph: og.Graph) -> None:
    found = graph.verify(content=True)
    assert found.errors == (), found.errors


# Main changes while a branch is open


def test_a_branch_stays_in_its_schema_while_main_changes(graph: og.Graph) -> None:
    other, reader = reopen(graph), reopen(graph, mode="r")
    before = people(graph, "x")

    assert graph.apply_schema(EMAIL).applied

    for each in (graph, other, reader, reopen(graph)):
        assert people(each, "x") == before
        assert "email" in people(each)[0]
        assert each.branch_schema("x") == SCHEMA
        assert each.schema == each.branch_schema() == EMAIL
    is_sound(graph)


def test_a_branch_is_written_in_its_own_schema(graph: og.Graph) -> None:
    graph.apply_schema(EMAIL)

    graph.mutate('query q() { insert Person { slug: "sam", name: "Sam" } }', branch="x")
    graph.load(
        [{"type": "Person", "data": {"slug": "kim", "name": "Kim"}}], mode="merge", branch="x"
    )
    with pytest.raises(OmnigraphError, match="email"):
        graph.mutate(
            'query q() { insert Person { slug: "no", name: "No", email: "e" } }', branch="x"
        )
    with pytest.raises(OmnigraphError, match="email"):
        graph.load(
            [{"type": "Person", "data": {"slug": "no", "name": "No", "email": "e"}}],
            mode="merge",
            branch="x",
        )
    graph.mutate('query q() { insert Person { slug: "no", name: "No", email: "e" } }')

    assert [each["slug"] for each in people(graph, "x")] == ["ada", "kim", "lin", "sam"]
    assert [each["slug"] for each in people(graph)] == ["ada", "lin", "no"]
    is_sound(graph)


@pytest.mark.parametrize("desired", [RENAMED, NO_PLACE, WITH_PET, EMAIL])
@pytest.mark.parametrize("branch", ["main", "x"])
def test_a_change_of_one_branch_leaves_the_others_alone(
    graph: og.Graph, desired: str, branch: str
) -> None:
    other = "x" if branch == "main" else "main"
    graph.mutate('query q() { insert Person { slug: "sam", name: "Sam" } }', branch="x")
    before = {type_: rows(graph, type_, other) for type_ in ("Person", "Place", "Knows")}
    exported = list(graph.export(branch=other))

    assert graph.apply_schema(desired, branch=branch).applied

    again = reopen(graph)
    assert {type_: rows(again, type_, other) for type_ in before} == before
    assert list(again.export(branch=other)) == exported
    assert (again.branch_schema(branch), again.branch_schema(other)) == (desired, SCHEMA)
    assert not again.apply_schema(desired, branch=branch).applied
    again.mutate('query q() { insert Person { slug: "zoe", name: "Zoe" } }', branch=other)
    assert "zoe" in [row["slug"] for row in rows(again, "Person", other)]
    is_sound(again)


# A branch changes


def test_a_branch_reads_writes_and_exports_in_the_schema_it_was_given(graph: og.Graph) -> None:
    assert graph.apply_schema(RENAMED, branch="x").applied

    graph.mutate('query q() { insert Human { slug: "sam", full_name: "Sam" } }', branch="x")
    found = graph.query(
        "query q() { match { $h: Human } return { $h.full_name } order { $h.slug } }", branch="x"
    ).rows()

    assert found == [{"h.full_name": "Ada"}, {"h.full_name": "Lin"}, {"h.full_name": "Sam"}]
    assert {each["type"] for each in graph.export(branch="x") if "type" in each} == {
        "Human",
        "Place",
    }
    with pytest.raises(OmnigraphError, match="Human"):
        graph.query("query q() { match { $h: Human } return { $h.full_name } }")
    assert [each["name"] for each in people(graph)] == ["Ada", "Lin"]
    is_sound(graph)


def test_a_branch_from_a_branch_is_in_its_schema(graph: og.Graph) -> None:
    graph.apply_schema(WITH_PET, branch="x")
    graph.mutate('query q() { insert Pet { slug: "rex" } }', branch="x")

    graph.create_branch("y", "x")
    graph.mutate('query q() { insert Pet { slug: "tom" } }', branch="y")

    assert graph.branch_schema("y") == WITH_PET
    assert [row["slug"] for row in rows(graph, "Pet", "y")] == ["rex", "tom"]
    assert [row["slug"] for row in rows(graph, "Pet", "x")] == ["rex"]
    is_sound(graph)


def test_two_branches_may_add_types_of_one_name(graph: og.Graph) -> None:
    """They are two types with a table each, whatever they are called."""
    graph.create_branch("y")
    graph.apply_schema(WITH_PET, branch="x")
    graph.apply_schema(WITH_PET.replace("kind: String?", "weight: F64?"), branch="y")
    graph.apply_schema(WITH_PET.replace("kind: String?", "legs: I32?"))
    for branch, data in (("x", 'kind: "dog"'), ("y", "weight: 3.5"), ("main", "legs: 4")):
        graph.mutate(f'query q() {{ insert Pet {{ slug: "rex", {data} }} }}', branch=branch)

    found = [rows(graph, "Pet", branch) for branch in ("x", "y", "main")]

    assert found == [
        [{"id": "rex", "kind": "dog", "slug": "rex"}],
        [{"id": "rex", "slug": "rex", "weight": 3.5}],
        [{"id": "rex", "legs": 4, "slug": "rex"}],
    ]
    is_sound(graph)


def test_no_identity_is_handed_out_twice(graph: og.Graph) -> None:
    """Whatever two branches add has another number, so that nothing is taken for something else."""
    graph.create_branch("y")
    graph.apply_schema(EMAIL, branch="x")
    graph.apply_schema(PHONE, branch="y")
    graph.delete_branch("x")
    graph.apply_schema(WITH_PET)

    catalogs = [
        catalog_from_json(json.loads(each.read_text())["ir"])
        for each in (Path(graph.uri) / "__schemas").iterdir()
    ]
    names: dict[int, set[str]] = {}
    for catalog in catalogs:
        for entity in catalog.entities():
            names.setdefault(entity.type_id, set()).add(entity.name)
            names.setdefault(entity.incarnation_id, set()).add(f"table of {entity.name}")
            for each in entity.properties.values():
                names.setdefault(each.property_id, set()).add(f"{entity.name}.{each.name}")

    assert [each for each in names.values() if len(each) > 1] == []


# What there was before


def test_a_graph_in_one_schema_stays_readable_for_an_earlier_omnigraph(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    graph.apply_schema(EMAIL)
    graph.create_branch("x")
    assert read_stamp(inside(graph).store.manifest) == 4

    graph.apply_schema(SCHEMA)

    assert read_stamp(inside(graph).store.manifest) == 5


def test_a_branch_starts_in_the_schema_of_its_commit(graph: og.Graph) -> None:
    graph.apply_schema(EMAIL)
    graph.apply_schema(RENAMED.replace("age: I32?", "age: I32?\n    email: String?"))

    graph.create_branch("then", "main~2")

    assert graph.branch_schema("then") == SCHEMA
    assert people(graph, "then") == people(graph, "x")
    graph.mutate('query q() { insert Person { slug: "sam", name: "Sam" } }', branch="then")
    assert len(people(graph, "then")) == 3
    is_sound(graph)


def test_the_past_of_a_branch_is_read_in_its_own_schemas(graph: og.Graph) -> None:
    version = graph.snapshot("x").manifest_version
    graph.apply_schema(RENAMED, branch="x")

    then = graph.query(
        "query q() { match { $p: Person } return { $p.name } order { $p.slug } }",
        branch="x",
        version=version,
    )
    today = graph.query(
        "query q() { match { $p: Human } return { $p.full_name } order { $p.slug } }",
        branch="x",
        version=version,
    )

    assert [row["p.name"] for row in then.rows()] == ["Ada", "Lin"]
    assert [row["p.full_name"] for row in today.rows()] == ["Ada", "Lin"]
    assert len(graph.diff("main", "x")) == 0


# What is refused


def test_removing_for_good_what_another_branch_has_is_refused(graph: og.Graph) -> None:
    for branch in ("main", "x"):
        with pytest.raises(ConflictError, match="would remove for good"):
            graph.apply_schema(NO_PLACE, branch=branch, allow_data_loss=True)

    graph.delete_branch("x")
    assert graph.apply_schema(NO_PLACE, allow_data_loss=True).applied
    is_sound(graph)


def test_a_schema_on_a_branch_that_is_not_there_is_refused(graph: og.Graph) -> None:
    with pytest.raises(NotFoundError, match="nope"):
        graph.apply_schema(EMAIL, branch="nope")
    with pytest.raises(SourceError):
        graph.apply_schema("node", branch="x")


def test_a_damaged_schema_keeps_identities_from_being_handed_out(graph: og.Graph) -> None:
    graph.apply_schema(EMAIL, branch="x")
    schema_id = graph.snapshot("x").schema_id
    (Path(graph.uri) / "__schemas" / f"{schema_id}.json").write_text("{}")

    with pytest.raises(ConflictError, match="identity that is in use"):
        graph.apply_schema(PHONE)
    with pytest.raises(ConflictError, match="schema of branch 'x' cannot be read"):
        people(graph, "x")


# Upkeep


def test_cleanup_keeps_what_branches_of_other_schemas_show(graph: og.Graph) -> None:
    """A branch that renamed a type has its fork under another key; one that dropped it, hidden."""
    graph.mutate('query q() { insert Person { slug: "sam", name: "Sam" } }', branch="x")
    graph.create_branch("y")
    graph.mutate('query q() { insert Place { slug: "oslo" } }', branch="y")
    before_drop = graph.snapshot("y").head.commit_id
    graph.apply_schema(RENAMED, branch="x")
    graph.apply_schema(NO_PLACE, branch="y")
    graph.apply_schema(EMAIL)
    shown = rows(graph, "Human", "x"), rows(graph, "Person", "y"), people(graph)

    report = graph.cleanup(keep=100, confirm=True)

    assert report.forks_removed == ()
    again = reopen(graph)
    assert (rows(again, "Human", "x"), rows(again, "Person", "y"), people(again)) == shown
    found = again.scan("Place", commit=before_drop).to_arrow().to_pylist()
    assert sorted(row["slug"] for row in found) == ["oslo", "rome"]
    again.optimize()
    again.ensure_indices("x")
    assert (rows(again, "Human", "x"), rows(again, "Person", "y"), people(again)) == shown
    is_sound(again)
