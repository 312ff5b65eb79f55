"""How errors speak of the query grammar: names for what was expected, and hints."""

from __future__ import annotations

import re

from omnigraph.errors import did_you_mean
from omnigraph.syntax.unexpected import (
    PUNCTUATION,
    Situation,
    Vocabulary,
    hint_case,
    hint_character,
    hint_number,
    hint_type,
    quote_words,
)

_LITERALS = frozenset({"STRING", "INT", "FLOAT", "BOOL", "DATE", "DATETIME", "LSQB", "MINUS"})
_VALUES = _LITERALS | {"VAR", "NOW"}
_RANKINGS = frozenset({"NEAREST", "BM25", "RRF"})
_SEARCHES = frozenset({"SEARCH", "FUZZY", "MATCH_TEXT"})
_ATOMS = (_LITERALS - {"MINUS"}) | _RANKINGS | {
    "NOW", "AGGREGATE", "IDENT", "NULL", "FUNCTION", "CASE", "LPAR",
}  # fmt: skip
_SUMS = _ATOMS | {"VAR", "MINUS"}
_EXPRESSIONS = _SUMS | _SEARCHES
_CONDITIONS = _EXPRESSIONS | {"NOT_TEST"}
_SYMBOLS = frozenset({"COMPARE", "LESS", "MORE"})
_TESTS = _SYMBOLS | {"WORD_OP", "IS_NULL"}
_SIGNS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})

_ABSENT = {
    "&&": "write `and`; clauses side by side all have to hold as well",
    "||": "write `or`",
    "distinct": "there is no `distinct`; group with an aggregate instead",
    "group": "there is no `group`; every projection beside an aggregate is a group key",
    "having": "there is no `having`; filter the rows that come back",
    "offset": "there is no `offset`; filter on the order key instead",
    "skip": "there is no `skip`; filter on the order key instead",
    "optional": "there is no optional match; run a second query",
    "by": "the keys go in braces: `order { … }`",
    "where": "filters stand in `match`, beside the pattern",
    "==": "equality is a single `=`",
    "<>": "write `!=`",
    "!": "`not ( … )` negates a test, `not { … }` asks that a pattern does not exist",
    "*": "name the properties that you want",
}
_FUNCTIONS = frozenset({
    "not", "now", "nearest", "search", "fuzzy", "match_text", "bm25", "rrf", "count", "sum", "avg",
    "min", "max", "date", "datetime",
})  # fmt: skip
_KEYWORDS = (
    "query", "match", "return", "order", "limit", "insert", "update", "delete", "set", "where",
    "as",
)  # fmt: skip
_JOINING = ("and", "or", "when", "then", "else")


def _hint_absent(situation: Situation) -> str | None:
    """What is left out on purpose, whether found here or read as a name just before."""
    after_where = "_INSERT" in situation.expected and "_MATCH" not in situation.expected
    if after_where and situation.found in (",", "and", "or", "&&", "||"):
        return "`where` takes a single comparison"
    if situation.found in _WORD_OPERATORS and situation.expected >= _SYMBOLS:
        return "`where` compares with `=`, `!=`, `<`, `<=`, `>` or `>=`"
    for word in (situation.found.lower(), situation.previous.lower()):
        if word in _ABSENT:
            return _ABSENT[word]
    if situation.found == "=" and situation.before.rstrip().endswith("="):
        return _ABSENT["=="]
    return None


_WORD_OPERATORS = ("contains", "starts_with", "ends_with", "in")


def _hint_condition(situation: Situation) -> str | None:
    """Where a condition was begun and is none."""
    if situation.found in (",", ")") and re.search(r"\bin\s*\([^()]*\Z", situation.before):
        return "write the list in square brackets: expected ["
    if situation.found == ">" and situation.before.rstrip().endswith("<"):
        return _ABSENT["<>"]
    if situation.previous == "not":
        return "`not ( … )` negates a test, `not { … }` asks that a pattern does not exist"
    if situation.found == "null":
        return "test with `is null`; to leave a property empty, leave it out"
    if "IS_NULL" in situation.expected and situation.found in ("or", "and", ")", "}", "then"):
        return "compare it: `… = true`"
    return None


