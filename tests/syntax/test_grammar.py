"""The grammars as such: no conflicts, every terminal has a name, nothing is built before use."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import lark
import pytest

from omnigraph.syntax import parse_query, parse_schema
from omnigraph.syntax.query_builder import QueryBuilder
from omnigraph.syntax.query_words import QUERY_WORDS
from omnigraph.syntax.schema_builder import SchemaBuilder
from omnigraph.syntax.schema_words import SCHEMA_WORDS
from omnigraph.syntax.unexpected import Vocabulary

LANGUAGES = [
    ("schema.lark", SchemaBuilder, SCHEMA_WORDS),
    ("query.lark", QueryBuilder, QUERY_WORDS),
]


def build(file_name: str) -> lark.Lark:
    text = resources.files("omnigraph.syntax").joinpath(file_name).read_text("utf-8")
    return lark.Lark(text, parser="lalr", lexer="contextual", debug=True)


@pytest.mark.slow
@pytest.mark.parametrize("file_name", ["schema.lark", "query.lark"])
def test_a_grammar_has_no_conflicts(file_name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Lark would settle a shift/reduce conflict in silence, and so change the language.

    One is meant: a `-` always continues the expression before it.
    """
    lark.logger.addHandler(caplog.handler)
    try:
        with caplog.at_level(logging.DEBUG, logger="lark"):
            build(file_name)
    finally:
        lark.logger.removeHandler(caplog.handler)

    found = {record.message for record in caplog.records if "conflict" in record.message}
    known = {"Shift/Reduce conflict for terminal MINUS: (resolving as shift)"}
    assert found == (known if file_name == "query.lark" else set())


@pytest.mark.parametrize(("file_name", "builder", "words"), LANGUAGES)
def test_every_terminal_has_a_name(file_name: str, builder: type, words: Vocabulary) -> None:
    grammar = build(file_name)
    terminals = {terminal.name for terminal in grammar.terminals} - set(grammar.ignore_tokens)

    assert terminals <= words.terminals.keys()
    assert {name for group, _ in words.groups for name in group} <= terminals


@pytest.mark.parametrize(("file_name", "builder", "words"), LANGUAGES)
def test_every_rule_has_a_method(file_name: str, builder: type, words: Vocabulary) -> None:
    """A rule without one would leave a Lark tree inside ours, a method without one is dead."""
    made = {
        str(rule.alias or rule.origin.name)
        for rule in build(file_name).rules
        if not rule.origin.name.startswith("_")
        and not (rule.options.expand1 and rule.alias is None)
    }

    assert made == {name for name in dir(builder) if not name.startswith("_")}


def test_importing_builds_nothing() -> None:
    """Neither pyarrow, nor Lance, nor Lark is needed to parse, whether the text is valid or not."""
    code = (
        "import sys, omnigraph, omnigraph.syntax as syntax\n"
        "heavy = {'lark', 'pyarrow', 'lance', 'numpy', 'hypothesis'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
        "syntax.parse_schema('node A { name: String @key }')\n"
        "try: syntax.parse_query('query q() { match { $p: A } retrun { $p } }')\n"
        "except omnigraph.errors.ParseError as error: assert 'return' in str(error), error\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads_may_share_the_parsers() -> None:
    query = "query q() { match { $p: P { x: 1 } $p e{1,2} $q } return { count($p) as n } limit 3 }"
    schema = (
        'node A @x { p: enum(a, b)? @index @range(p, -1..) } edge E: A -> A @card(0..1) @y("z")'
    )

    def parse_both(_: int) -> str:
        return repr((parse_query(query), parse_schema(schema)))

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(parse_both, range(64)))) == 1


@pytest.mark.slow
def test_first_texts_of_many_threads_are_parsed_by_one_grammar() -> None:
    """Each loading its own is slow."""
    code = """
import gc, sys
from concurrent.futures import ThreadPoolExecutor
from omnigraph.syntax import parse_query
sys.setswitchinterval(1e-5)
gc.callbacks.append(lambda phase, info: sum(range(100)))
gc.set_threshold(50)
text = "query q() { match { $p: Person } return { $p.name } }"
with ThreadPoolExecutor(8) as pool:
    list(pool.map(parse_query, [text] * 8))
from omnigraph.syntax.grammar import Grammar
print(sum(isinstance(each, Grammar) for each in gc.get_objects()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
