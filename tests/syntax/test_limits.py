"""Texts that are too large, too deep or not text at all are refused, quickly and by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax import NESTING_MAX, SOURCE_BYTES_MAX, parse_query, parse_schema
from omnigraph.syntax.grammar import load_grammar, make_reduction
from omnigraph.syntax.print_query import print_query
from tests.depth import sample

Parse = Callable[[str], Any]
both = pytest.mark.parametrize("parse", [parse_schema, parse_query])


def refusal(parse: Parse, text: str) -> ParseError:
    with pytest.raises(ParseError) as refused:
        parse(text)
    refused.value.render().encode()
    return refused.value


def read(clauses: str = "$p: P", returns: str = "$p") -> str:
    return f"query q() {{ match {{ {clauses} }} return {{ {returns} }} }}"


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("not { ", " }"),
        ("not{", "}"),
        ("count(", ")"),
        ("fuzzy(", ", 1)"),
        ("search(1, ", ")"),
        ("rrf(", ")"),
        ("nearest($p.v, ", ")"),
        ("[", "]"),
        ("[[1], ", "]"),
        ("{", "}"),
        ("(", ")"),
        ("([{", "}])"),
        ("optional { ", " }"),
        ("either { $a e $b } or { ", " }"),
        ("not (", ")"),
        ("(1 = 1 or (", "))"),
        ("$a.x in [", "]"),
        ("$a e{1,2 where (", ")} $b"),
        ("-(", ")"),
        ("1 + (", ")"),
        ("lower(", ")"),
        ("coalesce(1, ", ")"),
        ("collect(", ")"),
        ("$p { ", " }"),
        ("case when 1 = 1 then (", ") end"),
        ("top 1 by (", ") { $p: P }"),
        ("for $r in $rows { ", " }"),
        ("insert P { x: (", ") }"),
    ],
)
@pytest.mark.parametrize("depth", sample([10_000, 25_000], every=2))
def test_deep_nesting_is_refused(opening: str, closing: str, depth: int) -> None:
    """Closed or not, inside a query or alone."""
    for text in (
        read(opening * depth + "$a e $b" + closing * depth),
        read(returns=opening * depth + "$a" + closing * depth),
        read(returns=opening * depth),
        opening * depth,
    ):
        assert "nested too deeply" in str(refusal(parse_query, text))
        assert "nested too deeply" in str(refusal(parse_schema, text))


def test_the_deepest_allowed_tree_is_whole() -> None:
    """It can be compared, hashed, shown and printed within Python's own limit."""
    depth = NESTING_MAX - 2
    text = read("not { " * depth + "$a e $b" + " }" * depth)

    tree = parse_query(text)

    assert tree == parse_query(print_query(tree))
    assert hash(tree) == hash(parse_query(text))
    assert repr(tree).count("Negation") == depth
    refusal(parse_query, read("not { " * (depth + 1) + "$a e $b" + " }" * (depth + 1)))


