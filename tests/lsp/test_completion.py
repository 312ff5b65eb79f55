"""Completion offers what may stand at the cursor: what it is, of which type, and nothing else."""

from __future__ import annotations

import pytest

from omnigraph.lsp.complete_query import complete_query
from omnigraph.lsp.complete_schema import complete_schema
from tests.docs_blocks import named_schema
from tests.lsp.cursor import at_cursor

BOOK = {
    "added", "cover", "embedding", "isbn", "price", "status", "summary", "title", "topics", "year",
}  # fmt: skip
MATCH = "query q() { match { $b: Book  "


def offered(marked: str, kind: str | None = None) -> set[str]:
    text, offset = at_cursor(marked)
    found = complete_query(text, offset, named_schema("library"))
    return {item.label for item in found.items if kind in (None, item.kind)}


def offered_in_schema(marked: str) -> set[str]:
    text, offset = at_cursor(marked)
    return {item.label for item in complete_schema(text, offset).items}


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("|", {"query"}),
        ("query q() { |", {"match", "top", "insert", "upsert", "update", "delete", "for"}),
        ("query q() { match { $b: |", {"Author", "Book", "Reader"}),
        (f"{MATCH}$b.|", BOOK),
        (f"{MATCH}$b.ti|", BOOK),
        ("query q() { match { $b: Book { |", BOOK),
        ("query q() { insert Book { |", BOOK),
        ("query q() { insert Book { isbn: 1, |", BOOK),
        ("query q() { update Book set { |", BOOK),
        (f"{MATCH}}} return {{ $b {{ |", BOOK),
        ("query q() { match { $r $l:borrowed $b  $l.|", {"since", "id"}),
        ("query q($f: { from: I32, to: Date? }) { match { $b: Book  $f.|", {"from", "to"}),
        ("query q($rows: [{ isbn: String }]) { for $r in $rows { delete Book where isbn = $r.|",
         {"isbn"}),
        ("query q() |", {"@description", "@instruction"}),
        ("query q() @|", {"@description", "@instruction"}),
        (f'{MATCH}$b.title = "$b.|', set()),
        (f"{MATCH}// $b.|", set()),
        (f"{MATCH}/* $b.|", set()),
    ],
)  # fmt: skip
def test_exactly_what_may_stand_there_is_offered(marked: str, expected: set[str]) -> None:
    assert offered(marked) == expected


def test_a_traversal_offers_the_edges_of_its_node_those_that_leave_it_first() -> None:
    text, offset = at_cursor(f"{MATCH}$b |")
    items = complete_query(text, offset, named_schema("library")).items
    edges = [item for item in items if item.kind == "edge"]

    assert [item.label for item in edges] == ["cites", "borrowed", "wrote"]
    assert edges[-1].detail == "edge Wrote: Author -> Book"
    assert {"in", "contains", "is null", "is not null", "shortest", "all shortest"} <= offered(
        f"{MATCH}$b |"
    )


@pytest.mark.parametrize(
    "marked",
    [
        "query q() { match { $r: Reader  $r $l:|",
        "query q() { match { $r: Reader  $r <|",
        "query q() { match { $r: Reader  $r shortest |",
    ],
)
def test_an_edge_is_offered_in_every_form_of_a_traversal(marked: str) -> None:
    assert offered(marked, "edge") == {"borrowed", "follows"}


def test_the_type_of_a_variable_follows_from_traversals() -> None:
    assert offered("query q() { match { $a wrote $b  $a.|") == {"slug", "name", "born"}
    assert offered("query q() { match { $b: Book  $b wrote $a  $a.|") == {"slug", "name", "born"}
    assert offered("query q() { match { $r: Reader  $r $l:borrowed $b } return { $b.|") == BOOK


def test_a_condition_of_a_mutation_offers_properties_and_functions() -> None:
    assert offered("query q() { update Book set { year: 1 } where |", "property") == BOOK
    assert "lower" in offered("query q() { delete Book where |", "function")
    assert offered("query q() { delete Wrote where |", "property") == {"position", "from", "to"}


def test_hop_conditions_offer_the_properties_of_the_edge() -> None:
    marked = "query q() { match { $r: Reader  $r borrowed{1,1 where |"

    assert offered(marked, "property") == {"since", "from", "to"}


def test_an_order_offers_aliases() -> None:
    assert offered(f"{MATCH}}} return {{ $b.title as t }} order {{ |", "property") == {"t"}


def test_variables_and_parameters_are_offered_with_their_types() -> None:
    text, offset = at_cursor("query q($n: String?) { match { $b: Book { title: $| } } }")
    items = complete_query(text, offset, named_schema("library")).items
    found = {item.label: item.detail for item in items if item.kind == "variable"}

    assert found == {"$n": "parameter $n: String?", "$b": "node $b: Book"}


def test_a_wrong_text_before_the_cursor_still_has_properties_and_every_word() -> None:
    wrong = "query q() { match { $b: Book ??? "

    assert offered(f"{wrong}$b.|") == BOOK
    assert {"optional", "lower", "count", "$b"} <= offered(f"{wrong}|")


def test_another_query_that_is_wrong_changes_nothing() -> None:
    assert offered(f"query broken( {{ {{\n{MATCH}$b.|") == BOOK


def test_without_a_schema_words_and_variables_are_offered() -> None:
    text, offset = at_cursor(f"{MATCH}|")
    labels = {item.label for item in complete_query(text, offset, None).items}

    assert {"optional", "$b", "lower"} <= labels


def test_what_is_typed_so_far_is_replaced() -> None:
    text, offset = at_cursor(f"{MATCH}$b.ti|")

    assert complete_query(text, offset, named_schema("library")).start == offset - 2


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("|", {"node", "edge", "interface"}),
        ("interface I {} node A {} node B implements |", {"I"}),
        ("interface I {} node A {} edge E: |", {"A"}),
        ("node A { slug: String  @key(|", {"slug"}),
        ("node |", set()),
    ],
)
def test_a_schema_is_completed(marked: str, expected: set[str]) -> None:
    assert expected <= offered_in_schema(marked)
    assert len(offered_in_schema(marked)) <= len(expected) + 2


def test_a_property_of_a_schema_has_types_and_annotations() -> None:
    assert {"String", "Vector", "enum"} <= offered_in_schema("node A { slug: |")
    assert {"@key", '@embed("source")', "@range(p, low..high)"} <= offered_in_schema(
        "node A { slug: String |"
    )
