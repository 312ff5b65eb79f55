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
    """What an argument may be, and how an error says so."""

    text: str
    accepts: Callable[[PropertyType], bool]


@dataclass(frozen=True, slots=True)
class Function:
    """`parameters` are those it must have, `more` those that may follow."""

    parameters: tuple[Kind, ...]
    result: Callable[[PropertyType], PropertyType]
    more: tuple[Kind, ...] = ()


def _always(found: PropertyType) -> Callable[[PropertyType], PropertyType]:
    return lambda _: found


def _is_time(found: PropertyType) -> bool:
    return found.scalar in (Scalar.DATE, Scalar.DATETIME) and not found.is_list


_TEXT = Kind("a String", lambda found: found.is_text)
_NUMBER = Kind("a number", lambda found: found.is_numeric)
_INTEGER = Kind("an integer", lambda found: found.is_integer)
_TIME = Kind("a Date or DateTime", _is_time)
_INSTANT = Kind("a DateTime", lambda found: found.scalar is Scalar.DATETIME and not found.is_list)
_COUNTABLE = Kind("a String or a list", lambda found: found.is_text or found.is_list)


FUNCTIONS: Final[Mapping[str, Function]] = {
    "lower": Function((_TEXT,), _always(TEXT)),
    "upper": Function((_TEXT,), _always(TEXT)),
    "length": Function((_COUNTABLE,), _always(INTEGER)),
    "substring": Function((_TEXT, _INTEGER), _always(TEXT), (_INTEGER,)),
    "abs": Function((_NUMBER,), lambda found: number_type([found])),
    "round": Function((_NUMBER,), lambda found: number_type([found]), (_INTEGER,)),
    "year": Function((_TIME,), _always(INTEGER)),
    "month": Function((_TIME,), _always(INTEGER)),
    "day": Function((_TIME,), _always(INTEGER)),
    "date": Function((_INSTANT,), _always(_DATE)),
    "days": Function((_INTEGER,), _always(DAYS)),
    "hours": Function((_INTEGER,), _always(DURATION)),
    "minutes": Function((_INTEGER,), _always(DURATION)),
}
PATH_FUNCTIONS: Final = ("hops", "nodes", "edges", "cost")
SPECIAL: Final = ("coalesce", "type", *PATH_FUNCTIONS)


def check_call(name: str, arguments: Sequence[Operand], spans: Sequence[Span], span: Span) -> Call:
    """Type a call whose arguments have been typed."""
    function = FUNCTIONS.get(name)
    if function is None:
        known = (*FUNCTIONS, *SPECIAL)
        raise TypeCheckError(
            f"unknown function '{name}'",
            code="T25",
            span=span,
            hint=did_you_mean(name, known) or f"there are {', '.join(sorted(known))}",
        )
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