def _hint_body(situation: Situation) -> str | None:
    if situation.found == "}":
        if "_RETURN" in situation.expected:
            return "a read needs `return { … }` after its `match { … }`"
        if "_WHERE" in situation.expected:
            return "say which rows: `where property = value`"
        if situation.expected == {"COMMA"}:
            return "hop bounds are written `{min,max}`"
    if situation.found == "return" and "_MATCH" in situation.expected:
        return "a read starts with `match { … }`"
    if situation.found == "order" and re.search(r"limit\s+[0-9]+\s*\Z", situation.before):
        return "`order` comes before `limit`"
    if situation.found == "enum" and "BASE_TYPE" in situation.expected:
        return "a parameter cannot be an enum; use `String`"
    if situation.expected == {"BASE_TYPE"}:
        return "a list holds scalars only"
    return None


def _hint_edge(situation: Situation) -> str | None:
    if "an edge name" in situation.names and re.match(r"[A-Z]", situation.found):
        lower = situation.found[0].lower() + situation.found[1:]
        return f"edge names in queries start lowercase: `{lower}`"
    return None


def _hint_function(situation: Situation) -> str | None:
    if situation.previous in _FUNCTIONS:
        return f"`{situation.previous}` is a name here; as a function it is followed by `(`"
    return None


def _hint_keyword(situation: Situation) -> str | None:
    expected = {word for word in _KEYWORDS if f"_{word.upper()}" in situation.expected}
    return did_you_mean(situation.found, expected) if situation.found.isidentifier() else None


QUERY_WORDS = Vocabulary(
    groups=(
        (_CONDITIONS | {"NOT"}, "a clause"),
        (_CONDITIONS, "an expression"),
        (_EXPRESSIONS, "an expression"),
        (_SUMS, "an expression"),
        (_ATOMS, "an expression"),
        (_VALUES, "a value"),
        (_LITERALS, "a literal"),
        (_TESTS | _SIGNS, "a comparison"),
        (_SYMBOLS | {"WORD_OP"}, "a comparison"),
        (_SYMBOLS, "a comparison"),
        (_SIGNS, "an operator"),
        (frozenset({"STAR", "SLASH", "PERCENT"}), "an operator"),
        (frozenset({"NEAREST", "BM25"}), "`nearest(…)` or `bm25(…)`"),
        (frozenset({"BASE_TYPE", "LSQB", "VECTOR"}), "a type"),
    ),
    prefixes=(
        ("query x", "a query name"),
        ("query q($x", "a parameter"),
        ("query q() { insert A { x", "a property name"),
        ("query q() { delete A where x", "a property name"),
        ("query q() { match { $a.x", "a property name"),
        ("query q() { match { $a x", "an edge name"),
        ("query q() { match { $a $b: x", "an edge name"),
        ("query q() { match { $a <x", "an edge name"),
        ("query q() { match { $a $b", "an edge variable"),
        ("query q() { match { $a: A } return { $a as x", "an alias"),
    ),
    terminals={
        **quote_words(_KEYWORDS),
        **quote_words(_JOINING),
        **dict.fromkeys(sorted(_SIGNS), "an operator"),
        "IS_NULL": "a comparison",
        "END": "`end`",
        "NOT_TEST": "a condition",
        "TYPE_NAME": "a type name",
        "IDENT": "a name",
        "VAR": "a variable",
        "BASE_TYPE": "a scalar type",
        **dict.fromkeys(sorted(_EXPRESSIONS - {"IDENT", "VAR", "LPAR", "MINUS"}), "an expression"),
        "NOT": "a clause",
        "STRING": "a string",
        "INT": "an integer",
        "QUERY_ANNOTATION": "`@description(…)` or `@instruction(…)`",
        "WORD_OP": "a comparison",
        "ORDER_DIR": "a direction",
        "COMPARE": "a comparison",
        "VECTOR": "a type",
        **PUNCTUATION,
    },
    hints=(
        hint_character,
        _hint_condition,
        _hint_absent,
        _hint_body,
        _hint_edge,
        hint_number,
        hint_type,
        _hint_keyword,
        hint_case,
        _hint_function,
    ),
)
