"""Parser: source → grammar → builder for one language, with errors that quote the source."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError
from omnigraph.source_text import SourceText
from omnigraph.syntax.grammar import Rejected, list_starts, load_grammar, run_grammar
from omnigraph.syntax.source import admit, printable

if TYPE_CHECKING:
    from omnigraph.syntax.grammar import Grammar
    from omnigraph.syntax.unexpected import Vocabulary
    from omnigraph.syntax.words import Words


@dataclass(frozen=True, slots=True)
class Parser:
    """One language: its grammar file, what to build, and how to speak of failures.

    The words for failures come last: a text that follows the grammar never needs them.
    """

    grammar_file: str
    builder: object
    find_vocabulary: Callable[[], Vocabulary]

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
                from omnigraph.syntax.unexpected import describe

                raise describe(grammar, self.find_vocabulary(), text, rejected) from None
        except ParseError as error:
            raise error.with_source(printable(source)) from None

    def list_words(self) -> Words:
        """The words that the grammar knows."""
        return _list_words(load_grammar(self.grammar_file, self.builder))

    def list_expected(self, beginning: str) -> dict[str, str | None] | None:
        """The terminals that may follow the beginning of a text, with a name where one fits.

        None when no text begins like this.
        """
        from omnigraph.syntax.unexpected import name_expected

        vocabulary = self.find_vocabulary()
        try:
            text = admit(beginning)
            grammar = load_grammar(self.grammar_file, self.builder)
            run_grammar(grammar, text)
        except Rejected as rejected:
            if rejected.offset < len(text):
                return None
            return name_expected(grammar, vocabulary, rejected.expected)
        except ParseError:
            return None
        return name_expected(grammar, vocabulary, list_starts(grammar))


@cache
def _list_words(grammar: Grammar) -> Words:
    from omnigraph.syntax.words import read_words

    return read_words(grammar.list_patterns())
