"""Unexpected: the error message for text that does not follow the grammar.

A `Vocabulary` is what one language adds: names for terminals, names that depend on the position,
and hints. schema_words.py and query_words.py hold the two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError, did_you_mean
from omnigraph.source_text import Span
from omnigraph.syntax.grammar import Rejected, state_behind
from omnigraph.types import Scalar

if TYPE_CHECKING:
    from omnigraph.syntax.grammar import Grammar

END_OF_TEXT = ""

_WORD = re.compile(
    r"""
    "[^"\\]*+(?:\\.[^"\\]*+)*+"?
    | [0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?
    | \$?[A-Za-z_][A-Za-z0-9_]*
    | @\s*[A-Za-z_][A-Za-z0-9_]*
    | >= | <= | != | == | <> | -> | => | && | \|\| | \.\. | --
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_LAST_WORD = re.compile(r"([$@]?[A-Za-z0-9_]+)\s*\Z")
PUNCTUATION = {
    "OPT": "`?`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "DOT": "`.`",
    "LESS": "`<`",
    "MORE": "`>`",
    "EQUAL": "`=`",
    "DOTDOT": "`..`",
    "STAR": "`*`",
    "__ANON_0": "`->`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "LBRACE": "`{`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "RBRACE": "`}`",
}
"""The terminals of single characters; each language has some of them."""

_SHOWN_MAX = 40
_BEFORE_MAX = 200


@dataclass(frozen=True, slots=True)
class Situation:
    """What a hint may look at: the word found, the text before it, and what was expected."""

    found: str
    before: str
    expected: frozenset[str]
    names: tuple[str, ...]

    @property
    def previous(self) -> str:
        """The word before, or nothing when something else stands between."""
        word = _LAST_WORD.search(self.before)
        return word[1] if word else ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What messages call the terminals of one language, and its hints.

    `groups` name sets of terminals that stand together (every way to start an expression), the
    largest first. `prefixes` are beginnings of valid texts, each with a name for its last terminal
    at that point. `terminals` name the rest, in the order in which messages list them.
    """

    groups: tuple[tuple[frozenset[str], str], ...]
    prefixes: tuple[tuple[str, str], ...]
    terminals: Mapping[str, str]
    hints: tuple[Callable[[Situation], str | None], ...]
    messages: tuple[Callable[[Situation], str | None], ...] = ()
    """What says more than the list of what was expected."""


def describe(grammar: Grammar, vocabulary: Vocabulary, text: str, rejected: Rejected) -> ParseError:
    """Turn a rejection into the error that a person reads."""
    word = _WORD.match(text, rejected.offset)
    found = word[0] if word else END_OF_TEXT
    # What is missing at the end belongs behind the last word, not behind a blank line.
    start = rejected.offset if found else len(text.rstrip())
    span = Span(start, start + len(found))
    if found.startswith('"') and not _is_closed(found):
        return ParseError(
            "the string is not closed",
            span=Span(start, start + 1),
            hint='it ends with `"`; inside it, write `\\"`',
        )
    names = _name_expected(grammar, vocabulary, rejected.expected)
    before = text[max(0, start - _BEFORE_MAX) : start]
    situation = Situation(found, before, frozenset(rejected.expected), tuple(names))
    message = _first(vocabulary.messages, situation)
    return ParseError(
        message or f"expected {_either(names)} but found {_show(found)}",
        span=span,
        hint=_first(vocabulary.hints, situation),
    )


def name_expected(
    grammar: Grammar, vocabulary: Vocabulary, expected: Mapping[str, int]
) -> dict[str, str | None]:
    """The name that its place gives each terminal; None where it has none but its own."""
    by_state = _names_by_state(grammar, vocabulary.prefixes)
    return {terminal: by_state.get(state) for terminal, state in expected.items()}


def _first(
    answers: Iterable[Callable[[Situation], str | None]], situation: Situation
) -> str | None:
    return next(filter(None, (answer(situation) for answer in answers)), None)


def _name_expected(
    grammar: Grammar, vocabulary: Vocabulary, expected: Mapping[str, int]
) -> list[str]:
    by_state = _names_by_state(grammar, vocabulary.prefixes)
    names: list[str] = []
    left = dict(expected)
    if len(left) > 1:
        left.pop("OPT", None)  # A `?` may follow every type: true, and never what was meant.
    for terminals, name in vocabulary.groups:
        if terminals <= left.keys():
            names.append(name)
            left = {terminal: left[terminal] for terminal in left.keys() - terminals}
    order = [*vocabulary.terminals, *left]
    names += (
        by_state.get(left[terminal]) or vocabulary.terminals[terminal]
        for terminal in sorted(left, key=order.index)
    )
    return list(dict.fromkeys(names))


@cache
def _names_by_state(grammar: Grammar, prefixes: tuple[tuple[str, str], ...]) -> dict[int, str]:
    return {state_behind(grammar, text): name for text, name in prefixes}


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _show(found: str) -> str:
    if found == END_OF_TEXT:
        return "the end of the text"
    if not found.isprintable() and len(found) == 1:
        return f"the character U+{ord(found):04X}"
    if found == "`":
        return "a backtick"
    short = found if len(found) <= _SHOWN_MAX else found[:_SHOWN_MAX] + "…"
    return f"`{re.sub(r'[^ -~]', _printable, short)}`"


def _printable(character: re.Match[str]) -> str:
    return character[0] if character[0].isprintable() else " "


def _is_closed(string: str) -> bool:
    return re.fullmatch(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', string, re.DOTALL) is not None


def hint_character(situation: Situation) -> str | None:
    """Hints about characters that neither language knows."""
    match situation.found:
        case "#" | "--":
            return "comments start with //"
        case "'" | "`" | "\u2018" | "\u2019" | "\u201c" | "\u201d":
            return 'strings are written in double quotes: "…"'
        case ";":
            return "nothing ends or separates statements; leave out the `;`"
        case "→" | "=>":
            return "write `->`"
        case character if len(character) == 1 and unicodedata.category(character) in ("Zs", "Cf"):
            return "this looks like a space; replace it by a plain one"
    return None


def hint_number(situation: Situation) -> str | None:
    """Hints about numbers in a form that neither language has."""
    if re.fullmatch(r"[0-9.]+[eE][0-9]*", situation.found):
        return "numbers have no exponent form; write all digits"
    if situation.found == "." and "FLOAT" in situation.expected:
        return "a number starts with a digit: `0.5`"
    return None


def hint_case(situation: Situation) -> str | None:
    """Hints about names that start with a letter of the wrong case."""
    word = situation.found
    if re.match(r"[a-z]", word) and "TYPE_NAME" in situation.expected:
        return f"type names start with an uppercase letter: `{word[0].upper()}{word[1:]}`"
    if re.match(r"\$[A-Z]", word) and "VAR" in situation.expected:
        return f"variables start with a lowercase letter: `${word[1].lower()}{word[2:]}`"
    if re.match(r"[A-Z]", word) and "IDENT" in situation.expected:
        lower = f"`{word[0].lower()}{word[1:]}`"
        for name in situation.names:
            if name.endswith(" name") and name != "a type name":
                return f"{name.split(' ', 1)[1]}s start with a lowercase letter: {lower}"
    return None


def hint_type(situation: Situation) -> str | None:
    """Hints about the names that other languages have for our types."""
    if "BASE_TYPE" not in situation.expected:
        return None
    ours = _TYPES_ELSEWHERE.get(situation.found.lower())
    return f"did you mean `{ours}`?" if ours else did_you_mean(situation.found, _TYPES)


_TYPES = [scalar.value for scalar in Scalar if scalar is not Scalar.VECTOR]
_TYPES_ELSEWHERE = {
    "str": "String", "string": "String", "text": "String", "char": "String", "varchar": "String",
    "uuid": "String", "id": "String", "json": "String",
    "bool": "Bool", "boolean": "Bool",
    "int": "I64", "integer": "I64", "long": "I64", "bigint": "I64", "i32": "I32", "i64": "I64",
    "uint": "U64", "u32": "U32", "u64": "U64",
    "float": "F64", "double": "F64", "number": "F64", "decimal": "F64", "f32": "F32", "f64": "F64",
    "date": "Date", "datetime": "DateTime", "timestamp": "DateTime", "time": "DateTime",
    "bytes": "Blob", "binary": "Blob", "blob": "Blob", "vector": "Vector(n)",
    "embedding": "Vector(n)",
}  # fmt: skip


def quote_words(words: Iterable[str]) -> dict[str, str]:
    """Name each terminal `_WORD` by its word in backticks."""
    return {f"_{word.upper()}": f"`{word}`" for word in words}
