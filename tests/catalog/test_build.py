"""What a valid schema becomes: expanded, with its constraints, in canonical order."""

from __future__ import annotations

import pytest

from omnigraph.catalog import Cardinality, Check, Embed, NodeType, OpaqueAnnotation, Range
from omnigraph.catalog.build import DECLARATIONS_MAX
from omnigraph.errors import ResourceLimitError
from tests.catalog.reading import catalog


def node(text: str) -> NodeType:
    return catalog(text).nodes["A"]


def test_properties_and_types_are_in_name_order() -> None:
    built = catalog("node B { z: I32  a: I32 }\nnode A { }\nedge Z: A -> B\nedge C: A -> B")

    assert list(built.nodes) == ["A", "B"]
    assert list(built.edges) == ["C", "Z"]
    assert list(built.nodes["B"].properties) == ["a", "z"]


def test_annotations_and_body_constraints_say_the_same() -> None:
    annotated = node("node A { k: String @key  u: I32 @unique  i: I32 @index }")
    in_body = node("node A { k: String  u: I32  i: I32  @key(k)  @unique(u)  @index(i) }")

    assert annotated == in_body
    assert (in_body.key, in_body.uniques, in_body.indexes) == (("k",), (("u",),), (("i",),))


def test_a_constraint_written_twice_is_kept_once_and_member_order_does_not_matter() -> None:
    built = node(
        "node A { a: I32 @index  b: I32  @index(a)  @unique(b, a)  @unique(a, b)"
        "  @range(a, 0..1)  @range(a, 0.0..1.0) }"
    )

    assert built.indexes == (("a",),)
    assert built.uniques == (("a", "b"),)
    assert built.ranges == (Range("a", 0, 1),)


def test_ranges_and_checks_are_kept_as_written() -> None:
    built = node('node A { x: F64  s: String  @range(x, ..10)  @range(x, -1.5..)  @check(s, "a") }')

    assert set(built.ranges) == {Range("x", None, 10), Range("x", -1.5, None)}
    assert built.checks == (Check("s", "a"),)


def test_metadata_is_kept() -> None:
    built = node(
        'node A @description("d") @instruction("i") @owner("team") {\n'
        '  t: String @description("text") @note(word, b=2, a=true)\n'
        '  v: Vector(2) @embed(t, model="m") }'
    )

    assert (built.description, built.instruction) == ("d", "i")
    assert built.annotations == (OpaqueAnnotation("owner", "team"),)
    assert built.properties["t"].description == "text"
    note = OpaqueAnnotation("note", "word", (("a", True), ("b", 2)))
    assert built.properties["t"].annotations == (note,)
    assert built.properties["v"].embed == Embed("t", "m")


def test_an_interface_injects_its_properties_with_what_they_carry() -> None:
    built = catalog(
        'interface Named { slug: String @key  name: String @index @description("shown") }\n'
        'interface Aged { age: I32? @unique  name: String @index @description("shown") }\n'
        "node A implements Named, Aged { extra: Bool? }"
    )

    a = built.nodes["A"]
    assert list(a.properties) == ["age", "extra", "name", "slug"]
    assert (a.key, a.uniques, a.indexes) == (("slug",), (("age",),), (("name",),))
    assert a.interfaces == ("Aged", "Named")
    assert a.properties["name"].injected_by == ("Aged", "Named")
    assert a.properties["name"].description == "shown"
    assert a.properties["extra"].injected_by == ()
    assert built.interfaces["Named"].key == ("slug",)
    assert built.interfaces["Aged"].uniques == (("age",),)


def test_a_property_of_the_nodes_own_keeps_its_own_annotations() -> None:
    a = node("interface I { s: String @key @unique }\nnode A implements I { s: String @index }")

    assert (a.key, a.uniques, a.indexes) == (None, (), (("s",),))
    assert a.properties["s"].injected_by == ()


def test_a_body_constraint_may_name_an_injected_property() -> None:
    a = node("interface I { s: String }\nnode A implements I { @key(s) }")

    assert a.key == ("s",)


def test_cardinality_defaults_to_any_number_and_a_star_is_no_bound() -> None:
    edges = catalog(
        "node A { }\nedge D: A -> A\nedge O: A -> A @card(0..1)\nedge M: A -> A @card(1..*)"
    ).edges

    assert edges["D"].cardinality.is_default
    assert edges["O"].cardinality == Cardinality(0, 1)
    assert edges["M"].cardinality == Cardinality(1, None)


def test_an_edge_is_found_in_its_own_spelling_and_in_any_case() -> None:
    built = catalog("node A { }\nedge AppearedIn: A -> A")

    assert built.edge("AppearedIn") is built.edge("appearedin") is built.edge("appearedIn")
    assert built.edge("Appeared") is None


def test_a_schema_of_too_many_declarations_is_refused_before_anything_is_locked() -> None:
    text = "\n".join(f"node T{n} {{ k: I32 }}" for n in range(DECLARATIONS_MAX + 1))

    with pytest.raises(ResourceLimitError, match="number of declarations in a schema is 5001"):
        catalog(text)
