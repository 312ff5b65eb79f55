"""Every rule of one schema file: what is refused, in which words, pointing at what text."""

from __future__ import annotations

import pytest

from omnigraph.errors import CatalogError, ParseError, SourceError
from tests.catalog.reading import catalog

NODE = "node A { s: String @key }\n"

NAMES = [
    ("node A { _rowid: String }", "reserved", "_rowid"),
    ("node A { _rowaddr: String }", "reserved", "_rowaddr"),
    ("interface I { _rowoffset: String }", "reserved", "_rowoffset"),
    (NODE + "edge E: A -> A { _row_created_at_version: I64 }", "reserved", "_row_created"),
    ("node A { _row_last_updated_at_version: I64 }", "reserved", "_row_last"),
    ("node A { id: String }", "reserved", "id"),
    ("interface I { id: String }", "reserved", "id"),
    (NODE + "edge E: A -> A { id: String }", "reserved", "id"),
    (NODE + "edge E: A -> A { src: String }", "reserved", "src"),
    (NODE + "edge E: A -> A { dst: String }", "reserved", "dst"),
]

PROPERTY_ANNOTATIONS = [
    ('node A { s: String @index(language: "xx") }', "expected one of ar, da, de", "@index"),
    ("node A { s: String @index(language: 5) }", "expected one of ar, da, de", "@index"),
    ('node A { s: String @index(languag: "de") }', "only `language`", "@index"),
    ('node A { s: String @index(language: "de", language: "fr") }', "once", "@index"),
    ('node A { s: I32 @index(language: "de") }', "needs a String", "@index"),
    ('node A { s: enum(a, b) @index(language: "de") }', "needs a String", "@index"),
    ('node A { s: [String] @index(language: "de") }', "list property", "@index"),
    ('node A @index(language: "de") { s: String }', "as a whole", "@index"),
    ("node A { s: String? @key }", "cannot be nullable", "@key"),
    ("node A { s: [String] @key }", "list property", "@key"),
    ("node A { s: Vector(2) @key }", "vector property", "@key"),
    ("node A { s: Blob @key }", "blob property", "@key"),
    ("interface I { s: String? @key }", "cannot be nullable", "@key"),
    (NODE + "edge E: A -> A { k: String @key }", "not supported on edge", "@key"),
    ("node A { s: [String] @unique }", "list property", "@unique"),
    ("node A { s: Vector(2) @unique }", "vector property", "@unique"),
    ("node A { s: Blob @unique }", "blob property", "@unique"),
    (NODE + "edge E: A -> A { k: Blob? @unique }", "blob property", "@unique"),
    ("node A { s: [String] @index }", "list property", "@index"),
    ("node A { s: Blob @index }", "blob property", "@index"),
    ("node A { s: String @key @key }", "multiple times", "@key"),
    ("node A { s: String @unique @unique }", "multiple times", "@unique"),
    ("node A { s: String @index @index }", "multiple times", "@index"),
    ('node A { s: String @instruction("x") }', "@instruction", '@instruction("x")'),
    ('node A { s: String @description("a") @description("b") }', "multiple times", "@desc"),
    ('node A { s: String @description("  ") }', "non-blank", "@description"),
    ("node A { s: String @description }", "non-blank", "@description"),
    ("node A { s: String @description(3) }", "non-blank", "@description"),
    ('node A { s: String @description("a", b="c") }', "exactly one", "@description"),
    ('node A { s: String @rename_from("") }', "non-empty", "@rename_from"),
    ("node A { s: String @rename_from }", "non-empty", "@rename_from"),
    ("node A { s: String @rename_from(3) }", "non-empty", "@rename_from"),
    ('node A { s: String @rename_from("a", b="c") }', "exactly one", "@rename_from"),
    ('node A { s: String @rename_from("a") @rename_from("b") }', "multiple times", "@rename_from"),
]

