"""Identities: given in a fixed order, kept over renames, never given twice."""

from __future__ import annotations

import pytest

from omnigraph.catalog import Catalog
from omnigraph.errors import IdentityError
from tests.catalog.reading import catalog

SCHEMA = """
interface Named { name: String? }
node Author implements Named { slug: String @key  age: I32? }
node Paper { doi: String @key }
edge Wrote: Author -> Paper { pos: I32? }
"""


def every_id(built: Catalog) -> list[int]:
    types = (*built.interfaces.values(), *built.entities())
    ids = [each.type_id for each in types]
    ids += [each.incarnation_id for each in built.entities()]
    return ids + [p.property_id for each in types for p in each.properties.values()]


def test_a_fresh_schema_numbers_types_then_properties_then_incarnations() -> None:
    built = catalog(SCHEMA)

    named, author, paper = built.interfaces["Named"], built.nodes["Author"], built.nodes["Paper"]
    wrote = built.edges["Wrote"]
    assert [named.type_id, author.type_id, paper.type_id, wrote.type_id] == [1, 2, 3, 4]
    assert named.properties["name"].property_id == 5
    assert [p.property_id for p in author.properties.values()] == [6, 7, 8]
    assert list(author.properties) == ["age", "name", "slug"]
    assert paper.properties["doi"].property_id == 9
    assert wrote.properties["pos"].property_id == 10
    assert [author.incarnation_id, paper.incarnation_id, wrote.incarnation_id] == [11, 12, 13]
    assert built.next_id == 14


def test_an_unchanged_schema_keeps_every_identity() -> None:
    accepted = catalog(SCHEMA)

    assert catalog(SCHEMA, accepted) == accepted


def test_a_rename_keeps_type_table_and_property_identities() -> None:
    accepted = catalog(SCHEMA)

    renamed = catalog(
        SCHEMA.replace("node Author", 'node Writer @rename_from("Author")')
        .replace("Author ->", "Writer ->")
        .replace("age: I32?", 'years: I32? @rename_from("age")')
        .replace("edge Wrote", "edge Penned")
        .replace("-> Paper", '-> Paper @rename_from("Wrote")'),
        accepted,
    )

    before, after = accepted.nodes["Author"], renamed.nodes["Writer"]
    assert (after.type_id, after.incarnation_id) == (before.type_id, before.incarnation_id)
    assert after.properties["years"].property_id == before.properties["age"].property_id
    assert renamed.edges["Penned"].type_id == accepted.edges["Wrote"].type_id
    assert renamed.edges["Penned"].source == "Writer"
    assert sorted(every_id(renamed)) == sorted(every_id(accepted))
    assert renamed.next_id == accepted.next_id


def test_renaming_a_member_keeps_the_order_of_a_composite_key() -> None:
    """The spelling of a node's id follows that order, so a rename must not change it."""
    accepted = catalog("node A { a: String  b: String  @key(a, b) }")

    renamed = catalog('node A { z: String @rename_from("a")  b: String  @key(b, z) }', accepted)

    assert accepted.nodes["A"].key == ("a", "b")
    assert renamed.nodes["A"].key == ("z", "b")


def test_a_name_dropped_and_added_again_is_something_new() -> None:
    accepted = catalog(SCHEMA)
    without = "node Author { slug: String @key }"

    dropped = catalog(without, accepted)
    again = catalog(SCHEMA, dropped)

    assert again.nodes["Paper"].type_id != accepted.nodes["Paper"].type_id
    assert again.nodes["Paper"].incarnation_id != accepted.nodes["Paper"].incarnation_id
    assert again.nodes["Author"].type_id == accepted.nodes["Author"].type_id
    new_age = again.nodes["Author"].properties["age"].property_id
    assert new_age not in every_id(accepted)


def test_no_identity_is_ever_given_twice() -> None:
    built = catalog(SCHEMA)
    given: set[int] = set(every_id(built))
    for text in ("node A { }", SCHEMA, "", "node B { x: I32  y: I32 }", SCHEMA):
        next_id = built.next_id
        kept = set(every_id(built))

        built = catalog(text, built)

        ids = every_id(built)
        assert len(set(ids)) == len(ids)
        assert all(each in kept or each >= next_id for each in ids)
        assert built.next_id >= next_id
        assert not (set(ids) - kept) & given
        given |= set(ids)


