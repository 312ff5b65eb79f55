"""Positions count lines and UTF-16 units as editors do; schemas are found as the guide says."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.lsp.positions import Lines
from omnigraph.lsp.schemas import find_schema

TEXT = "a🐙b\r\nc\nd\re\u2028f"
"""An emoji takes two units; U+2028 ends no line."""


@pytest.mark.parametrize(
    ("character", "position"),
    [("a", (0, 0)), ("🐙", (0, 1)), ("b", (0, 3)), ("c", (1, 0)), ("d", (2, 0)), ("f", (3, 2))],
)
def test_a_character_has_its_position_and_back(character: str, position: tuple[int, int]) -> None:
    lines = Lines(TEXT)
    offset = TEXT.index(character)

    assert lines.position(offset) == position
    assert lines.offset(*position) == offset


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_units_are_those_of_the_encoding(encoding: str, units: int) -> None:
    lines = Lines(TEXT, encoding)

    assert lines.position(TEXT.index("b")) == (0, units)
    assert lines.offset(0, units) == TEXT.index("b")


@pytest.mark.parametrize(
    ("line", "unit", "offset"), [(0, 99, 3), (99, 0, len(TEXT)), (3, 99, len(TEXT))]
)
def test_a_position_outside_is_the_nearest_inside(line: int, unit: int, offset: int) -> None:
    assert Lines(TEXT).offset(line, unit) == offset


def found_for(file: Path, setting: Path | None = None) -> tuple[str | None, str | None]:
    schema = find_schema(file, setting, lambda path: path.read_text("utf-8"))
    return None if schema.path is None else schema.path.name, schema.problem


def test_the_nearest_schema_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "app" / "queries" / "people.gq"
    file.parent.mkdir(parents=True)
    (tmp_path / "schema.pg").write_text("node A { slug: String @key }")
    assert found_for(file) == ("schema.pg", None)

    (tmp_path / "app" / "only.pg").write_text("node A { slug: String @key }")
    assert found_for(file) == ("only.pg", None)

    (tmp_path / "app" / "second.pg").write_text("node A { slug: String @key }")
    name, problem = found_for(file)
    assert name is None
    assert "only.pg, second.pg" in (problem or "")

    (tmp_path / "app" / "omnigraph.yaml").write_text("query: { schema: second.pg }")
    assert found_for(file) == ("second.pg", None)
    assert found_for(file, tmp_path / "schema.pg") == ("schema.pg", None)


def test_a_schema_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "people.gq"
    (tmp_path / "schema.pg").write_text("node A {\n slug: Strng }")
    assert "schema.pg, line 2 is wrong" in (found_for(file)[1] or "")

    (tmp_path / "schema.pg").write_bytes(b"\xff")
    assert "cannot be read" in (found_for(file)[1] or "")
    assert "cannot be read" in (found_for(file, tmp_path / "none.pg")[1] or "")

    (tmp_path / "omnigraph.yaml").write_text("query: [")
    assert "omnigraph.yaml" in (found_for(file)[1] or "")