EMBEDS = [
    ('node A { s: String  t: String @embed("s") }', "vector", "@embed"),
    ("node A { v: Vector(2) @embed }", "must name", "@embed"),
    ('node A { v: Vector(2) @embed("") }', "must name", "@embed"),
    ("node A { v: Vector(2) @embed(3) }", "must name", "@embed"),
    ('node A { v: Vector(2) @embed("s") }', "unknown property", "@embed"),
    ('node A { s: I32  v: Vector(2) @embed("s") }', "String property", "@embed"),
    ('node A { s: [String]  v: Vector(2) @embed("s") }', "String property", "@embed"),
    (
        'node A { s: String  v: Vector(2) @embed("s", dims="2") }',
        "only 'model' is supported",
        "@em",
    ),
    (
        'node A { s: String  v: Vector(2) @embed("s", model="m", model="n") }',
        "only 'model' is supported",
        "@embed",
    ),
    ('node A { s: String  v: Vector(2) @embed("s", model=" ") }', "non-blank", "@embed"),
    ('node A { s: String  v: Vector(2) @embed("s", model=3) }', "non-blank", "@embed"),
    ("node A { s: String  v: Vector(2) @embed(s) @embed(s) }", "multiple times", "@embed"),
    (NODE + 'edge E: A -> A { v: Vector(2)? @embed("s") }', "not supported on edge", "@embed"),
    (
        'interface I { v: Vector(2) @embed("text") }\nnode A implements I { s: String }',
        "unknown property",
        "@embed",
    ),
]

TYPE_ANNOTATIONS = [
    ("node A @key { s: String }", "@key is not supported", "@key"),
    ("node A @unique { s: String }", "@unique is not supported", "@unique"),
    (NODE + "edge E: A -> A @index", "@index is not supported", "@index"),
    ('node A @embed("s") { s: String }', "@embed is not supported", "@embed"),
    (
        'node A @description("a") @description("b") { s: String }',
        "multiple times",
        '@description("b',
    ),
    (
        'node A @instruction("a") @instruction("b") { s: String }',
        "multiple times",
        '@instruction("b',
    ),
    ('node A @rename_from("B") @rename_from("C") { }', "multiple times", '@rename_from("C'),
    ('node A @instruction("") { s: String }', "non-blank", "@instruction"),
    (NODE + 'edge E: A -> A @description("")', "non-blank", "@description"),
    ("node A @rename_from { s: String }", "non-empty", "@rename_from"),
]