def test_hints_mean_nothing_when_a_graph_is_new() -> None:
    text = 'node A @rename_from("Z") { s: String @rename_from("t") }'

    assert catalog(text) == catalog("node A { s: String }")


def test_a_hint_that_is_done_is_inert_even_when_it_names_nothing_any_more() -> None:
    accepted = catalog("node A { s: String }\nedge E: A -> A")

    after = catalog(
        'node A @rename_from("E") { s: String @rename_from("gone") }\n'
        'edge E: A -> A @rename_from("Gone")',
        accepted,
    )

    assert after == accepted


def test_an_injected_hint_renames_in_the_interface_and_in_its_nodes() -> None:
    accepted = catalog("interface I { s: String }\nnode A implements I { }")

    after = catalog(
        "interface I { t: String @rename_from(s) }\nnode A implements I { }\n"
        "node Later implements I { }",
        accepted,
    )

    old, new = accepted.nodes["A"].properties, after.nodes["A"].properties
    assert new["t"].property_id == old["s"].property_id
    interface = after.interfaces["I"].properties["t"]
    assert interface.property_id == accepted.interfaces["I"].properties["s"].property_id
    assert after.nodes["Later"].properties["t"].property_id >= accepted.next_id


def test_an_injected_hint_does_not_take_a_name_that_its_node_keeps() -> None:
    accepted = catalog("interface I { s: I32? }\nnode A implements I { s: I32? }")

    after = catalog(
        "interface I { t: I32? @rename_from(s) }\nnode A implements I { s: I32? }", accepted
    )

    old, new = accepted.nodes["A"].properties, after.nodes["A"].properties
    assert new["s"].property_id == old["s"].property_id
    assert new["t"].property_id >= accepted.next_id


@pytest.mark.parametrize(
    ("desired", "fragment", "points_at"),
    [
        ('node Text @rename_from("Ghost") { }', "Ghost", '@rename_from("Ghost")'),
        ('node Text @rename_from("Wrote") { }', "keeps the kind", '@rename_from("Wrote")'),
        ('node Text @rename_from("Named") { }', "keeps the kind", '@rename_from("Named")'),
        (
            'node Author { }\nnode Writer @rename_from("Author") { }',
            "both continue node Author",
            "@rename_from",
        ),
        (
            'node B @rename_from("Author") { }\nnode C @rename_from("Author") { }',
            "`B` and `C` both continue node Author",
            '@rename_from("Author") { }',
        ),
        (
            'node Author { slug: String @key  title: String? @rename_from("doi") }',
            "a property stays in its type",
            '@rename_from("doi")',
        ),
        (
            'node Author { title: String? @rename_from("Paper.doi") }',
            "a property stays in its type",
            '@rename_from("Paper.doi")',
        ),
        (
            'node Author { slug: String @key  years: I32? @rename_from("ags") }',
            "no property of that name",
            '@rename_from("ags")',
        ),
        (
            'node Author { age: I32?  years: I32? @rename_from("age") }',
            "`age` and `years` both continue property age of node Author",
            '@rename_from("age")',
        ),
        (
            'node Author { a: I32? @rename_from("age")  b: I32? @rename_from("age") }',
            "`a` and `b` both continue",
            '@rename_from("age")',
        ),
        ('node New { a: I32? @rename_from("age") }', "the type is new", '@rename_from("age")'),
    ],
)
def test_a_hint_that_cannot_be_followed_fails_the_whole_plan(
    desired: str, fragment: str, points_at: str
) -> None:
    accepted = catalog(SCHEMA)

    with pytest.raises(IdentityError) as caught:
        catalog(desired, accepted)

    assert str(caught.value).startswith("schema identity resolution failed: ")
    assert fragment in caught.value.message
    assert caught.value.span is not None
    assert desired[caught.value.span.start :].startswith(points_at)


def test_a_misspelt_hint_suggests_the_near_name() -> None:
    with pytest.raises(IdentityError) as caught:
        catalog('node Text @rename_from("Papers") { }', catalog(SCHEMA))

    assert caught.value.hint == "did you mean `Paper`?"
