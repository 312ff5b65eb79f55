"""Whatever the text, a parser answers with a tree or with a ParseError in our words.

`OMNIGRAPH_FUZZ_EXAMPLES` sets how many texts are tried in all; a failure prints the seed and the
text. Every tree that comes out is printed and parsed again.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.errors import ParseError
from omnigraph.syntax import parse_query, parse_schema
from omnigraph.syntax.print_query import print_query
from omnigraph.syntax.print_schema import print_schema
from omnigraph.testing.strategies import HOSTILE_NAMES, HOSTILE_VARIANTS
from tests.depth import depth

EXAMPLES = int(os.environ.get("OMNIGRAPH_FUZZ_EXAMPLES", depth(6_000, 1_000_000)))
BATCHES = depth(1, 4)

LARK_WORDS = re.compile(
    r"Token\(|__ANON|Expected one of|No terminal|Unexpected|lark|\b[A-Z_]{2,}_KW\b"
    r"|\b(LBRACE|RBRACE|LPAR|RPAR|LSQB|RSQB|IDENT|TYPE_NAME|VAR|COMMA|COLON|STRING|INT|FLOAT)\b"
)

SCHEMAS = [
    "interface Named { name: String @index }",
    'node Author @description("x") implements Named { slug: String @key tags: [String]? }',
    'node P { v: Vector(3) @embed(text, model="m") k: enum(a, 3d, b-c)? @range(y, -1.5..2) }',
    'edge Wrote: A -> P @card(0..1) @x { at: Date? @unique(src, dst) @check(n, "^a\\\\d") }',
    "// c\nnode A { } /* d */ edge E: A -> A @card(1..*)",
]
QUERIES = [
    "query q($a: String, $b: [I32]?) { match { $p: P { x: $a, y: 1 } } return { $p.x as n } }",
    'query q() @description("d") { match { $a e{1,3} $b not { $b $w: <f> $_ } } return { $a } }',
    'query q() { match { $p.x >= 2.5 $p.t contains "a" search($p.t, $q) } return { count($p), } }',
    "query q() { match { $p: P } return { $p } order { rrf(nearest($p.v, $q), bm25($p.t, $q)) } "
    "limit 3 }",
    'query m() { insert P { a: 1 b: "x", c: now() } update P set { d: true } where e != [1, 2] '
    'delete E where from = date("x") }',
    "query q($n: I32 = -1, $r: { a: String, b: [F32]? }?) { top $n by nearest($p.v, $q) as $s "
    "{ $p: P } match { optional { $p e{1,2 where w > 1} $o } either { $p f $x } or { $x f $p } } "
    "return distinct { $p { * }, $s, collect(distinct $o { a, b } order $s desc) as l, type($x) } "
    "having { l is not null } order { $s } limit $n offset 2 }",
    "query q() { match { $a $t:all shortest <e>{1, where a in [1, -2]} $b $a shortest e by w $c "
    'not ($a.x = 1 or $b.y is null and lower($a.z) ends_with "s") } return { hops($t) as h, '
    "case when $a.x % 2 = 1 then -$a.x * 2 else round($a.x / 3, 1) end as c } }",
    "query m($rows: [{ k: String, n: I32? }]) { for $r in $rows { upsert P { k: $r.k, n: $r.n + 1 "
    "} as $x } return { $x { * }, $r.n } }",
    "query m() { match { $a $e:knows $b } update $e set { w: coalesce($e.w, 0) + 1, d: null } "
    "return distinct { $a.x } }",
    'query m() { delete E where from = "a" and (to = "b" or w is null) as $x return { $x.w } }',
]
TOKENS = [
    *HOSTILE_NAMES, *HOSTILE_VARIANTS, *"{}()[]<>=:,.?@$*-#;'\"\\/!&|`", "..", "->", ">=", "!=",
    "//", "/*", "*/", "\n", "$a", "$_", "$P", "Paper", "String", "Vector", "Vector(3)", "I32", "7",
    "0.5", "1e5", "99999999999999999999", '"x"', '"\\q"', '"', "@key", "@card(0..1)", "@index(",
    "optional {", "either {", "or", "and", "not (", "is null", "in [", "case when", "then", "end",
    "top 3 by", "as $s", "collect(", "distinct", "having {", "offset", "upsert", "for $r in",
    "all shortest", "{1, where", "+", "%", "null",
    "\u00a0", "\ufeff", "é", "\0", "\ud800", "😀", "\x1b", "\u2028",
]  # fmt: skip


def token_soup(chance: random.Random, corpus: list[str]) -> str:
    """Words of the languages in any order, behind the beginning of a valid text."""
    glue = chance.choice([" ", " ", ""])
    text = chance.choice(corpus)
    return text[: chance.randrange(len(text))] + glue.join(
        chance.choices(TOKENS, k=chance.randint(0, 12))
    )


def mutate(chance: random.Random, corpus: list[str]) -> str:
    """A valid text with a few pieces dropped, doubled, moved or replaced."""
    words = re.findall(r'"[^"]*"|[$@]?\w+|\s+|.', chance.choice(corpus))
    for _ in range(chance.randint(1, 3)):
        here, there = chance.randrange(len(words)), chance.randrange(len(words))
        match chance.randrange(5):
            case 0:
                words[here] = ""
            case 1:
                words[here] *= 2
            case 2:
                words[here], words[there] = words[there], words[here]
            case 3:
                words[here] = chance.choice(TOKENS)
            case 4:
                words[here] = words[here][: chance.randint(0, len(words[here]))]
    return "".join(words)


def random_unicode(chance: random.Random, corpus: list[str]) -> str:
    """Any characters, alone or dropped into a valid text."""
    noise = "".join(
        chr(
            chance.choice(
                [chance.randrange(128), chance.randrange(0x3000), chance.randrange(0x110000)]
            )
        )
        for _ in range(chance.randint(1, 12))
    )
    if chance.random() < 0.5:
        return noise
    text = chance.choice(corpus)
    place = chance.randrange(len(text))
    return text[:place] + noise + text[place + chance.randint(0, 3) :]


def answer(parse: Callable[[str], Any], write: Callable[[Any], str], text: str) -> bool:
    """Parse `text` and check what comes back; tell whether it was a tree."""
    try:
        tree = parse(text)
    except ParseError as error:
        check_error(error, text)
        return False
    again = parse(write(tree))
    assert again == tree
    assert repr(again) == repr(tree)
    return True


def check_error(error: ParseError, text: str) -> None:
    """It speaks our words, points into the text and can be written to a file."""
    error.render().encode()
    # What was found is quoted from the text, so only the words before it are ours.
    assert not LARK_WORDS.search(str(error).split(" but found ")[0])
    assert error.source is not None
    assert error.span is None or 0 <= error.span.start <= error.span.end <= len(text)


@pytest.mark.slow
@pytest.mark.parametrize("make", [token_soup, mutate, random_unicode])
@pytest.mark.parametrize(
    ("parse", "write", "corpus"),
    [(parse_schema, print_schema, SCHEMAS), (parse_query, print_query, QUERIES)],
    ids=["schema", "query"],
)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_any_text_is_a_tree_or_a_parse_error(
    make: Callable[[random.Random, list[str]], str],
    parse: Callable[[str], Any],
    write: Callable[[Any], str],
    corpus: list[str],
    batch: int,
) -> None:
    examples = -(-EXAMPLES // (6 * BATCHES))
    trees = 0
    for seed in range(batch * examples, (batch + 1) * examples):
        text = make(random.Random(seed), corpus)
        try:
            trees += answer(parse, write, text)
        except Exception as failure:
            failure.add_note(f"seed {seed}, text {text!r}")
            raise

    if make is mutate:
        assert trees > 0, "no mutate text was valid: the fuzzing has lost its edge"


@pytest.mark.parametrize("text", SCHEMAS)
def test_the_schemas_to_mutate_are_valid(text: str) -> None:
    assert answer(parse_schema, print_schema, text)


@pytest.mark.parametrize("text", QUERIES)
def test_the_queries_to_mutate_are_valid(text: str) -> None:
    assert answer(parse_query, print_query, text)
