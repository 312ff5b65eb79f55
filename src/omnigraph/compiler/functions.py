"""Functions of the language: how many arguments each takes, of which types, and what it gives.

An unknown name or a wrong number of arguments is T25, a wrong type T26. `coalesce` and `type` have
rules of their own, in `check_expressions.py`, and so have functions of a path, in `path_calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.arithmetic import INTEGER, TEXT, number_type
from omnigraph.ir.expressions import Call, Constant
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.source_text import Span
from omnigraph.types import DAYS, DURATION, PropertyType, Scalar

DIGITS_MAX = 15

_DATE = PropertyType(Scalar.DATE, nullable=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be: how an error says so, and how a signature does."""

    text: str
    label: str
    accepts: Callable[[PropertyType], bool]


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` are those it must have, `more` those that may follow."""

    doc: str
    parameters: tuple[Kind, ...]
    result: Callable[[PropertyType], PropertyType]
    more: tuple[Kind, ...] = ()


@dataclass(frozen=True, slots=True)
class CallSummary:
    """A call with rules of its own: what a reader has to know of it."""

    doc: str
    arguments: str
    result: str


def _always(found: PropertyType) -> Callable[[PropertyType], PropertyType]:
    return lambda _: found


def _is_time(found: PropertyType) -> bool:
    return found.scalar in (Scalar.DATE, Scalar.DATETIME) and not found.is_list


def _is_instant(found: PropertyType) -> bool:
    return found.scalar is Scalar.DATETIME and not found.is_list


_TEXT = Kind("a String", "String", lambda found: found.is_text)
_NUMBER = Kind("a number", "number", lambda found: found.is_numeric)
_INTEGER = Kind("an integer", "integer", lambda found: found.is_integer)
_TIME = Kind("a Date or DateTime", "Date or DateTime", _is_time)
_INSTANT = Kind("a DateTime", "DateTime", _is_instant)
_COUNTABLE = Kind(
    "a String or a list", "String or list", lambda found: found.is_text or found.is_list
)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "lower": Function("The text in lower case, letter by letter.", (_TEXT,), _always(TEXT)),
    "upper": Function("The text in upper case, letter by letter.", (_TEXT,), _always(TEXT)),
    "length": Function(
        "How many characters a String has, or how many members a list.",
        (_COUNTABLE,),
        _always(INTEGER),
    ),
    "substring": Function(
        "A part of a text: from where, counted from 0, and how many characters.",
        (_TEXT, _INTEGER),
        _always(TEXT),
        (_INTEGER,),
    ),
    "abs": Function("The number without its sign.", (_NUMBER,), lambda found: number_type([found])),
    "round": Function(
        "The nearest number of so many digits; a half is rounded away from zero.",
        (_NUMBER,),
        lambda found: number_type([found]),
        (_INTEGER,),
    ),
    "year": Function("The year, in UTC.", (_TIME,), _always(INTEGER)),
    "month": Function("The month from 1 to 12, in UTC.", (_TIME,), _always(INTEGER)),
    "day": Function("The day of the month, in UTC.", (_TIME,), _always(INTEGER)),
    "date": Function(
        'The UTC day of a DateTime; `date("2026-04-14")` is a Date.', (_INSTANT,), _always(_DATE)
    ),
    "days": Function("So many days, to add to a date.", (_INTEGER,), _always(DAYS)),
    "hours": Function("So many hours, to add to a DateTime.", (_INTEGER,), _always(DURATION)),
    "minutes": Function("So many minutes, to add to a DateTime.", (_INTEGER,), _always(DURATION)),
}
PATH_FUNCTIONS: Final[Mapping[str, CallSummary]] = {
    "hops": CallSummary("How many edges a path has.", "path", "I64"),
    "nodes": CallSummary(
        "The ids of the nodes of a path, or a property of each.", "path[, property]", "list"
    ),
    "edges": CallSummary(
        "The ids of the edges of a path, or a property of each.", "path[, property]", "list"
    ),
    "cost": CallSummary("The sum of the weights of a path that was found `by` one.", "path", "F64"),
}
SPECIAL: Final[Mapping[str, CallSummary]] = {
    "coalesce": CallSummary(
        "The first argument that is not null.", "value, value, …", "their type"
    ),
    "type": CallSummary("The name of the type of a node or an edge.", "variable", "String"),
    **PATH_FUNCTIONS,
}
GRAMMAR_CALLS: Final[Mapping[str, CallSummary]] = {
    "now": CallSummary("The instant at which the query runs; one for all of it.", "", "DateTime"),
    "datetime": CallSummary(
        'A DateTime that is written out: `datetime("2026-04-14T09:30:00Z")`.',
        "text",
        "DateTime",
    ),
    "count": CallSummary("How many rows of the group have a value.", "[distinct] value", "I64"),
    "sum": CallSummary("The sum of the values of the group.", "number", "F64"),
    "avg": CallSummary("The mean of the values of the group.", "number", "F64"),
    "min": CallSummary("The smallest value of the group.", "number, String or date", "its type"),
    "max": CallSummary("The largest value of the group.", "number, String or date", "its type"),
    "collect": CallSummary(
        "The values of the group as a list.", "[distinct] value [order key, …]", "list"
    ),
    "search": CallSummary(
        "Whether a text has any of the words, in any form.", "property, text", "Bool"
    ),
    "match_text": CallSummary(
        "Whether a text has the words one after the other.", "property, text", "Bool"
    ),
    "fuzzy": CallSummary(
        "Whether a text has the words within so many edits; 2 by default.",
        "property, text[, edits]",
        "Bool",
    ),
    "bm25": CallSummary(
        "How relevant a text is for words; the best first.", "property, text", "F64"
    ),
    "nearest": CallSummary(
        "How far a vector is from another one, or from a text; the nearest first.",
        "property, vector or text",
        "F64",
    ),
    "rrf": CallSummary("Two rankings made into one.", "ranking, ranking[, k]", "F64"),
}
"""Calls that the grammar spells out, each with a rule of its own."""


def describe_function(name: str) -> CallSummary:
    """What is to be known of any call of the language."""
    function = FUNCTIONS.get(name)
    if function is None:
        return SPECIAL.get(name) or GRAMMAR_CALLS[name]
    arguments = ", ".join(kind.label for kind in function.parameters)
    arguments += "".join(f"[, {kind.label}]" for kind in function.more)
    samples = (PropertyType(Scalar.I64), PropertyType(Scalar.F64))
    results = dict.fromkeys(str(function.result(each)).removesuffix("?") for each in samples)
    return CallSummary(function.doc, arguments, " or ".join(results))


def list_functions() -> list[str]:
    """The name of every call of the language."""
    return sorted({*FUNCTIONS, *SPECIAL, *GRAMMAR_CALLS})


ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("size", "len", "char_length", "cardinality"), "write `length(…)`"),
    **dict.fromkeys(("labels", "label"), "`type($x)` is the name of its type"),
    "relationships": "write `edges($path)`",
    "id": "the bare variable, `$x`, is the id of a node; of an edge it is `$e.id`",
    "properties": "`$x { * }` returns the whole node or edge",
    **dict.fromkeys(
        ("interval", "duration"),
        "write `days(n)`, `hours(n)` or `minutes(n)`, as in `now() - days(7)`",
    ),
    **dict.fromkeys(("timestamp", "localdatetime"), "write `now()`"),
    **dict.fromkeys(("today", "current_date"), "write `date(now())`"),
    **dict.fromkeys(
        ("ifnull", "isnull", "nvl", "if", "iif"),
        "write `coalesce(a, b)` or `case when … then … end`",
    ),
    "nullif": "write `case when $p.x != 1 then $p.x end`",
    "concat": "Strings are joined by `+`",
    **dict.fromkeys(("substr", "left", "right"), "write `substring(text, start, count)`"),
    **dict.fromkeys(("ceil", "floor"), "write `round(…)`"),
    **dict.fromkeys(("exists", "has"), "`… is not null` asks whether there is a value"),
    **dict.fromkeys(("head", "last"), "order rows and use `limit 1`, or `min(…)` and `max(…)`"),
    **dict.fromkeys(("mean", "average"), "write `avg(…)`"),
    **dict.fromkeys(("array_agg", "group_concat", "string_agg"), "write `collect(…)`"),
    **dict.fromkeys(
        ("tostring", "tointeger", "tofloat", "cast"),
        "nothing is converted; types come from the schema",
    ),
}
"""What other languages call it, in lower case, and how it is said here."""


def require_known(name: str, span: Span) -> None:
    """Refuse a name that no function has (T25), before what its arguments are."""
    known = (*FUNCTIONS, *SPECIAL)
    if name in known:
        return
    hint = ELSEWHERE.get(name.lower()) or did_you_mean(name, known)
    raise TypeCheckError(
        f"unknown function '{name}'",
        code="T25",
        span=span,
        hint=hint or f"there are {', '.join(sorted(known))}",
    )


def check_call(name: str, arguments: Sequence[Operand], spans: Sequence[Span], span: Span) -> Call:
    """Type a call of a known function whose arguments have been typed."""
    function = FUNCTIONS[name]
    kinds = (*function.parameters, *function.more)
    require_count(name, len(arguments), len(function.parameters), len(kinds), span)
    for argument, kind, at in zip(arguments, kinds, spans, strict=False):
        if not kind.accepts(argument.type):
            raise TypeCheckError(
                f"{name} needs {kind.text}, got {argument.type}", code="T26", span=at
            )
    if name == "round" and len(arguments) > 1:
        _require_digits(arguments[1], spans[1])
    return Call(name, tuple(arguments), function.result(arguments[0].type))


def require_count(name: str, found: int, least: int, most: int | None, span: Span) -> None:
    """As many arguments as a function takes (T25)."""
    if found >= least and (most is None or found <= most):
        return
    if most is None:
        wanted = f"at least {least}"
    else:
        wanted = str(least) if least == most else f"{least} or {most}"
    noun = "argument" if wanted == "1" else "arguments"
    raise TypeCheckError(f"{name} takes {wanted} {noun}, got {found}", code="T25", span=span)


def _require_digits(digits: Operand, span: Span) -> None:
    value = digits.value if isinstance(digits, Constant) else None
    if not isinstance(value, int) or not 0 <= value <= DIGITS_MAX:
        raise TypeCheckError(
            f"the digits of round are an integer literal from 0 to {DIGITS_MAX}",
            code="T26",
            span=span,
        )
