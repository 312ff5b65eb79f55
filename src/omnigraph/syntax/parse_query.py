"""Parse a query file: `.gq` text to a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.source_text import SourceText
from omnigraph.syntax.parser import Parser
from omnigraph.syntax.query_builder import QueryBuilder
from omnigraph.syntax.query_tree import QueryTree

if TYPE_CHECKING:
    from omnigraph.syntax.unexpected import Vocabulary


def _find_words() -> Vocabulary:
    from omnigraph.syntax.query_words import QUERY_WORDS

    return QUERY_WORDS


QUERY_PARSER = Parser("query.lark", QueryBuilder(), _find_words)


def parse_query(text: str, name: str = "query.gq") -> QueryTree:
    """Read every `query` of a file. `name` is what errors call the file.

    Raises:
        ParseError: The text does not follow the grammar. Knows where, and shows the line.
    """
    return QueryTree(QUERY_PARSER.parse(SourceText(name, text)), text, name)
