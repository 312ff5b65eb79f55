"""The shape hash: the same for every spelling of one schema, different for every other schema."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.reading import catalog

INTERFACE = ("interface Named {", ["name: String? @index", "nick: [String]?"], "}")
AUTHOR = (
    'node Author @owner("team") @tier(1, b=2, a=1) @description("who") implements Named, Aged {',
    [
        "slug: String @key @unique",
        "level: enum(senior, junior)?",
        'bio: String @description("life") @note("x") @mark',
        'vec: Vector(4)? @embed(bio, model="m")',
        "pay: F64?",
        "@range(pay, 0..10.5)",
        '@check(slug, "^[a-z]+$")',
        "@unique(pay, level)",
        "@index(level)",
    ],
    "}",
)
AGED = ("interface Aged {", ["age: I32?", "born: Date?"], "}")
PAPER = ("node Paper {", ["doi: String", "year: I32", "@key(doi, year)"], "}")
WROTE = ("edge Wrote: Author -> Paper @card(0..3) {", ["pos: I32?", "@unique(src, dst)"], "}")
DECLARATIONS = [INTERFACE, AUTHOR, AGED, PAPER, WROTE]

EMPTY_HASH = "d6a1b8b4e36b3bc4620c40fc435f50ad8dfffbdcf9822c7367ef9fa9121a03de"
PLAIN_HASH = "96f4d2bdb489d7e4a8577ff4cdd8b0398d2c4ac26a8ce952f6b0d5e98fe21049"

SPACES = st.sampled_from([" ", "\n", "\r\n\t", " // a comment }\n", " /* @key(no) */ "])


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """The schema above with its declarations, members and spacing in any order."""
    parts: list[str] = []
    for head, members, tail in draw(st.permutations(DECLARATIONS)):
        parts += [head, *draw(st.permutations(members)), tail]
    return "".join(part + draw(SPACES) for part in parts)


def plain() -> str:
    return "\n".join("\n".join([head, *members, tail]) for head, members, tail in DECLARATIONS)


@pytest.mark.slow
@given(spellings())
def test_order_spacing_and_comments_do_not_change_the_hash(text: str) -> None:
    assert catalog(text).shape_hash == catalog(plain()).shape_hash


@given(spellings())
def test_order_spacing_and_comments_do_not_change_the_catalogue(text: str) -> None:
    """Identities are given in canonical order, so not even they depend on the file's order."""
    assert catalog(text) == catalog(plain())


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("enum(senior, junior)", "enum(junior, senior)"),
        ("@key(doi, year)", "@key(year, doi)"),
        ("implements Named, Aged", "implements Aged, Named"),
        ("@tier(1, b=2, a=1)", "@tier(1, a=1, b=2)"),
        ('@note("x") @mark', '@mark @note("x")'),
        ('@owner("team")', '@rename_from("Person") @owner("team")'),
        ("year: I32", "year: I32 @rename_from(published)"),
        ("0..10.5", "0.0..10.5"),
        ("@embed(bio", '@embed("bio"'),
    ],
)
def test_another_spelling_of_the_same_meaning_has_the_same_hash(
    written: str, rewritten: str
) -> None:
    assert written in plain()

    assert catalog(plain().replace(written, rewritten)).shape_hash == catalog(plain()).shape_hash


@pytest.mark.parametrize(
    ("written", "rewritten"),
    [
        ("pos: I32?", "pos: I64?"),
        ("pos: I32?", "pos: I32"),
        ("pos: I32?", "pos: [I32]?"),
        ("pos: I32?", "place: I32?"),
        ("Vector(4)", "Vector(5)"),
        ("enum(senior, junior)", "enum(senior, junior, staff)"),
        ("edge Wrote", "edge Penned"),
        ("Author -> Paper", "Paper -> Author"),
        ("@card(0..3)", "@card(1..3)"),
        ("@card(0..3)", ""),
        ("@unique(src, dst)", "@index(src, dst)"),
        ("@unique(src, dst)", "@unique(src)"),
        ("@key(doi, year)", "@key(doi)"),
        ("slug: String @key", "slug: String"),
        ("implements Named, Aged", "implements Named"),
        ("interface Aged {", "interface Aged { x: I32?"),
        ("0..10.5", "0..10"),
        ("^[a-z]+$", "^[a-z]*$"),
        ('"who"', '"what"'),
        ('@description("who")', '@instruction("who")'),
        ('@description("life")', ""),
        ("@embed(bio", "@embed(slug"),
        ('model="m"', 'model="n"'),
        ("@mark", "@mark(true)"),
        ("@tier(1,", "@tier(true,"),
        ("a=1)", "a=1.0)"),
        ("pay: F64?", "pay: F64?  age: I32?"),
    ],
)
def test_a_change_of_meaning_changes_the_hash(written: str, rewritten: str) -> None:
    assert written in plain()

    assert catalog(plain().replace(written, rewritten)).shape_hash != catalog(plain()).shape_hash


def test_identities_are_no_part_of_the_hash() -> None:
    fresh = catalog("node A { a: String  b: String  @key(a, b) }")
    older = catalog("node A { b: String  z: String  @key(z, b) }")

    continued = catalog('node A { a: String @rename_from("z")  b: String  @key(a, b) }', older)

    assert continued.nodes["A"].key == ("b", "a")
    assert continued.shape_hash == fresh.shape_hash


def test_the_hash_is_the_same_in_every_release() -> None:
    """A graph keeps this hash beside its schema; changing how it is made would lock graphs out."""
    assert catalog("").shape_hash == EMPTY_HASH
    assert catalog(plain()).shape_hash == PLAIN_HASH