CONSTRAINTS = [
    ("node A { s: String @key  t: String @key }", "multiple @key", "@key }"),
    ("node A { s: String @key  @key(s) }", "multiple @key", "@key(s)"),
    ("node A { s: String  @key(s)  @key(s) }", "multiple @key", "@key(s) }"),
    ("interface I { s: String @key  t: String @key }", "multiple @key", "@key }"),
    (
        "interface I { s: String @key }\nnode A implements I { t: String @key }",
        "multiple @key",
        "@key",
    ),
    ("node A { s: String? t: String  @key(s, t) }", "cannot be nullable", "s, t"),
    ("node A { s: [String]  @key(s) }", "list property", "s) }"),
    ("node A { s: Vector(2)  @key(s) }", "vector property", "s) }"),
    ("node A { s: Blob  @key(s) }", "blob property", "s) }"),
    ("node A { s: [String]  @unique(s) }", "list property", "s) }"),
    ("node A { s: Vector(2)  @unique(s) }", "vector property", "s) }"),
    ("node A { s: Blob?  @unique(s) }", "blob property", "s) }"),
    ("node A { s: Blob?  @index(s) }", "blob property", "s) }"),
    ("node A { s: String  @key(zz) }", "references unknown property", "zz"),
    ("node A { s: String  @unique(s, zz) }", "references unknown property", "zz"),
    ("node A { s: String  @index(zz) }", "references unknown property", "zz"),
    ("node A { s: String  @range(zz, 0..1) }", "references unknown property", "zz"),
    ('node A { s: String  @check(zz, "x") }', "references unknown property", "zz"),
    ("node A { s: String  @index(src) }", "references unknown property", "src"),
    ("node A { s: String  @unique(s, s) }", "multiple times", "s) }"),
    ('node A { email: String @unique("x") }', "property names", "@unique"),
    ("node A { n: I32  @index(0..1) }", "property names", "0..1"),
    ("node A { s: String  @range(s, 0..1) }", "numeric", "s, 0"),
    ("node A { s: [I32]  @range(s, 0..1) }", "numeric", "s, 0"),
    ("node A { s: Date  @range(s, 0..1) }", "numeric", "s, 0"),
    ("node A { n: I32  @range(n) }", "takes a property and bounds", "@range"),
    ("node A { n: I32  @range(0..1, n) }", "takes a property and bounds", "@range"),
    ("node A { n: I32  @range(n, 5..1) }", "exceeds max", "5..1"),
    ('node A { n: I32  @check(n, "x") }', "String", "n, "),
    ('node A { n: [String]  @check(n, "x") }', "String", "n, "),
    ("node A { s: String  @check(s) }", "takes a property and a pattern", "@check"),
    ("node A { s: String  @check(s, 3) }", "takes a property and a pattern", "@check"),
    ('node A { s: String  @check(s, "(") }', "invalid regex", "@check"),
    ('node A { s: String  @check(s, "(a)\\\\1") }', "backreference", "@check"),
    ('node A { s: String  @check(s, "a(?=b)") }', "lookaround", "@check"),
    (NODE + "edge E: A -> A { n: I32?  @range(n, 0..1) }", "not supported on edges", "@range"),
    (NODE + 'edge E: A -> A { n: String?  @check(n, "x") }', "not supported on edges", "@check"),
    (NODE + "edge E: A -> A { n: String  @key(n) }", "must name both ends", "@key(n)"),
    (NODE + "edge E: A -> A { @key(src) }", "write `@key(src, dst)`", "@key(src)"),
    (NODE + "edge E: A -> A { n: I32?  @key(src, dst, n) }", "cannot be nullable", "n) }"),
    (NODE + "edge E: A -> A { n: [I32]  @key(src, dst, n) }", "list property", "n) }"),
    (NODE + "edge E: A -> A { @key(src, dst)  @key(dst, src) }", "multiple @key", "@key(dst"),
    (NODE + "edge E: A -> A @card(3..1)", "exceeds max", "@card(3..1)"),
    ("node A { s: I32 @default(1.5) }", "is not I32", "@default(1.5)"),
    ("node A { s: U32 @default(-1) }", "is not U32", "@default(-1)"),
    ("node A { s: I32 @default(2147483648) }", "is not I32", "@default"),
    ("node A { s: I32 @default(true) }", "is not I32", "@default"),
    ("node A { s: Bool @default(1) }", "is not Bool", "@default"),
    ("node A { s: String @default(1) }", "is not String", "@default"),
    ("node A { s: enum(a, b) @default(c) }", "is not enum(a, b)", "@default"),
    ('node A { s: Date @default("2024-13-01") }', "is not Date", "@default"),
    ("node A { s: [I32] @default(1) }", "only single values", "@default"),
    ("node A { s: I32 @default }", "exactly one value", "@default"),
    ("node A { s: I32 @default(1, of=2) }", "exactly one value", "@default"),
    ("node A { s: I32 @default(1) @default(2) }", "multiple times", "@default(2)"),
    ("node A { s: I32 @default(1)  @range(s, 2..3) }", "outside of its @range", "@default"),
    ('node A { s: String @default("x")  @check(s, "y") }', "match its @check", "@default"),
    ('node A { s: String @key @default("x") }', "the same key", "@default"),
    (NODE + "edge E: A -> A { n: I32 @default(x) }", "is not I32", "@default"),
    ("interface I { s: I32 @default(x) }", "is not I32", "@default"),
]

INTERFACES = [
    ("node A implements Z { s: String }", "unknown interface", "Z"),
    ("interface I { s: I32 }\nnode A implements I { s: String }", "interface I", "String }"),
    ("interface I { s: String? }\nnode A implements I { s: String }", "interface I", "String }"),
    (
        "interface I { s: enum(a, b) }\nnode A implements I { s: enum(a) }",
        "interface I",
        "enum(a) }",
    ),
    (
        "interface I { s: String }\ninterface J { s: I32 }\nnode A implements I, J { }",
        "incompatible property semantics",
        "A implements",
    ),
    (
        "interface I { s: String }\ninterface J { s: String @index }\nnode A implements I, J { }",
        "incompatible property semantics",
        "A implements",
    ),
    (
        'interface I { s: String }\ninterface J { s: String @description("d") }\n'
        "node A implements I, J { }",
        "incompatible property semantics",
        "A implements",
    ),
    (
        "interface I { s: String @n(1) }\ninterface J { s: String @n(true) }\n"
        "node A implements I, J { }",
        "incompatible property semantics",
        "A implements",
    ),
    (
        "interface I { t: String  v: Vector(2) @embed(t) }\n"
        'interface J { v: Vector(2) @embed(t, model="m") }\nnode A implements I, J { }',
        "incompatible property semantics",
        "A implements",
    ),
]

