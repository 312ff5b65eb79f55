"""Parse a schema file: `.pg` text to a tree."""

from __future__ import annotations

from omnigraph.source_text import SourceText
from omnigraph.syntax.parser import Parser
from omnigraph.syntax.schema_builder import SchemaBuilder
from omnigraph.syntax.schema_tree import SchemaTree
from omnigraph.syntax.schema_words import SCHEMA_WORDS

SCHEMA_PARSER = Parser("schema.lark", SchemaBuilder(), SCHEMA_WORDS)


def parse_schema(text: str, name: str = "schema.pg") -> SchemaTree:
    """Read every declaration of a file. `name` is what errors call the file.

    Raises:
        ParseError: The text does not follow the grammar. Knows where, and shows the line.
    """
    return SchemaTree(SCHEMA_PARSER.parse(SourceText(name, text)), text, name)