def test_the_depth_leaves_room_on_the_stack() -> None:
    """A caller deep in its own recursion can still read the deepest tree."""
    text = read(returns="[" * (NESTING_MAX - 2) + "]" * (NESTING_MAX - 2))

    def deep_in(frames: int) -> str:
        return deep_in(frames - 1) if frames else print_query(parse_query(text))

    assert parse_query(deep_in(sys.getrecursionlimit() // 2)) == parse_query(text)


@both
def test_brackets_in_strings_and_comments_do_not_nest(parse: Parse) -> None:
    parse("// " + "([{" * 100 + "\n/* " + "([{" * 100 + " */")
    parse_query(read('$p.x = "' + "([{" * 100 + '"'))


@pytest.mark.slow
def test_wide_is_not_deep() -> None:
    many = 2_000
    assert len(parse_query(read("not { $a e $b } " * many)).queries[0].match) == many
    assert len(parse_schema("node A { p: Vector(3) @a(1) } " * many).declarations) == many
    assert len(parse_query(read(returns="[1], " * many)).queries[0].returns) == many


@both
@pytest.mark.parametrize("size", [SOURCE_BYTES_MAX + 1, 50_000_000])
@pytest.mark.parametrize("unit", [" ", "[", '"', "node A { }\n", "/*"])
def test_a_text_above_the_size_limit_is_refused(parse: Parse, size: int, unit: str) -> None:
    error = refusal(parse, (unit * (size // len(unit) + 1))[:size])

    assert "the text is too long" in str(error)
    assert "the limit is 1 MiB" in str(error)


@both
def test_the_size_limit_counts_bytes(parse: Parse) -> None:
    parse("//" + "x" * (SOURCE_BYTES_MAX - 2))
    assert "too long" in str(refusal(parse, "//" + "é" * (SOURCE_BYTES_MAX // 2)))


@both
@pytest.mark.parametrize(
    "unit",
    ['"', "/*", "/* */", "/**", "//", "\\", '"\\', "*/", "a", "1", "@", "$", "-", "é", "\n", "<"],
)
def test_a_long_run_of_anything_is_read_in_linear_time(parse: Parse, unit: str) -> None:
    """A quadratic search over a megabyte would meet the timeout of the suite."""
    try:
        parse(unit * (1_000_000 // len(unit)))
    except ParseError as error:
        error.render().encode()


@both
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\0", "NUL"),
        ('node A { x: String @a("\0") }', "NUL"),
        ("\ud800", "not valid Unicode"),
        ('query q() { insert A { x: "\udfff" } }', "not valid Unicode"),
        ("// \udc80", "not valid Unicode"),
        ("\ufeff\ufeff", "U+FEFF"),
        ("\ufeff \ufeff", "U+FEFF"),
        ("\u00a0", "U+00A0"),
        ("\x1b[31m", "U+001B"),
        ("\x85", "U+0085"),
        ("\u2028", "U+2028"),
        ("é", "`é`"),
        ("😀", "`😀`"),
    ],
)
def test_hostile_characters_are_refused_by_name(parse: Parse, text: str, message: str) -> None:
    error = refusal(parse, text)

    assert message in str(error)
    assert not {"\0", "\x1b", "\x85"} & set(error.render())


@both
def test_a_byte_order_mark_is_skipped(parse: Parse) -> None:
    assert parse("\ufeff") == parse("")
    error = refusal(parse, "\ufeff?")

    assert (error.location, error.byte_span) == ((1, 2), (3, 4))


@both
@pytest.mark.parametrize("text", [b"node A { }", None, 3, ["node"]])
def test_what_is_no_text_is_a_mistake_of_the_caller(parse: Any, text: object) -> None:
    with pytest.raises(TypeError, match="is text"):
        parse(text)


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"Bool @a({2**63})", f"an integer is at most {2**63 - 1}"),
        (f"Bool @a({NINES})", f"an integer is at most {2**63 - 1}"),
        (f"Bool @range(p, {2**63}..)", "an integer is at most"),
        (f"Bool @range(p, -{2**63 + 1}..)", f"an integer is at least -{2**63}"),
        (f"Bool @range(p, ..-{NINES})", "an integer is at least"),
        (f"Bool @range(p, ..-{NINES}.0)", "the number is too long"),
        (f"Bool @a({'9' * 400}.0)", "the number is too large"),
        (f"Bool @range(p, -{'9' * 400}.0..)", "the number is too large"),
        (f"Vector({2**31})", "the dimension of a Vector is at most 2147483647"),
        (f"Vector({NINES})", "the dimension of a Vector is at most"),
        ("Vector(000)", "greater than zero"),
    ],
)
def test_schema_numbers_have_a_size(text: str, message: str) -> None:
    assert message in str(refusal(parse_schema, f"node A {{ p: {text} }}"))


@pytest.mark.parametrize("number", [str(2**32), NINES])
def test_cardinality_bounds_have_32_bits(number: str) -> None:
    for bounds in (f"{number}..", f"0..{number}"):
        error = refusal(parse_schema, f"edge E: A -> B @card({bounds})")
        assert f"a bound of @card is at most {2**32 - 1}" in str(error)
    parse_schema(f"edge E: A -> B @card({2**32 - 1}..{2**32 - 1})")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (read(f"$p.x = {2**63}"), f"an integer is at most {2**63 - 1}"),
        (read(f"$p.x = {NINES}"), "an integer is at most"),
        (read(f"$p.x = {'9' * 400}.5"), "the number is too large"),
        (read(f"$p.x = 0.{NINES}"), "the number is too long"),
        (read(f"$p e{{{2**32},}} $q"), f"a hop bound is at most {2**32 - 1}"),
        (read(f"$p e{{1,{NINES}}} $q"), "a hop bound is at most"),
        (read().replace("} }", f"}} limit {2**63} }}"), f"a number of rows is at most {2**63 - 1}"),
        (f"query q($v: Vector({2**31})) {{ }}", "the dimension of a Vector is at most"),
        (f"query q($v: Vector({NINES})) {{ }}", "the dimension of a Vector is at most"),
    ],
)
def test_query_numbers_have_a_size(text: str, message: str) -> None:
    assert message in str(refusal(parse_query, text))


def test_leading_zeros_do_not_count() -> None:
    tree = parse_query(read(returns=f"{'0' * 5000}7"))

    assert "LiteralExpr(value=7)" in repr(tree)


def test_a_list_is_read_in_place() -> None:
    """An item more is added to the items so far: a copy for each would cost their square."""
    rules = load_grammar("query.lark", object()).tables.rules
    # The rule of a repetition takes the items so far and one more.
    longer = [each for each in rules if "_star_" in each.origin and len(each.children) > 1]
    items: list[Any] = ["first"]

    for rule in longer:
        children = [items, *([["more"]] * (rule.length - 1))]
        assert make_reduction(rule, object())(children) is items
    assert len(items) > 1