UNFITTING = [
    ("node Twin { s: String }\nnode Twin { t: String }", "duplicate node", "Twin { t"),
    (NODE + "edge E: A -> A\nedge E: A -> A", "duplicate edge", "E: A -> A"),
    ("interface I { }\ninterface I { }", "duplicate interface", "I { }"),
    ("node A { s: String  s: I32 }", "duplicate property", "s: I32"),
    ("interface I { s: String  s: String }", "duplicate property", "s: String }"),
    (NODE + "edge E: A -> A { n: I32?  n: I32? }", "duplicate property", "n: I32? }"),
    (NODE + "edge Links: A -> Missing", "edge Links: target `Missing`", "Missing"),
    (NODE + "edge Links: Missing -> A", "edge Links: source `Missing`", "Missing"),
    (NODE + "interface I { }\nedge E: A -> I", "is an interface", "I"),
    (NODE + "edge Rel: A -> A\nedge REL: A -> A", "after case folding", "REL"),
]


def refused(text: str, expected: type[SourceError]) -> SourceError:
    with pytest.raises(expected) as caught:
        catalog(text)
    return caught.value


def last_place(text: str, error: SourceError, points_at: str) -> None:
    assert error.span is not None
    assert text[error.span.start :].startswith(points_at), error.render()


@pytest.mark.parametrize(
    ("text", "fragment", "points_at"),
    [*NAMES, *PROPERTY_ANNOTATIONS, *EMBEDS, *TYPE_ANNOTATIONS, *CONSTRAINTS, *INTERFACES],
)
def test_a_broken_rule_is_a_parse_error_at_its_span(
    text: str, fragment: str, points_at: str
) -> None:
    error = refused(text, ParseError)

    assert fragment in error.message
    last_place(text, error, points_at)


@pytest.mark.parametrize(("text", "fragment", "points_at"), UNFITTING)
def test_conflicting_declarations_are_a_catalog_error_at_their_span(
    text: str, fragment: str, points_at: str
) -> None:
    error = refused(text, CatalogError)

    assert fragment in error.message
    last_place(text, error, points_at)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("node Person { }\nedge Knows: Person -> Persn", "Person"),
        ("interface Named { }\nnode A implements Nmed { }", "Named"),
        ("node A { age: I32  @range(agee, 0..200) }", "age"),
        ('node A { s: String @index(language: "german") }', "de"),
        ('node A { s: String @index(language: "de-AT") }', "de"),
        ('node A { s: String @index(languag: "de") }', "language"),
        ("node A { text: String  v: Vector(2) @embed(txt) }", "text"),
    ],
)
def test_an_unknown_name_suggests_the_near_one(text: str, near: str) -> None:
    error = refused(text, SourceError)

    assert error.hint == f"did you mean `{near}`?"
    assert f"did you mean `{near}`?" in error.render()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "node A { _row_id: String  _rowid2: String  src: String  dst: String }",
        "node A { from: String  to: String }\nedge E: A -> A { from: String?  to: String? }",
        "node A { name: String  nAME: String }",
        "node Review { s: String }\nedge Review: Review -> Review\ninterface Review { }",
        'node A @owner("team") { s: I32 @note("k", level="x") @note @default(3) }',
        "node A { x: I32?  y: F64?  @range(x, 1..)  @range(x, ..10)  @range(y, -1.5..1.5) }",
        'node A { k: enum(a, b)  @check(k, "a|b")  @unique(k) }',
        "node A { l: [String]  v: Vector(2) @index  @index(l)  @index(v, l) }",
        "node A { s: String }\nedge E: A -> A @card(1..) { @unique(src, dst)  @index(dst) }",
        "interface I { v: Vector(2) @embed(text) }\nnode A implements I { text: String }",
        "interface I { }\nnode A implements I, I { }",
    ],
)
def test_what_no_rule_forbids_is_accepted(text: str) -> None:
    catalog(text)


def test_of_several_faults_the_topmost_is_reported() -> None:
    error = refused("node A { s: String? @key }\nnode B { t: [String] @key }", ParseError)

    assert "node A" in error.message
