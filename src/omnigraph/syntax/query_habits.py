"""What people write out of habit from Cypher, GQL or SQL, and how it is said here.

A habit is recognised by the word where the text stops following the grammar, or by the word before
it: `order by` was read up to `by`, `WHERE a` up to `a`.
"""

from __future__ import annotations

import re

from omnigraph.syntax.query_places import ARROW, PLACES, VALUES
from omnigraph.syntax.unexpected import Situation

_ELSEWHERE = {
    "&&": "write `and`; clauses side by side all have to hold as well",
    "||": "write `or`; to join Strings, write `+`",
    "==": "equality is a single `=`",
    "<>": "write `!=`",
    "!": "`not ( … )` negates a test, `not { … }` asks that a pattern does not exist",
    "=~": "there are no patterns of text; use `contains`, `starts_with`, `ends_with` or `search`",
    "like": "there is no `like`; use `contains`, `starts_with`, `ends_with` or `search`",
    "->": ARROW,
    "<-": "name the edge between two variables, the source first: `$b wrote $a`",
    "--": "name the edge between two variables: `$a <knows> $b` follows it both ways",
    "(": "a node is written `$p: Person`, an edge between two variables: `$p knows $q`",
    "group": "grouping follows from the projections: each one beside an aggregate is a key",
    "skip": "write `offset n` behind `limit n`; it needs `order`",
    "by": "the keys go in braces: `order { … }`",
    "where": "filters stand in `match`, beside the pattern",
    "with": "there is no `with`: `having { … }` filters groups, `top n by … { … }` cuts first",
    "unwind": "there is no `unwind`; a mutation runs over rows with `for $row in $rows { … }`",
    "union": "there is no `union`; `either { … } or { … }` joins patterns, else run two queries",
    "merge": "write `upsert Type { … }`",
    "create": "write `insert Type { … }`",
    "remove": "write `delete $x`, or set a property to `null`",
    "detach": "`delete $x` always takes the edges along",
    "exists": "`not { … }` and `either { … } or { … }` ask whether a pattern exists",
    "xor": "there is no `xor`; write both cases with `or`",
    "between": "write two comparisons: `$p.x >= 1  $p.x <= 5`",
    "select": "a read is `match { … } return { … }`",
    "from": "a read is `match { … } return { … }`",
    "join": ARROW,
    "values": VALUES,
    "into": 'write the type and its properties: `insert Type { name: "x" }`',
    "*": "`$p { * }` returns the whole node; `count($p)` counts rows",
    "|": "bind an interface that both types implement: `$x: Named`",
    "^": "there are no powers; multiply",
}
_OURS = frozenset({
    "match", "optional", "return", "distinct", "order", "limit", "offset", "and", "or", "not", "in",
    "is", "null", "as", "asc", "desc", "case", "when", "then", "else", "end", "insert", "update",
    "delete", "set", "having", "contains", "true", "false", "count", "sum", "avg", "min", "max",
    "collect", "query",
})  # fmt: skip
"""Words that are ours in lower case."""

_ALONE = re.compile(r"(\$\w+)\s+(?:or|and)\s+\$\w+\s*\Z")
_TWO = re.compile(r"(\$\w+)\s+(in|contains|starts_with|ends_with)\s+(\$\w+)\s*\Z")
_LAST = re.compile(r"(\$\w+(?:\.\w+)?)\s*\Z")


def hint_habit(situation: Situation) -> str | None:
    """How this language says what was begun in another."""
    return _hint_place(situation) or _hint_word(situation)


def _hint_word(situation: Situation) -> str | None:
    for word in (situation.found, situation.previous):
        if word.isupper() and word.lower() in _OURS | {"optional"}:
            return _hint_upper(word, situation)
        if word.lower() in _ELSEWHERE and not (word == "(" and _is_call(situation)):
            return _ELSEWHERE[word.lower()]
    return None


def _hint_upper(word: str, situation: Situation) -> str:
    if word in ("MATCH", "OPTIONAL"):
        return f"write `{word.lower()} {{ … }}`; words are lower case"
    return f"words are lower case: `{word.lower()}`"


def _hint_place(situation: Situation) -> str | None:
    before = situation.before.rstrip()
    match situation.found:
        case "=" if before.endswith("="):
            return _ELSEWHERE["=="]
        case ">" if before.endswith("<"):
            return _ELSEWHERE["<>"]
        case ">" if before.endswith("-"):
            return _ELSEWHERE["->"]
        case "~" if before.endswith("="):
            return _ELSEWHERE["=~"]
        case "by" if re.search(r"\bgroup\Z", before):
            return _ELSEWHERE["group"]
        case "*" if before.endswith("."):
            return f"`{_owner(before)} {{ * }}` returns the whole node"
        case "*" if re.search(r"\bcount\s*\(\Z", before):
            return "`count($x)` counts the rows in which $x is bound"
        case "(" if re.search(r"\bnot\s+exists\Z", before):
            return _ELSEWHERE["exists"]
        case ":" if re.search(r"-\s*\[\s*\w*\Z", before):
            return _ELSEWHERE["->"]
        case ":" if re.search(r"\(\s*\w*\Z", before):
            return _ELSEWHERE["("]
        case "{" if situation.previous in ("return", "having", "order"):
            return f"the block before `{situation.previous}` is open: close it with `}}`"
        case "," if "OPTIONAL" in situation.expected:
            return "clauses stand side by side; leave out the `,`"
    return next(
        (
            hint
            for found, place, hint in PLACES
            if re.fullmatch(found, situation.found) and place.search(before)
        ),
        None,
    )


def _owner(before: str) -> str:
    found = re.search(r"(\$\w+)\s*\.\Z", before)
    return found[1] if found else "$p"


def _is_call(situation: Situation) -> bool:
    return bool(situation.previous)


def is_round_list(situation: Situation) -> bool:
    """Whether a list was written in parentheses: `in (1, 2)`."""
    is_inside = re.search(r"\bin\s*\([^()]*\Z", situation.before) is not None
    return situation.found in (",", ")") and is_inside


def joins_variables(situation: Situation) -> bool:
    """Whether a word stands between two bare variables, where it is an edge, and no edge can be."""
    return situation.found in (")", "and", "or") and _TWO.search(situation.before) is not None


def lacks_test(situation: Situation) -> bool:
    """Whether a value stands where a condition has to."""
    if _is_before_property(situation):
        return True
    is_over = situation.found in ("or", "and", ")", "}", "then")
    return is_over and "IS_NULL" in situation.expected


def _is_before_property(situation: Situation) -> bool:
    """Whether a variable stood for a condition: `$open or $p.x` is read as an edge up to `.`."""
    return situation.found == "." and _ALONE.search(situation.before) is not None


def say_mistake(situation: Situation) -> str | None:
    """What is wrong, where a list of what was expected would not say it."""
    if is_round_list(situation):
        return f"expected [ behind `in`, and found a list in parentheses at `{situation.found}`"
    two = _TWO.search(situation.before)
    if two is not None and joins_variables(situation):
        return f"between two variables `{two[2]}` is the name of an edge"
    last = _ALONE.search(situation.before) if situation.found == "." else None
    last = last or _LAST.search(situation.before)
    if last is not None and lacks_test(situation):
        return f"`{last[1]}` is not a condition"
    return None
