"""Hover shows the type of what is under the cursor; a definition leads to where it is declared."""

from __future__ import annotations

import pytest

from omnigraph import build_catalog, parse_schema
from omnigraph.lsp.define import define_in_query, define_in_schema
from omnigraph.lsp.hover import hover_query, hover_schema
from tests.lsp.cursor import at_cursor

SCHEMA = """\
interface Named { name: String @description("What it is called.") }
node Author implements Named { slug: String @key  born: I32? }
node Paper { doi: String @key  title: String @index }
edge Wrote: Author -> Paper { position: I32? }
edge Cites: Paper -> Paper
"""
TREE = parse_schema(SCHEMA)
CATALOG = build_catalog(TREE)


def hover(marked: str) -> str | None:
    text, offset = at_cursor(marked)
    found = hover_query(text, offset, CATALOG)
    return None if found is None else found.text.removeprefix("```omnigraph\n").replace("\n```", "")


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("query q() { match { $a wrote $p } return { $|p.title } }", "node $p: Paper"),
        ("query q() { match { $a wrote $p } return { $p.ti|tle } }", "Paper.title: String @index"),
        ("query q() { match { $a wrote $p } return { $a.sl|ug } }", "Author.slug: String @key"),
        ("query q() { match { $a: Named } return { $a.na|me } }",
         "Named.name: String\nWhat it is called."),
        ("query q($n|: String?) { match { $a: Author } return { $n } }", "parameter $n: String?"),
        ("query q() { match { $a $w|:wrote $p } return { $w.position } }", "edge $w: Wrote"),
        ("query q() { match { $p $t:cites{1,3} $q } return { hops($|t) } }", "path $t along Cites"),
        ("query q() { match { $p $t:shortest cites $q  $|t is null } }", "path $t along Cites"),
        ("query q() { match { $p $e:cites{1,1} $q  $|e.id } }", "edge $e: Cites"),
        ("query q() { match { $a: Author { sl|ug: 1 } } }", "Author.slug: String @key"),
        ("query q() { update Author set { bo|rn: 1 } where slug = 1 }", "Author.born: I32?"),
        ("query q() { delete Wrote where pos|ition = 1 }", "Wrote.position: I32?"),
        ("query q($f: { from: I32? }) { match { $a: Author  $a.born > $f.fr|om } }", "from: I32?"),
        ("query q() { top 1 by $p.doi as $s| { $p: Paper } match { $p cites $_ } }", "score $s"),
        ("query q() { insert Author { slug: 1 } as $n|ew return { $new } }", "node $new: Author"),
    ],
)  # fmt: skip
def test_hover_says_what_it_is(marked: str, expected: str) -> None:
    assert hover(marked) == expected


def test_hover_shows_types_edges_functions_and_annotations() -> None:
    author = hover("query q() { match { $a: Auth|or } }") or ""
    wrote = hover("query q() { match { $a wro|te $p } }") or ""

    assert author.startswith("node Author {\n")
    assert "    born: I32?" in author
    assert wrote.startswith("edge Wrote: Author -> Paper {")
    assert (hover("query q() { match { low|er($a.x) = 1 } }") or "").startswith(
        "lower(String) → String"
    )
    assert (hover("query q() @desc|ription(1) {}") or "").startswith("@description(")


@pytest.mark.parametrize(
    "marked",
    [
        "query q() { mat|ch { $a: Author } }",
        "query q() { match { $a: Nob|ody } }",
        'query q() { match { $a: Author { slug: "sl|ug" } } }',
        "query q() { match { $a: Author  $a.nothi|ng = 1 } }",
        "query q() { // Auth|or\n }",
        "|",
    ],
)
def test_hover_says_nothing_where_nothing_is_known(marked: str) -> None:
    assert hover(marked) is None


def test_hover_in_a_schema() -> None:
    text, offset = at_cursor(SCHEMA.replace("edge Wrote: Author", "edge Wrote: Aut|hor"))
    found = hover_schema(text, offset, CATALOG)

    assert found is not None
    assert "node Author {" in found.text


def define(marked: str) -> str | None:
    """The line that a definition leads to, from where on."""
    text, offset = at_cursor(marked)
    found = define_in_query(text, offset, CATALOG, TREE)
    if found is None:
        return None
    source = SCHEMA if found.is_in_schema else text
    return source[found.span.start :].splitlines()[0]


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("query q() { match { $a: Auth|or } }", "Author implements Named {"),
        ("query q() { match { $a wro|te $p } }", "Wrote: Author -> Paper"),
        ("query q() { match { $a wrote $p  $p.ti|tle = 1 } }", "title: String @index }"),
        ("query q() { match { $a: Author  $a.na|me = 1 } }", 'name: String @description("'),
        ("query q() { delete Wr|ote where position = 1 }", "Wrote: Author -> Paper"),
        ("query q() { match { $a: Author } return { $|a } }", "$a: Author }"),
        ("query q($x: I32) { match { $a: Author { born: $x| } } }", "$x: I32)"),
    ],
)
def test_a_definition_is_where_it_is_declared(marked: str, expected: str) -> None:
    assert (define(marked) or "").startswith(expected)


def test_a_definition_in_a_schema_and_none_of_a_function() -> None:
    text, offset = at_cursor(SCHEMA.replace("-> Paper {", "-> Pa|per {"))
    found = define_in_schema(text, offset, TREE)

    assert found is not None
    assert text[found.span.start :].startswith("Paper { doi")
    assert define("query q() { match { low|er($a.x) = 1 } }") is None


def test_a_node_and_an_edge_of_one_name_are_told_apart() -> None:
    schema = "node Review { slug: String @key }\nedge Review: Review -> Review { stars: I32? }\n"
    tree = parse_schema(schema)
    text, offset = at_cursor("query q() { match { $a: Review  $a rev|iew $b } }")

    found = define_in_query(text, offset, build_catalog(tree), tree)

    assert found is not None
    assert schema[found.span.start :].startswith("Review: Review")
