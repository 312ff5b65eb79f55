"""Every node of a tree knows the characters it was written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from omnigraph.source_text import NO_SPAN, Span
from omnigraph.syntax import parse_query, parse_schema

SCHEMA = """\ufeff// Häuser und Straßen
interface Named { name : String @index }
node Author @description("w") implements Named {
    slug: String? @embed( text , model = "m" )
    tags: [ String ] ?  kind: enum( a, b-c )  vec: Vector( 3 )
    @range( year , -1 .. 2.5 ) @check(slug, "é") @unique(a)
}
edge Wrote : Author -> Paper @card( 0 .. * ) @x { at: Date }
"""

QUERY = """\ufeff// Häuser
query recent($since: Date ?, $v: Vector( 4 )) @description("é") {
    match {
        $p : Paper { status : "published", on: now( ) }
        $a $w : <wrote>{ 1 , 2 } $p
        $a contains $b
        not { $p cites $_ }
        $p . year >= 2020
        $x < [ 1, 2 ]
        search( $p.title , "é" )
    }
    return { $p.title as t, count( $a ), nearest($p.v, $v), fuzzy($p.x, $q, 2) }
    order { rrf( nearest($p.v, $q), bm25($p.t, $q) ) , t desc }
}
query change() { insert Paper { doi : "x" } update Paper set { a: 1 } where b != 2.5
    delete Paper where c = date( "x" ) }
"""


def spans(tree: Any) -> Iterator[tuple[str, str, Span]]:
    """Every (node class, span field, span) below `tree`."""
    if is_dataclass(tree) and not isinstance(tree, type):
        for item in fields(tree):
            member = getattr(tree, item.name)
            if isinstance(member, Span):
                yield type(tree).__name__, item.name, member
            else:
                yield from spans(member)
    elif isinstance(tree, tuple):
        for member in tree:
            yield from spans(member)


def written(text: str, tree: Any) -> dict[str, list[str]]:
    """The source text of every span, by class (and field, when it is not `span`)."""
    found: dict[str, list[str]] = {}
    for name, field, span in spans(tree):
        if span != NO_SPAN:
            key = name if field == "span" else f"{name}.{field}"
            found.setdefault(key, []).append(text[span.start : span.end])
    return found


def test_every_schema_node_has_the_span_of_what_was_written() -> None:
    assert written(SCHEMA, parse_schema(SCHEMA)) == {
        "InterfaceDecl": ["Named"],
        "NodeDecl": ["Author"],
        "EdgeDecl": ["Wrote"],
        "TypeRef": ["Named", "Author", "Paper"],
        "PropertyDecl": ["name", "slug", "tags", "kind", "vec", "at"],
        "PropertyDecl.type_span": [
            "String", "String?", "[ String ] ?", "enum( a, b-c )", "Vector( 3 )", "Date",
        ],
        "Annotation": [
            "@index", '@description("w")', '@embed( text , model = "m" )', "@x",
        ],
        "ConstraintDecl": ["@range( year , -1 .. 2.5 )", '@check(slug, "é")', "@unique(a)"],
        "Identifier": ["text", "year", "slug", "a"],
        "RangeBound": ["-1 .. 2.5"],
        "CardinalityDecl": ["@card( 0 .. * )"],
    }  # fmt: skip


def test_every_query_node_has_the_span_of_what_was_written() -> None:
    assert written(QUERY, parse_query(QUERY)) == {
        "QueryDecl": ["recent", "change"],
        "ParamDecl": ["$since: Date ?", "$v: Vector( 4 )"],
        "Binding": ['$p : Paper { status : "published", on: now( ) }'],
        "Binding.type_span": ["Paper"],
        "PropertyMatch": ["status", "on", "doi", "a"],
        "Traversal": ["$a $w : <wrote>{ 1 , 2 } $p", "$a contains $b", "$p cites $_"],
        "Traversal.edge_span": ["wrote", "contains", "cites"],
        "Traversal.source_span": ["$a", "$a", "$p"],
        "Traversal.target_span": ["$p", "$b", "$_"],
        "Negation": ["not { $p cites $_ }"],
        "FilterClause": [
            "$p . year >= 2020", "$x < [ 1, 2 ]", 'search( $p.title , "é" )', "b != 2.5",
            'c = date( "x" )',
        ],
        "PropertyExpr": [
            "$p . year", "$p.title", "$p.title", "$p.v", "$p.x", "$p.v", "$p.t",
        ],
        "PropertyExpr.property_span": ["year", "title", "title", "v", "x", "v", "t"],
        "VariableExpr": ["$x", "$a", "$v", "$q", "$q", "$q"],
        "LiteralExpr": [
            '"published"', "2020", "[ 1, 2 ]", '"é"', "2", '"x"', "1", "2.5", 'date( "x" )',
        ],
        "NowExpr": ["now( )"],
        "TextSearchExpr": ['search( $p.title , "é" )', "bm25($p.t, $q)"],
        "NearestExpr": ["nearest($p.v, $v)", "nearest($p.v, $q)"],
        "FuzzyExpr": ["fuzzy($p.x, $q, 2)"],
        "RrfExpr": ["rrf( nearest($p.v, $q), bm25($p.t, $q) )"],
        "AggregateExpr": ["count( $a )"],
        "AliasExpr": ["t", "b", "c"],
        "Projection": [
            "$p.title as t", "count( $a )", "nearest($p.v, $v)", "fuzzy($p.x, $q, 2)",
        ],
        "Ordering": ["rrf( nearest($p.v, $q), bm25($p.t, $q) )", "t desc"],
        "InsertStatement": ["Paper"],
        "UpdateStatement": ["Paper"],
        "DeleteStatement": ["Paper"],
    }  # fmt: skip


def test_only_the_true_of_a_bare_text_search_has_no_span() -> None:
    lost = [(name, field) for name, field, span in spans(parse_query(QUERY)) if span == NO_SPAN]

    assert lost == [("LiteralExpr", "span")]
    assert all(span != NO_SPAN for _, _, span in spans(parse_schema(SCHEMA)))


def test_a_tree_keeps_its_text_and_name() -> None:
    schema, query = parse_schema(SCHEMA, "a.pg"), parse_query(QUERY, "b.gq")

    assert (schema.name, schema.text) == ("a.pg", SCHEMA)
    assert (query.name, query.text) == ("b.gq", QUERY)
