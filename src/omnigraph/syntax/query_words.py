"""How errors speak of the query grammar: names for what was expected, and hints."""

from __future__ import annotations

import re

from omnigraph.errors import did_you_mean
from omnigraph.syntax.query_habits import (
    hint_habit,
    is_round_list,
    joins_variables,
    lacks_test,
    say_mistake,
)
from omnigraph.syntax.query_places import ARROW
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
    "NOW", "AGGREGATE", "COLLECT", "IDENT", "NULL", "FUNCTION", "CASE", "LPAR",
}  # fmt: skip
_SUMS = _ATOMS | {"VAR", "MINUS"}
_EXPRESSIONS = _SUMS | _SEARCHES
_CONDITIONS = _EXPRESSIONS | {"NOT_TEST"}
_CLAUSES = _CONDITIONS | {"NOT", "OPTIONAL", "EITHER"}
_SYMBOLS = frozenset({"EQUAL", "COMPARE", "LESS", "MORE"})
_WORDS = frozenset({"WORD_OP", "IN"})
_TESTS = _SYMBOLS | _WORDS | {"IS_NULL"}
_SIGNS = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT"})

_FUNCTIONS = frozenset({
    "not", "now", "nearest", "search", "fuzzy", "match_text", "bm25", "rrf", "count", "sum", "avg",
    "min", "max", "date", "datetime", "collect",
})  # fmt: skip
_KEYWORDS = (
    "query", "match", "return", "having", "order", "limit", "offset", "insert", "upsert", "update",
    "delete", "for", "set", "where", "as",
)  # fmt: skip
_JOINING = ("and", "or", "when", "then", "else", "by")


_ARROW = re.compile(r"\$\w+\s*(<\s*-|-)\s*[a-z]\w*\s*(-\s*)?\$\w+\s*\Z")
_BARE = re.compile(r"(?<!\bor)(?<!\band)[{\s]\$\w+\s*\Z")


def _hint_condition(situation: Situation) -> str | None:
    """Where a condition was begun and is none."""
    if is_round_list(situation):
        return "write the list in square brackets: `in [1, 2]`"
    if joins_variables(situation):
        return "put the left one in parentheses: `($x) in $xs`"
    if _ARROW.search(situation.before):
        return ARROW
    if situation.previous == "not" and situation.found == "exists":
        return "`not { … }` asks that a pattern does not exist"
    if situation.previous == "not":
        return "`not ( … )` negates a test, `not { … }` asks that a pattern does not exist"
    if situation.found == "null":
        return "test with `is null`; to leave a property empty, leave it out"
    if re.search(r"\b(?:exists|has)\s*\([^()]*\)\s*\Z", situation.before):
        return "`… is not null` asks whether there is a value"
    if situation.found == "}" and _BARE.search(situation.before):
        return "a node is bound with its type: `$p: Person`"
    if lacks_test(situation):
        return "compare it: `… = true`"
    return None


def _hint_body(situation: Situation) -> str | None:
    if situation.found == "}":
        if "_RETURN" in situation.expected:
            return "a read needs `return { … }` after its `match { … }`"
        if "_WHERE" in situation.expected and "_SET" not in situation.expected:
            return "say which rows: `where property = value`"
        if situation.expected == {"COMMA"}:
            return "hop bounds are written `{min,max}`"
    if situation.found == "return" and "_MATCH" in situation.expected:
        return "a read starts with `match { … }`"
    return _hint_place(situation)


def _hint_place(situation: Situation) -> str | None:
    """The clauses of a read have one order."""
    written = re.search(r"(limit|offset)\s+[0-9$\w]+\s*\Z", situation.before)
    if written is not None and situation.found in ("order", "having", "limit"):
        return f"`{situation.found}` comes before `{written[1]}`"
    if situation.found == "having" and re.search(r"order\s*\{[^{}]*\}\s*\Z", situation.before):
        return "`having` comes before `order`"
    if situation.found in _MUTATING and "top" in situation.before:
        return "a mutation has no stages: filter in its `match`"
    if situation.found == "enum" and "BASE_TYPE" in situation.expected:
        return "a parameter cannot be an enum; use `String`"
    if situation.expected in ({"BASE_TYPE"}, {"BASE_TYPE", "LBRACE"}):
        return "a list holds scalars, or rows: `[{ name: String }]`"
    return None


_MUTATING = ("insert", "upsert", "update", "delete", "for")


def _hint_edge(situation: Situation) -> str | None:
    if "an edge name" in situation.names and re.match(r"[A-Z]", situation.found):
        found = situation.found
        lower = found.lower() if found.isupper() else found[0].lower() + found[1:]
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
        (_CLAUSES, "a clause"),
        (_CONDITIONS, "an expression"),
        (_EXPRESSIONS, "an expression"),
        (_SUMS, "an expression"),
        (_ATOMS, "an expression"),
        (_VALUES, "a value"),
        (_LITERALS, "a literal"),
        (_TESTS | _SIGNS, "a comparison"),
        (_SYMBOLS | _WORDS, "a comparison"),
        (_SYMBOLS, "a comparison"),
        (_SIGNS, "an operator"),
        (frozenset({"STAR", "SLASH", "PERCENT"}), "an operator"),
        (frozenset({"NEAREST", "BM25"}), "`nearest(…)` or `bm25(…)`"),
        (frozenset({"BASE_TYPE", "LSQB", "VECTOR", "LBRACE"}), "a type"),
        (frozenset({"BASE_TYPE", "LSQB", "VECTOR"}), "a type"),
    ),
    prefixes=(
        ("query x", "a query name"),
        ("query q($x", "a parameter"),
        ("query q() { insert A { x", "a property name"),
        ("query q() { match { $a: A } return { $a { x", "a property name"),
        ("query q($a: { x", "a field name"),
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
        "TOP": "`top`",
        "DISTINCT": "`distinct`",
        "SHORTEST": "`shortest`",
        "IN": "a comparison",
        "END": "`end`",
        "NOT_TEST": "a condition",
        "TYPE_NAME": "a type name",
        "IDENT": "a name",
        "VAR": "a variable",
        "BASE_TYPE": "a scalar type",
        **dict.fromkeys(sorted(_EXPRESSIONS - {"IDENT", "VAR", "LPAR", "MINUS"}), "an expression"),
        **dict.fromkeys(("NOT", "OPTIONAL", "EITHER"), "a clause"),
        "STRING": "a string",
        "INT": "an integer",
        "QUERY_ANNOTATION": "`@description(…)` or `@instruction(…)`",
        "WORD_OP": "a comparison",
        "ORDER_DIR": "a direction",
        "COMPARE": "a comparison",
        "VECTOR": "a type",
        **(PUNCTUATION | {"EQUAL": "a comparison"}),
    },
    hints=(
        hint_character,
        _hint_condition,
        hint_habit,
        _hint_body,
        _hint_edge,
        hint_number,
        hint_type,
        _hint_keyword,
        hint_case,
        _hint_function,
    ),
    messages=(say_mistake,),
)
