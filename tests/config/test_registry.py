"""Stored queries: what fits is listed, what does not is told by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph import build_catalog, parse_schema
from omnigraph.config import StoredEntry
from omnigraph.config.registry import load_registry

CATALOG = build_catalog(
    parse_schema(
        "node Person { slug: String @key  born: Date?  age: I32?  score: F64?  tags: [String]? "
        "seen: DateTime?  total: I64?  ok: Bool?  look: Vector(3)? }"
    )
)
FIND = """\
query find($slug: String, $born: Date?) @description("Finds.") @instruction("Use slugs.") {
    match { $p: Person { slug: $slug } }
    return { $p.age }
}
query rename($slug: String, $age: I32) { update Person set { age: $age } where slug = $slug }
query near($to: Vector(3)) {
    match { $p: Person } return { $p.slug } order { nearest($p.look, $to) } limit 3
}
query kinds($a: Bool, $b: U32, $c: I64, $d: F32, $e: DateTime, $f: [I64]) {
    match { $p: Person } return { $p.slug }
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.gq"
    path.write_text(FIND)
    return path


def test_a_query_is_listed_with_what_callers_need(file: Path) -> None:
    registry = load_registry({"find": StoredEntry(file, tool_name="find_person")}, CATALOG)

    found = registry.queries["find"]
    assert registry.is_sound
    assert (found.name, found.tool_name, found.mutation) == ("find", "find_person", False)
    assert (found.description, found.instruction) == ("Finds.", "Use slugs.")
    assert found.source == FIND
    assert [param.to_json() for param in found.params] == [
        {"name": "slug", "kind": "string", "nullable": False},
        {"name": "born", "kind": "date", "nullable": True},
    ]
    assert [param.type for param in found.params] == ["String", "Date"]


def test_every_type_has_its_kind(file: Path) -> None:
    registry = load_registry(
        {"kinds": StoredEntry(file), "near": StoredEntry(file, expose=False)}, CATALOG
    )

    kinds = [param.to_json() for param in registry.queries["kinds"].params]
    assert [each["kind"] for each in kinds] == [
        "bool",
        "int",
        "bigint",
        "float",
        "datetime",
        "list",
    ]
    assert kinds[-1]["item_kind"] == "bigint"
    [vector] = registry.queries["near"].params
    assert vector.to_json() == {"name": "to", "kind": "vector", "vector_dim": 3, "nullable": False}


def test_a_mutation_is_one_and_its_name_is_its_tool_name(file: Path) -> None:
    [found] = load_registry({"rename": StoredEntry(file)}, CATALOG).queries.values()

    assert (found.mutation, found.tool_name, found.expose) == (True, "rename", True)


def test_queries_that_do_not_fit_are_reported_by_name_and_the_rest_is_served(file: Path) -> None:
    wrong = file.with_name("wrong.gq")
    wrong.write_text("query wrong() { match { $p: Person } return { $p.nmae } }")

    registry = load_registry(
        {
            "find": StoredEntry(file),
            "missing": StoredEntry(file),
            "nowhere": StoredEntry(file.with_name("nowhere.gq")),
            "wrong": StoredEntry(wrong),
        },
        CATALOG,
    )

    assert list(registry.queries) == ["find"]
    assert not registry.is_sound
    told = {each.query: each.message for each in registry.breakages}
    assert "query 'missing' not found" in told["missing"]
    assert "no such file" in told["nowhere"].lower()
    assert "T6" in told["wrong"]


def test_two_exposed_queries_cannot_have_one_tool_name(file: Path) -> None:
    entries = {
        "find": StoredEntry(file, tool_name="people"),
        "rename": StoredEntry(file, tool_name="people"),
    }

    registry = load_registry(entries, CATALOG)

    assert [each.query for each in registry.breakages] == ["rename"]
    assert "tool name 'people' is taken by query 'find'" in registry.breakages[0].message
    entries["rename"] = StoredEntry(file, expose=False, tool_name="people")
    assert load_registry(entries, CATALOG).is_sound, "a hidden query blocks no tool name"


def test_an_exposed_vector_parameter_is_warned_about(file: Path) -> None:
    assert "'near'" in load_registry({"near": StoredEntry(file)}, CATALOG).warnings[0]
    assert not load_registry({"near": StoredEntry(file, expose=False)}, CATALOG).warnings
