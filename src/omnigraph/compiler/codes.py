"""Codes: every rule of the language that has one, and what it refuses or warns of.

`T` codes belong to errors of the type checker, `Q` and `L` codes to findings of lint. Codes are
only ever added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from omnigraph.dataclass import dataclass

Severity: TypeAlias = Literal["error", "warning", "info"]

TYPE_CODES: Final[Mapping[str, str]] = {
    "T1": "a pattern names a node type that does not exist",
    "T2": "a pattern matches a property that the type does not have",
    "T3": "a literal does not fit its property",
    "T4": "there is no edge of that name",
    "T5": "a node at one end of a traversal does not fit the edge",
    "T6": "`$v.p` names an unbound variable or an unknown property",
    "T7": "two typed values do not fit together",
    "T8": "an aggregate cannot work on values of that type",
    "T9": "a `not` mentions nothing outside it; or a value beside an aggregate is no group",
    "T10": "a mutation names a type that does not exist",
    "T11": "a mutation names a property that does not exist, or compares a Blob",
    "T12": "an insert or upsert leaves out something required",
    "T13": "a mutation assigns a property twice",
    "T14": "a value is a variable that is not a parameter",
    "T15": "hop bounds that are open, zero or reversed; or a misused `nearest`",
    "T17": "an order by `nearest` has no `limit`",
    "T18": "an order mixes `nearest` with an alias",
    "T19": "a misused `search` or `fuzzy`",
    "T20": "a misused `match_text` or `bm25`",
    "T21": "a misused `rrf`, or an order by it without `limit`",
    "T22": "`<edge>` reads an edge between two different types",
    "T23": "an edge variable stands where a node is needed",
    "T24": "a Blob is read by a query",
    "T25": "an unknown function, or a wrong number of arguments",
    "T26": "operands or arguments of a wrong type, a duration out of place",
    "T27": "`null` where it cannot stand",
    "T28": "a computed column without a name",
    "T29": "`in` without a list literal or list parameter that fits",
    "T30": "branches of `case` or arguments of `coalesce` of two types",
    "T31": "a bare word that names nothing here",
    "T32": "`having` without an aggregate",
    "T33": "an ordering that has no order, is constant, or is not projected beside aggregates",
    "T34": "a `limit` or `offset` that is no integer, or `offset` without `order`",
    "T35": "`optional` misplaced, or unconnected",
    "T36": "a path variable outside `hops`, `nodes`, `edges`, `cost`",
    "T37": "`by` without `shortest`, or of no number",
    "T38": "a condition on hops that reads no property of the edge",
    "T39": "more than three stages, or a score whose name is taken",
    "T40": "a ranking or a search inside an expression",
    "T41": "`either` nested, or unconnected",
    "T42": "an `upsert` without the key",
    "T43": "a `for` over something else than a list of rows, inside another one, or after `match`",
    "T44": (
        "a bound update or delete of what is no node or edge, `where` after `match`, an edge moved"
    ),
    "T45": (
        "a `return` of a mutation without anything to return, with aggregates, or a second label"
    ),
    "T46": "a default that is no value of its parameter's type",
}


@dataclass(frozen=True, slots=True)
class LintCode:
    """What a finding is about, and what to do."""

    severity: Severity
    meaning: str
    remedy: str


LINT_CODES: Final[Mapping[str, LintCode]] = {
    "Q000": LintCode(
        "error",
        "the file does not parse; no query is checked",
        "fix the text at the position shown",
    ),
    "L201": LintCode(
        "warning",
        "queries update a node type, and none of them sets this optional property",
        "add an update, if one is missing",
    ),
    "L301": LintCode(
        "error",
        "a query deletes and also inserts or updates",
        "split it in two",
    ),
    "L302": LintCode(
        "error",
        "an update assigns a member of the key",
        "insert a new node and delete the old one",
    ),
    "L303": LintCode(
        "error",
        "`order` names an alias that `return` does not have",
        "add `as name`, or order by `$variable.property`",
    ),
    "L304": LintCode(
        "error",
        "`return` holds a search call or a bare word",
        "return a property; search in `match` or `order`",
    ),
    "L305": LintCode(
        "warning",
        "a filter outside of an `optional` drops every row in which it did not match",
        "put the filter into the block, or leave `optional` out",
    ),
    "L306": LintCode(
        "warning",
        "two independent `optional` blocks multiply rows that are counted, summed, averaged or "
        "collected",
        "count with `distinct`, or ask in two queries",
    ),
    "L307": LintCode(
        "info",
        "a parameter that may be null is compared, and nothing asks whether it is null",
        "write `$x is null or …`, or declare it without `?`",
    ),
    "L308": LintCode(
        "warning",
        "`top` binds more than one node variable, so that `n` counts combinations",
        "keep one variable in the stage",
    ),
    "L309": LintCode(
        "info",
        "`!=` or `not ( … )` on a property that may be null drops the rows where it is null",
        "add `or $x.property is null` where those rows are wanted",
    ),
}
