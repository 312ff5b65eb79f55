"""What the schema grammar accepts, and what it makes of it."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax import parse_schema
from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintDecl,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    RangeBound,
    TypeRef,
)
from omnigraph.types import PropertyType, Scalar

STRING = PropertyType(Scalar.STRING)


def node(body: str) -> NodeDecl:
    """The node that `body` makes."""
    (declared,) = parse_schema(f"node A {{ {body} }}").declarations
    assert isinstance(declared, NodeDecl)
    return declared


def edge(rest: str) -> EdgeDecl:
    """The edge that `rest` makes."""
    (declared,) = parse_schema(f"edge E: A -> B {rest}").declarations
    assert isinstance(declared, EdgeDecl)
    return declared


def type_of(text: str) -> PropertyType:
    return node(f"p: {text}").properties[0].type


def refusal(text: str) -> str:
    with pytest.raises(ParseError) as refused:
        parse_schema(text)
    return str(refused.value)


def test_an_empty_file_is_a_schema() -> None:
    assert parse_schema("").declarations == ()
    assert parse_schema(" \t\r\n// nothing\n/* at all */").declarations == ()


def test_a_whole_schema_is_read_in_order() -> None:
    tree = parse_schema(
        """
        interface Named { name: String @index }
        node Author @description("who writes") implements Named, Dated {
            slug: String @key
            tags: [String]?
            @unique(name, slug)
        }
        edge Wrote: Author -> Paper @card(0..1) @description("by") {
            at: DateTime?
        }
        """
    )

    assert tree.declarations == (
        InterfaceDecl("Named", (PropertyDecl("name", STRING, (Annotation("index"),)),)),
        NodeDecl(
            "Author",
            (Annotation("description", "who writes"),),
            (TypeRef("Named"), TypeRef("Dated")),
            (
                PropertyDecl("slug", STRING, (Annotation("key"),)),
                PropertyDecl("tags", PropertyType(Scalar.STRING, is_list=True, nullable=True)),
            ),
            (ConstraintDecl("unique", (Identifier("name"), Identifier("slug"))),),
        ),
        EdgeDecl(
            "Wrote",
            TypeRef("Author"),
            TypeRef("Paper"),
            CardinalityDecl(0, 1),
            (Annotation("description", "by"),),
            (PropertyDecl("at", PropertyType(Scalar.DATETIME, nullable=True)),),
        ),
    )


@pytest.mark.parametrize(
    "name",
    [
        "type", "when", "date", "from", "to", "order", "match", "blob", "enum", "node", "edge",
        "interface", "implements", "true", "key",
    ],
)  # fmt: skip
def test_no_word_is_reserved(name: str) -> None:
    """A keyword names a property, first in its body or behind an annotated one."""
    declared = node(f'{name}: String @index {name}: String @a("x") {name}: I32? {name}: Bool')

    assert [p.name for p in declared.properties] == [name] * 4


def test_names_keep_their_case() -> None:
    assert [p.name for p in node("camelCase: String _x: Bool").properties] == ["camelCase", "_x"]


def test_type_names_may_be_names_of_scalar_types() -> None:
    tree = parse_schema("node String { } node Vector { } edge Date: String -> Vector")

    assert [declared.name for declared in tree.declarations] == ["String", "Vector", "Date"]


@pytest.mark.parametrize("scalar", [s for s in Scalar if s is not Scalar.VECTOR])
def test_every_scalar_type_is_read(scalar: Scalar) -> None:
    assert type_of(scalar.value) == PropertyType(scalar)
    assert type_of(f"{scalar.value} ?") == PropertyType(scalar, nullable=True)


def test_vectors_are_read() -> None:
    assert type_of("Vector(3072)") == PropertyType(Scalar.VECTOR, dimension=3072)
    assert type_of("Vector( 2147483647 )?").dimension == 2**31 - 1
    assert type_of("Vector(0008)").dimension == 8


def test_enum_variants_are_a_sorted_set_of_any_words() -> None:
    """Variants may hold hyphens, start with a digit, or be keywords."""
    variants = ("3d", "String", "date", "enum", "next", "other", "phase-1", "self", "t2d", "true")

    declared = type_of(f"enum({', '.join(reversed(variants))})?")

    assert declared.variants == variants
    assert declared.nullable


@pytest.mark.parametrize("type_text", ["[enum(a)]", "[Vector(3)]", "[[String]]", "[]"])
def test_lists_contain_scalars_only(type_text: str) -> None:
    assert "expected a scalar type" in refusal(f"node A {{ p: {type_text} }}")


def test_a_list_of_blobs_is_refused() -> None:
    assert "list of Blob is not supported" in refusal("node A { p: [Blob]? }")


def test_a_duplicate_enum_variant_is_refused() -> None:
    assert "duplicate enum variant `x`" in refusal("node A { p: enum(x, y, x) }")


@pytest.mark.parametrize("name", ["key", "unique", "index", "range", "check"])
def test_a_constraint_name_before_a_parenthesis_is_a_body_constraint(name: str) -> None:
    """Even on the line of a property, and even behind white space or a comment."""
    for gap in ("", " ", " /* why */ ", " // why\n"):
        declared = node(f'email: String @ {name}{gap}("x")')

        assert declared.properties == (PropertyDecl("email", STRING),)
        assert [c.name for c in declared.constraints] == [name]
        assert declared.constraints[0].arguments == ("x",)


@pytest.mark.parametrize("name", ["key", "unique", "index", "range", "check"])
def test_a_constraint_name_without_a_parenthesis_is_an_annotation(name: str) -> None:
    assert node(f"p: String @{name}").properties[0].annotations == (Annotation(name),)


def test_annotations_take_one_value_and_then_named_ones() -> None:
    declared = node('v: Vector(2) @embed(text, model="m", n=3, f=0.5, b=true) @x(false) @y(7)')

    assert declared.properties[0].annotations == (
        Annotation(
            "embed", Identifier("text"), (("model", "m"), ("n", 3), ("f", 0.5), ("b", True))
        ),
        Annotation("x", False),
        Annotation("y", 7),
    )
    assert "expected `,` or `)`" in refusal('node A { v: Vector(2) @embed(model="m") }')
    assert "expected an argument" in refusal("node A { v: Bool @embed() }")


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("0..200", 0, 200),
        ("-1.5..1.5", -1.5, 1.5),
        ("1..", 1, None),
        ("..10", None, 10),
        ("..-3", None, -3),
        ("1.5 .. 2", 1.5, 2),
        ("-9223372036854775808..9223372036854775807", -(2**63), 2**63 - 1),
    ],
)
def test_range_bounds(text: str, lower: float | None, upper: float | None) -> None:
    """The only number of `..max` is the upper bound."""
    (constraint,) = node(f"@range(p, {text})").constraints

    assert constraint.arguments == (Identifier("p"), RangeBound(lower, upper))
    assert repr(constraint.arguments[1]) == repr(RangeBound(lower, upper))


@pytest.mark.parametrize("text", ["..", "0...5", "- 1..2", "1e5..", "-5", ".5..1"])
def test_other_bounds_are_refused(text: str) -> None:
    refusal(f"node A {{ @range(p, {text}) }}")


@pytest.mark.parametrize(
    ("text", "minimum", "maximum"),
    [("0..1", 0, 1), ("1..", 1, None), ("1..*", 1, None), ("3..1", 3, 1), ("2 .. 4", 2, 4)],
)
def test_cardinality_is_read_as_written(text: str, minimum: int, maximum: int | None) -> None:
    """`*` is an open upper bound. Whether the bounds make sense is not for the parser to say."""
    assert edge(f"@card({text})").cardinality == CardinalityDecl(minimum, maximum)


def test_cardinality_comes_right_after_the_target() -> None:
    assert edge("@card(0..1) @x").cardinality == CardinalityDecl(0, 1)
    assert "but found `..`" in refusal("edge E: A -> B @x @card(0..1)")
    assert node("p: String @card(1)").properties[0].annotations == (Annotation("card", 1),)


def test_an_edge_body_is_optional_and_the_others_are_not() -> None:
    assert edge("") == edge("{ }") == EdgeDecl("E", TypeRef("A"), TypeRef("B"))
    assert edge("{ @unique(src) }").constraints == (ConstraintDecl("unique", (Identifier("src"),)),)
    assert "`{`" in refusal("node A")
    assert "`{`" in refusal("interface A")


def test_node_annotations_come_before_implements() -> None:
    parse_schema("node A @x implements B { }")
    refusal("node A implements B @x { }")


def test_interfaces_take_no_annotations_and_no_constraints() -> None:
    refusal("interface A @x { }")
    refusal("interface A { p: String @key(p) }")
    refusal("interface A implements B { }")
    parse_schema("interface A { p: String @key }")


def test_an_edge_cannot_implement() -> None:
    refusal("edge E: A -> B implements C { }")


@pytest.mark.parametrize(
    "text",
    [
        "# no\nnode A { }",
        "node a { }",
        "edge e: A -> B",
        "interface i { }",
        "node A { P: String }",
        "node A { p: String, q: String }",
        "node A { p: String; }",
        "node A { p: string }",
        "node A { p: Strings }",
        "node A { p: enum() }",
        "node A { p: enum(a,) }",
        "node A { p: enum(é) }",
        "node A { p: String @a(1e5) }",
        "node A { p: String @a(1, b=-1) }",
        "node A { p: String?? }",
        "node A { p: String @a(1 2) }",
        "nodeA { }",
        "node A { } }",
    ],
)
def test_what_the_grammar_does_not_have_is_refused(text: str) -> None:
    refusal(text)


def test_strings_know_five_escapes_and_may_hold_newlines() -> None:
    (annotation,) = node(r'p: String @a("\"\\\n\r\t" )').properties[0].annotations
    (multiline,) = (
        node('p: String @a("two\nlines // no comment /* nor this */")').properties[0].annotations
    )

    assert annotation.value == '"\\\n\r\t'
    assert multiline.value == "two\nlines // no comment /* nor this */"


@pytest.mark.parametrize("escape", [r"\q", r"\u0041", r"\0", r"\'", "\\\n", r"\é"])
def test_any_other_escape_is_refused(escape: str) -> None:
    assert "unsupported escape sequence" in refusal(f'node A {{ p: Bool @a("x{escape}") }}')


def test_comments_may_stand_between_any_two_words() -> None:
    words = ["edge", "E", ":", "A", "->", "B", "@card", "(", "0", "..", "1", ")", "@x", "(", '"y"']
    words += [")", "{", "p", ":", "enum", "(", "a", ",", "b", ")", "?", "@key", "}"]

    plain = parse_schema(" ".join(words))

    assert parse_schema('/* " ( */'.join(words)) == plain
    assert parse_schema("// ' [\n".join(words)) == plain


def test_block_comments_do_not_nest() -> None:
    parse_schema("/* a /* b */ node A { }")
    refusal("/* a /* b */ */ node A { }")
    assert "the comment is not closed" in refusal("node A { } /* a")
