"""Parse a schema file: `.pg` text to a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.source_text import SourceText
from omnigraph.syntax.parser import Parser
from omnigraph.syntax.schema_builder import SchemaBuilder
from omnigraph.syntax.schema_tree import SchemaTree

if TYPE_CHECKING:
    from omnigraph.syntax.unexpected import Vocabulary


def _find_words() -> Vocabulary:
    from omnigraph.syntax.schema_words import SCHEMA_WORDS

    return SCHEMA_WORDS


SCHEMA_PARSER = Parser("schema.lark", SchemaBuilder(), _find_words)


def parse_schema(text: str, name: str = "schema.pg") -> SchemaTree:
    """Read every declaration of a file. `name` is what errors call the file.

    Raises:
        ParseError: The text does not follow the grammar. Knows where, and shows the line.
    """
    return SchemaTree(SCHEMA_PARSER.parse(SourceText(name, text)), text, name)
