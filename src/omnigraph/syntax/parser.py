"""Parser: source → grammar → builder for one language, with errors that quote the source."""

from __future__ import annotations

from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError
from omnigraph.source_text import SourceText
from omnigraph.syntax.grammar import Rejected, list_patterns, load_grammar, run_grammar
from omnigraph.syntax.source import admit, printable
from omnigraph.syntax.unexpected import Vocabulary, describe
from omnigraph.syntax.words import Words, read_words


@dataclass(frozen=True, slots=True)
class Parser:
    """One language: its grammar file, what to build, and how to speak of failures."""

    grammar_file: str
    builder: object
    vocabulary: Vocabulary

    def parse(self, source: SourceText) -> Any:
        """Return what the builder makes of the text.

        Raises:
            ParseError: The text may not be parsed, or does not follow the grammar.
        """
        try:
            text = admit(source.text)
            grammar = load_grammar(self.grammar_file, self.builder)
            try:
                return run_grammar(grammar, text)
            except Rejected as rejected:
                raise describe(grammar, self.vocabulary, text, rejected) from None
        except ParseError as error:
            raise error.with_source(printable(source)) from None

    def list_words(self) -> Words:
        """The words that the grammar knows."""
        return read_words(list_patterns(load_grammar(self.grammar_file, self.builder)))
