"""`@index(language: …)`: what it means to a schema, and what a change of it is."""

from __future__ import annotations

import pytest

from omnigraph.catalog import catalog_from_json, catalog_to_json
from omnigraph.errors import ParseError
from tests.catalog.reading import catalog, plan

PLAIN = "node A { s: String @key  b: String? @index }"
GERMAN = 'node A { s: String @key  b: String? @index(language: "de") }'
FRENCH = GERMAN.replace('"de"', '"fr"')


def test_a_language_is_part_of_the_schema_and_english_is_the_default() -> None:
    german = catalog(GERMAN)

    assert german.text_language("node:A", "b") == "de"
    assert german.text_language("node:A", "s") == "en"
    assert catalog_from_json(catalog_to_json(german)) == german
    assert german.shape_hash != catalog(PLAIN).shape_hash
    assert catalog(GERMAN.replace('"de"', '"en"')).shape_hash == catalog(PLAIN).shape_hash


@pytest.mark.parametrize(
    ("before", "after", "constraint"),
    [
        (PLAIN, GERMAN, '@index(b, language: "de")'),
        (GERMAN, FRENCH, '@index(b, language: "fr")'),
        (GERMAN, PLAIN, "@index(b)"),
        (PLAIN.replace(" @index", ""), GERMAN, '@index(b, language: "de")'),
    ],
)
def test_another_language_is_another_index_and_touches_no_data(
    before: str, after: str, constraint: str
) -> None:
    found = plan(catalog(before), after)

    assert found.supported
    assert [step.to_json() for step in found.steps] == [
        {
            "kind": "add_constraint",
            "type_kind": "node",
            "type_name": "A",
            "constraint": constraint,
        }
    ]


def test_an_index_in_a_language_is_removed_like_any_other() -> None:
    found = plan(catalog(GERMAN), PLAIN.replace(" @index", ""))

    assert found.supported
    assert str(found.steps[0]).startswith('drop @index(b, language: "de") of node ')


def test_a_renamed_property_keeps_its_language() -> None:
    renamed = GERMAN.replace("b: String?", 'c: String? @rename_from("b")')

    found = plan(catalog(GERMAN), renamed)

    assert [step.to_json()["kind"] for step in found.steps] == ["rename_property"]


def test_an_interface_gives_its_language_to_its_nodes() -> None:
    german = 'interface I { b: String? @index(language: "de") }\n'
    french = 'interface J { b: String? @index(language: "fr") }\n'
    node = "node A implements I { s: String @key }"

    assert catalog(german + node).text_language("node:A", "b") == "de"
    own = node.replace("s: String", 'b: String? @index(language: "fr")  s: String')
    assert catalog(german + own).text_language("node:A", "b") == "fr"
    with pytest.raises(ParseError, match="incompatible property semantics"):
        catalog(german + french + node.replace(" I ", " I, J "))
