"""Mappings: a YAML file says which file holds which type; every mistake in it is named by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import BadRequestError
from tests.pipeline.conftest import Loads

MAPPING = """
files:
  - file: "staff-*.csv"
    type: Person
    columns: {Full Name: name, "Born on": born, Labels: tags}
    ignore: [Notes]
    delimiter: ";"
    encoding: latin-1
    nulls: ["-"]
    dates: "%d.%m.%Y"
    lists: "|"
    constants: {mood: calm}
  - file: staff-1.csv
    type: Knows
    from: Full Name
    columns: {email: to}
    ignore: ["Born on", Labels, Notes, age]
    delimiter: ";"
    encoding: latin-1
"""
ONE = "Full Name;Born on;Labels;Notes;email;age\nZoé;31.12.1999;a|b;x;Ann;3\n"
TWO = "Full Name;Born on;Labels;Notes;age\nAnn;-;-;;-\n"


def test_a_mapping_names_files_types_columns_and_spellings(loads: Loads) -> None:
    """One file may feed several types; patterns start where the mapping is."""
    loads.file("staff-1.csv", ONE.encode("latin-1"))
    loads.file("staff-2.csv", TWO.encode("latin-1"))
    path = loads.file("load.yaml", MAPPING)

    result = loads.load(None, "merge", mapping=path)

    assert result.tables == {"edge:Knows": 1, "node:Person": 2}
    ann, zoe = loads.rows("Person")
    assert (zoe["name"], str(zoe["born"]), zoe["tags"]) == ("Zoé", "1999-12-31", ["a", "b"])
    assert (ann["born"], ann["tags"], ann["age"], ann["mood"]) == (None, None, None, "calm")
    assert [(row["src"], row["dst"]) for row in loads.rows("Knows")] == [("Zoé", "Ann")]
    assert loads.load(loads.directory, "merge", mapping=path).tables == result.tables


def test_every_mistake_of_a_mapping_is_named_by_line(alone: Loads) -> None:
    path = alone.file(
        "load.yaml",
        "files:\n"
        "  - file: a.csv\n"
        "    type: Persn\n"
        "  - file: b.csv\n"
        "    type: Person\n"
        "    colums: {}\n"
        "    columns: {a: nme, b: name, c: name}\n"
        "    constants: {age: old}\n"
        "    delimiter: ab\n"
        "    encoding: klingon\n",
    )

    with pytest.raises(BadRequestError) as caught:
        alone.load(None, "merge", mapping=path)

    said = [line.removeprefix(str(path)) for line in str(caught.value).splitlines()]
    assert [line.split(":")[1] for line in said[:-1]] == ["3", "6", "7", "7", "8", "9", "10"]
    assert "did you mean" in said[0]
    assert "did you mean" in said[1]
    assert said[-1] == "nothing was written"


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "the key 'files' is missing|is empty"), ("files: [", "this is not YAML")],
)
def test_what_is_no_mapping_is_refused(alone: Loads, text: str, said: str) -> None:
    path = alone.file("load.yaml", text)

    with pytest.raises(BadRequestError, match=said):
        alone.load(None, "merge", mapping=path)
    with pytest.raises(BadRequestError, match="cannot read the mapping"):
        alone.load(None, "merge", mapping=Path("absent.yaml"))
    with pytest.raises(BadRequestError, match="nothing to load"):
        alone.load(None, "merge")
