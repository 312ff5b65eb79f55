"""What was decoded of one version is not taken for a column that has its name by now."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og


def test_a_name_that_another_property_took_is_read_anew_in_an_empty_type(tmp_path: Path) -> None:
    """An empty table has no files that could tell whether a column is the same one."""
    schema = "node P {{ name: String @key  {}  {} }}\n"
    first = schema.format("age: I32?", "tags: [String]?")
    graph = og.init(tmp_path / "graph", schema=first, durability="process", self_care=False)
    query = "query q() { match { $x: P } return { $x.tags } }"
    assert graph.query(query).rows() == []

    graph.apply_schema(schema.format("age: I32?", 'size: [String]? @rename_from("tags")'))
    graph.apply_schema(schema.format('tags: I32? @rename_from("age")', "size: [String]?"))

    assert graph.query(query).rows() == []
    graph.mutate('query q() { insert P { name: "x", tags: 1 } }')
    assert graph.query(query).rows() == [{"x.tags": 1}]
