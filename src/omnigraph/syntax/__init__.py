"""Syntax: `.pg` and `.gq` text to trees with spans, and back to text.

In goes text, out comes a `SchemaTree` or a `QueryTree`, or a `ParseError` that shows the line. The
trees hold what was written and no judgement about it; catalog/ and compiler/ judge.

    parse_schema.py   parse_query.py     the two ways in
    parser.py                            source → grammar → builder, errors with their source
    source.py                            size, Unicode, nesting; blanks comments
    schema.lark       query.lark         the grammars; tables.py makes tables of them, by Lark
    grammar.py                           runs tables; tells what could have stood at a failure
    schema_builder.py query_builder.py   grammar rules → tree nodes
    literals.py                          strings and numbers
    schema_tree.py    query_tree.py      the trees; spanned.py their base
    statement_tree.py  statement_builder.py  the statements of a mutation
    unexpected.py                        failures as error messages
    query_habits.py                      what is written out of habit from Cypher, GQL or SQL
    words.py                             the words that a grammar spells out
    schema_words.py   query_words.py     the words and hints of each language
                      query_habits.py    what other languages write; query_places.py, by place
    print_schema.py   print_query.py     trees → canonical text; write_literals.py their literals
"""

from __future__ import annotations

from omnigraph.syntax.parse_query import parse_query
from omnigraph.syntax.parse_schema import parse_schema
from omnigraph.syntax.query_tree import QueryTree
from omnigraph.syntax.schema_tree import SchemaTree
from omnigraph.syntax.source import NESTING_MAX, SOURCE_BYTES_MAX

__all__ = [
    "NESTING_MAX",
    "SOURCE_BYTES_MAX",
    "QueryTree",
    "SchemaTree",
    "parse_query",
    "parse_schema",
]
