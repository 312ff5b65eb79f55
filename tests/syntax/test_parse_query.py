"""What the query grammar accepts, and what it makes of it."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax import parse_query
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AggregateFunction,
    AliasExpr,
    Binding,
    Clause,
    CompareOp,
    DateText,
    DateTimeText,
    Expr,
    FilterClause,
    FuzzyExpr,
    ListLiteral,
    LiteralExpr,
    NearestExpr,
    Negation,
    NowExpr,
    Ordering,
    ParamDecl,
    Projection,
    PropertyExpr,
    PropertyMatch,
    QueryDecl,
    RrfExpr,
    TextSearchExpr,
    Traversal,
    VariableExpr,
)
from omnigraph.syntax.statement_tree import (
    DeleteStatement,
    InsertStatement,
    Statement,
    UpdateStatement,
)


def query(text: str) -> QueryDecl:
    (declared,) = parse_query(text).queries
    return declared


def clauses(text: str) -> tuple[Clause, ...]:
    return query(f"query q() {{ match {{ {text} }} return {{ $p }} }}").match


def clause(text: str) -> Clause:
    (only,) = clauses(text)
    return only


def read(rest: str) -> QueryDecl:
    return query(f"query q() {{ match {{ $p: Paper }} {rest} }}")


def expression(text: str) -> Expr:
    (only,) = read(f"return {{ {text} }}").returns
    return only.expression


def statements(text: str) -> tuple[Statement, ...]:
    return query(f"query q() {{ {text} }}").mutations


def params(text: str) -> tuple[ParamDecl, ...]:
    return query(f"query q({text}) {{ match {{ $p: P }} return {{ $p }} }}").params


def refusal(text: str) -> str:
    with pytest.raises(ParseError) as refused:
        parse_query(text)
    return str(refused.value)


def refuse_clause(text: str) -> str:
    return refusal(f"query q() {{ match {{ {text} }} return {{ $p }} }}")


P_YEAR = PropertyExpr("p", "year")


def test_a_whole_read_is_read_in_order() -> None:
    tree = query(
        """
        query recent($since: Date?, $q: [String]) @instruction("how") @description("what") {
            match {
                $p: Paper { status: "published", year: 2020, }
                $a wrote $p
                not { $p cites{1,3} $_ }
                $p.released >= $since
                search($p.title, "graph")
            }
            return { $p.title as title  count($a) as authors, $p.doi, }
            order { authors desc, title }
            limit 10
        }
        """
    )

    assert tree == QueryDecl(
        "recent",
        (ParamDecl("since", "Date", nullable=True), ParamDecl("q", "[String]")),
        "what",
        "how",
        (
            Binding(
                "p",
                "Paper",
                (
                    PropertyMatch("status", LiteralExpr("published")),
                    PropertyMatch("year", LiteralExpr(2020)),
                ),
            ),
            Traversal("a", "wrote", "p"),
            Negation((Traversal("p", "cites", "_", 1, 3, has_bounds=True),)),
            FilterClause(
                PropertyExpr("p", "released"), CompareOp.GREATER_EQUAL, VariableExpr("since")
            ),
            FilterClause(
                TextSearchExpr("search", PropertyExpr("p", "title"), LiteralExpr("graph")),
                CompareOp.EQUAL,
                LiteralExpr(True),
            ),
        ),
        (
            Projection(PropertyExpr("p", "title"), "title"),
            Projection(AggregateExpr(AggregateFunction.COUNT, VariableExpr("a")), "authors"),
            Projection(PropertyExpr("p", "doi")),
        ),
        (Ordering(AliasExpr("authors"), descending=True), Ordering(AliasExpr("title"))),
        10,
    )
    assert not tree.is_mutation


def test_a_whole_mutation_is_read_in_order() -> None:
    declared = query(
        """
        query change($doi: String) {
            insert Paper { doi: $doi  year: 2020, seen: now(), }
            update Paper set { year: 2021 } where doi = $doi
            delete Cites where from != "x"
        }
        """
    )

    assert declared.is_mutation
    assert declared.mutations == (
        InsertStatement(
            "Paper",
            (
                PropertyMatch("doi", VariableExpr("doi")),
                PropertyMatch("year", LiteralExpr(2020)),
                PropertyMatch("seen", NowExpr()),
            ),
        ),
        UpdateStatement(
            "Paper",
            (PropertyMatch("year", LiteralExpr(2021)),),
            FilterClause(AliasExpr("doi"), CompareOp.EQUAL, VariableExpr("doi")),
        ),
        DeleteStatement(
            "Cites", FilterClause(AliasExpr("from"), CompareOp.NOT_EQUAL, LiteralExpr("x"))
        ),
    )


def test_a_file_holds_any_number_of_queries() -> None:
    """Two of one name are accepted: the first is found, the linter warns."""
    body = "() { match { $p: P } return { $p } }"

    assert parse_query("").queries == ()
    names = [q.name for q in parse_query(f"query a{body} query b{body} query a{body}").queries]
    assert names == ["a", "b", "a"]


WORDS = [
    "query", "match", "return", "order", "limit", "insert", "update", "delete", "set", "where",
    "as", "asc", "desc", "contains", "starts_with", "not", "now", "nearest", "search", "fuzzy",
    "match_text", "bm25", "rrf", "count", "sum", "avg", "min", "max", "date", "datetime", "true",
    "false", "from", "to", "when", "type", "null", "or", "in",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_no_word_is_reserved(word: str) -> None:
    """As the name of a query, parameter, variable, property, edge or alias."""
    read = query(
        f"query {word}(${word}: Date) {{ match {{ ${word}: P {{ {word}: ${word} }}"
        f" ${word} {word} $b  ${word} {word}{{1,2}} $b  $a ${word}: {word} $b"
        f" ${word}.{word} = $b.{word} }} return {{ ${word}.{word} as {word}, ${word} }} }}"
    )

    assert read.name == read.params[0].name == word
    assert read.returns[0] == Projection(PropertyExpr(word, word), word)
    assert [type(c) for c in read.match] == [Binding, Traversal, Traversal, Traversal, FilterClause]


@pytest.mark.parametrize("value", ["1", '"x"', "true", "$v", "now()", "[1]", 'date("x")'])
def test_any_word_is_a_property_without_commas_before_it(value: str) -> None:
    for word in WORDS:
        (insert,) = statements(f"insert A {{ {word}: {value} {word}: {value} {word} : {value} }}")

        assert isinstance(insert, InsertStatement), word
        assert [pair.property for pair in insert.assignments] == [word] * 3


@pytest.mark.parametrize("word", [word for word in WORDS if word not in ("true", "false", "null")])
def test_any_word_is_an_alias(word: str) -> None:
    """`true`, `false` and `null` are literals wherever one may stand."""
    declared = read(f"return {{ {word}, {word} as {word} }} order {{ {word}, {word} desc }}")

    assert declared.returns == (Projection(AliasExpr(word)), Projection(AliasExpr(word), word))
    assert declared.order == (Ordering(AliasExpr(word)), Ordering(AliasExpr(word), True))


def test_a_property_called_date_is_no_date_literal() -> None:
    assert expression("$s.date") == PropertyExpr("s", "date")
    assert clause('$s.date = date("2026-01-01")') == FilterClause(
        PropertyExpr("s", "date"), CompareOp.EQUAL, LiteralExpr(DateText("2026-01-01"))
    )


@pytest.mark.parametrize(
    "name", ["String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"]
)
def test_parameters_have_scalar_and_list_types(name: str) -> None:
    assert params(f"$a: {name}, $b: {name}?, $c: [{name}], $d: [ {name} ]?") == (
        ParamDecl("a", name),
        ParamDecl("b", name, nullable=True),
        ParamDecl("c", f"[{name}]"),
        ParamDecl("d", f"[{name}]", nullable=True),
    )


def test_parameters_may_be_vectors() -> None:
    assert params("$v: Vector( 04 )?") == (ParamDecl("v", "Vector(4)", nullable=True),)
    assert "greater than zero" in refusal("query q($v: Vector(0)) { }")


@pytest.mark.parametrize("text", ["$p: enum(a)", "$p: Paper", "p: String", "$p String", "$p: I32,"])
def test_other_parameters_are_refused(text: str) -> None:
    refusal(f"query q({text}) {{ match {{ $p: P }} return {{ $p }} }}")


def test_query_annotations_come_in_any_order_once_each() -> None:
    declared = query(
        'query q() @instruction("i") @ description ("d") { match { $p: P } return { $p } }'
    )

    assert (declared.description, declared.instruction) == ("d", "i")
    for name in ("description", "instruction"):
        twice = f'@{name}("a") @{name}("a")'
        assert f"duplicate @{name}" in refusal(f"query q() {twice} {{ }}")
    refusal('query q() @other("x") { match { $p: P } return { $p } }')


def test_a_variable_before_a_type_is_a_binding() -> None:
    assert clause("$p: Paper") == clause("$p:Paper { }") == Binding("p", "Paper")
    assert clause("$p: Paper { a: 1, b: $x, }") == Binding(
        "p",
        "Paper",
        (PropertyMatch("a", LiteralExpr(1)), PropertyMatch("b", VariableExpr("x"))),
    )
    refuse_clause("$p: Paper { a: 1 b: 2 }")
    refuse_clause("$p: Paper { , }")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$a wrote $b", Traversal("a", "wrote", "b")),
        ("$a wrote{2,} $b", Traversal("a", "wrote", "b", 2, None, has_bounds=True)),
        ("$a wrote { 2 , 5 } $b", Traversal("a", "wrote", "b", 2, 5, has_bounds=True)),
        ("$a wrote{1,1} $b", Traversal("a", "wrote", "b", 1, 1, has_bounds=True)),
        ("$a <wrote> $b", Traversal("a", "wrote", "b", undirected=True)),
        ("$a $w: wrote $b", Traversal("a", "wrote", "b", edge_variable="w")),
        ("$a $_: wrote $b", Traversal("a", "wrote", "b")),
        (
            "$a $w: <wrote>{1,2} $b",
            Traversal("a", "wrote", "b", 1, 2, True, "w", has_bounds=True),
        ),
        ("$a contains $b", Traversal("a", "contains", "b")),
        ("$a starts_with{1,2} $b", Traversal("a", "starts_with", "b", 1, 2, has_bounds=True)),
        ("$a <contains> $b", Traversal("a", "contains", "b", undirected=True)),
        ("$_ wrote $_", Traversal("_", "wrote", "_")),
    ],
)
def test_a_word_between_two_variables_is_a_traversal(text: str, expected: Traversal) -> None:
    assert clause(text) == expected


@pytest.mark.parametrize("text", ["{3}", "{,3}", "{}", "*", "{1..2}", "{$a,2}", "{-1,2}"])
def test_other_bounds_are_refused(text: str) -> None:
    refuse_clause(f"$a cites{text} $b")


@pytest.mark.parametrize("op", CompareOp)
def test_filters_compare_expressions(op: CompareOp) -> None:
    assert clause(f"$p.year {op} 3") == FilterClause(P_YEAR, op, LiteralExpr(3))
    assert clause(f"$x {op} $p.year") == FilterClause(VariableExpr("x"), op, P_YEAR)
    assert clause(f'"x" {op} $x') == FilterClause(LiteralExpr("x"), op, VariableExpr("x"))


@pytest.mark.parametrize("word", ["contains", "starts_with"])
def test_word_operators_with_a_property_or_literal_are_filters(word: str) -> None:
    op = CompareOp(word)

    assert clause(f"$q {word} $m.name") == FilterClause(
        VariableExpr("q"), op, PropertyExpr("m", "name")
    )
    assert clause(f"$q.tags {word} $m") == FilterClause(
        PropertyExpr("q", "tags"), op, VariableExpr("m")
    )
    assert clause(f'$q {word} "x"') == FilterClause(VariableExpr("q"), op, LiteralExpr("x"))


def test_a_less_than_is_distinguished_from_an_undirected_edge() -> None:
    assert clause("$a < 3") == FilterClause(VariableExpr("a"), CompareOp.LESS, LiteralExpr(3))
    assert clause("$a < $b") == FilterClause(VariableExpr("a"), CompareOp.LESS, VariableExpr("b"))
    assert clause("$a < b") == FilterClause(VariableExpr("a"), CompareOp.LESS, AliasExpr("b"))


def test_clauses_need_no_separator() -> None:
    """A variable that ends one clause is not taken for the start of the next."""
    found = clauses(
        "$p.a = $x $y: T $y.b < $x $x e $y not { $a e $b } $z e $y 1 = $q.b fuzzy(a, b)"
    )

    assert [type(c).__name__[0] for c in found] == list("FBFTNTFF")


@pytest.mark.parametrize(
    "call", ['search($p.t, "x")', "match_text($p.t, $q)", "fuzzy($p.t, $q, 1)"]
)
def test_a_text_search_is_a_clause(call: str) -> None:
    bare = clause(call)

    assert bare == clause(f"{call} = true")
    assert bare != clause(f"{call} = false")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$p", VariableExpr("p")),
        ("$p.year", P_YEAR),
        ("now ( )", NowExpr()),
        ("nearest($p.vec, $v)", NearestExpr(PropertyExpr("p", "vec"), VariableExpr("v"))),
        ("bm25($p.year, $v)", TextSearchExpr("bm25", P_YEAR, VariableExpr("v"))),
        ("fuzzy($p.year, $v, 2)", FuzzyExpr(P_YEAR, VariableExpr("v"), LiteralExpr(2))),
        (
            "rrf(nearest($p.year, $v), bm25($p.year, $v), 60)",
            RrfExpr(
                NearestExpr(P_YEAR, VariableExpr("v")),
                TextSearchExpr("bm25", P_YEAR, VariableExpr("v")),
                LiteralExpr(60),
            ),
        ),
        ("count(sum($p.year))", AggregateExpr(
            AggregateFunction.COUNT, AggregateExpr(AggregateFunction.SUM, P_YEAR)
        )),
        ("total", AliasExpr("total")),
        ('date("2020-01-01")', LiteralExpr(DateText("2020-01-01"))),
        ('datetime("x")', LiteralExpr(DateTimeText("x"))),
        ("[]", LiteralExpr(ListLiteral(()))),
        ("[1, [true], 0.5]", LiteralExpr(ListLiteral((1, ListLiteral((True,)), 0.5)))),
        ("007", LiteralExpr(7)),
        ("9223372036854775807", LiteralExpr(2**63 - 1)),
        ("0.10", LiteralExpr(0.1)),
        ("true", LiteralExpr(True)),
        (r'"a\"b"', LiteralExpr('a"b')),
    ],
)  # fmt: skip
def test_expressions(text: str, expected: Expr) -> None:
    assert expression(text) == expected
    assert repr(expression(text)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        "+1",
        "1e5",
        "1.5e3",
        "1.",
        ".5",
        "1_000",
        "0x1F",
        "'x'",
        "[1,]",
        "[1 2]",
    ],
)
def test_there_is_no_such_literal(text: str) -> None:
    """No plus sign, no exponent, no other spelling."""
    refusal(f"query q() {{ match {{ $p.x = {text} }} return {{ $p }} }}")
    refusal(f"query q() {{ insert A {{ x: {text} }} }}")


def test_an_inline_property_is_never_null() -> None:
    refusal("query q() { match { $p: A { x: null } } return { $p } }")


@pytest.mark.parametrize(
    "text",
    [
        "search($p.t)",
        "nearest($p, $v)",
        "rrf($p.x, $p.y)",
        "rrf(search($p.x, $q), bm25($p.x, $q))",
        "count()",
        "count($a, $b)",
        "now(1)",
        "date()",
        "fuzzy($a, $b, $c, $d)",
        "$p.x.y",
        "$p . 1",
        "$P",
        "$1",
    ],
)
def test_other_expressions_are_refused(text: str) -> None:
    refusal(f"query q() {{ match {{ $p: P }} return {{ {text} }} }}")


def test_commas_are_optional_between_projections_and_assignments() -> None:
    assert read("return { $p.a $p.b }") == read("return { $p.a, $p.b, }")
    assert read("return { $p.a as x $p.b as y }") == read("return { $p.a as x, $p.b as y }")
    assert statements("insert A { a: 1 b: 2 }") == statements("insert A { a: 1, b: 2, }")
    refusal("query q() { match { $p: P } return { $p.a,, $p.b } }")


@pytest.mark.parametrize(
    "rest",
    [
        "return { $p } order { $p.a $p.b }",
        "return { $p } order { $p.a, }",
        "return { $p } order { }",
        "return { }",
        "return { $p } limit",
        "return { $p } limit -1",
        "return { $p } offset 1 limit 2",
        "return { $p } order { $p.a } having { n > 1 }",
        "return distinct",
        "return { $p } limit 1.5",
        "return { $p } limit 1 order { $p.a }",
        "return { $p } limit 1 limit 2",
        "order { $p.a } return { $p }",
        "return { $p } return { $p }",
        "",
    ],
)
def test_a_read_is_match_return_order_limit(rest: str) -> None:
    refusal(f"query q() {{ match {{ $p: P }} {rest} }}")


@pytest.mark.parametrize("body", ["", "return { $p }", "match { } return { $p }", "limit 3"])
def test_match_and_return_are_mandatory(body: str) -> None:
    refusal(f"query q() {{ {body} }}")


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_nearest_takes_no_direction(direction: str) -> None:
    text = f"return {{ $p }} order {{ nearest($p.v, $v) {direction} }} limit 2"

    assert f"`{direction}` cannot follow nearest" in refusal(
        f"query q() {{ match {{ $p: P }} {text} }}"
    )
    assert read(text.replace("nearest", "bm25")).order[0].descending == (direction == "desc")


@pytest.mark.parametrize(
    "text",
    [
        "insert A { }",
        "insert A",
        "insert a { x: 1 }",
        "update A { x: 1 } where y = 1",
        "update A set { x: 1 }",
        "delete A",
        "delete A where x",
        "delete A where x = 1, y = 2",
        "insert A { x: 1 } match { $p: P } return { $p }",
        "match { $p: P } insert A { x: 1 } match { $p: P }",
        "delete $x where y = 1",
        "update $x set { y: 1 } where y = 1",
        "upsert A where x = 1",
        "for $x in [1, 2] { delete A where y = 1 }",
        "for $x in $xs { }",
        "insert A { x: 1 } as x",
    ],
)
def test_other_statements_are_refused(text: str) -> None:
    refusal(f"query q() {{ {text} }}")


def test_inserts_and_deletes_may_be_written_together() -> None:
    """That a query does not mix them is a rule about running, so the tree can say it."""
    found = statements("insert A { x: 1 } delete A where x = 1 insert B { y: 2 }")

    assert [type(s) for s in found] == [InsertStatement, DeleteStatement, InsertStatement]


@pytest.mark.parametrize(
    "text",
    [
        "$p.a",
        "$p.a in (1, 2)",
        "$p.open or $p.b = 2",
        "not $p.a = 1",
        "$p.a = 1 = 2",
        "$p.a <> 1",
        "$p.a == 1",
        "$p Cites $q",
        "$p -[cites]-> $q",
        "optional $p cites $q",
        "either { $p cites $q }",
        "$p cites{1} $q",
        "$p shortest $t: cites $q",
        "$p cites* $q",
        "$p.a = 1;",
        "$p",
        "not $p cites $q",
    ],
)
def test_what_is_absent_by_design_is_refused(text: str) -> None:
    refuse_clause(text)


def test_comments_may_stand_between_any_two_words() -> None:
    words = ["query", "q", "(", "$a", ":", "[", "Date", "]", "?", ")", "{", "match", "{", "not"]
    words += ["{", "$a", "e", "{", "1", ",", "2", "}", "$b", "}", "search", "(", "$a", ".", "x"]
    words += [",", '"/*"', ")", "}", "return", "{", "count", "(", "$a", ")", "as", "n", "}", "}"]

    plain = parse_query(" ".join(words))

    assert parse_query('/* " ( */'.join(words)) == plain
    assert parse_query("// ' [\n".join(words)) == plain


def test_every_construct_of_the_language_has_its_place_in_the_tree() -> None:
    """One text with each of them; the printer gives it back."""
    text = """\
query q($k: I32 = 10, $f: { a: String, b: [I32]? }, $rows: [{ v: Vector(3) }]?) {
    top $k by nearest($p.v, $q), $p.x desc as $d {
        $p: P
    }
    match {
        optional {
            $p $t: all shortest <cites>{where w > 1 or w is null} by w $q
        }
        either {
            $p cites{1,3 where w = 1} $q
        }
        or {
            $q in $p
        }
    }
    return distinct {
        $p { * },
        $p { a, b } as x,
        count(distinct $q) as n,
        collect(distinct $q { a } order $d desc, $q.x) as l
    }
    having {
        n > 1
        (-n < 3)
    }
    order { n desc, x }
    limit $k
    offset 3
}

query m($rows: [{ a: String }]) {
    match {
        $p: P
    }
    for $r in $rows {
        upsert P { a: $r.a, n: -n + 1 } as $u
    }
    update $p set { a: lower($p.b) }
    delete $p
    update P set { a: b } where a = b and not (c is null) as $x
    return {
        $x.a
    }
}
"""

    assert print_query(parse_query(text)) == text
