"""Literals: strings and numbers, from the text of a token to a value."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from omnigraph.errors import ParseError
from omnigraph.source_text import Span
from omnigraph.types import VECTOR_DIMENSION_MAX

if TYPE_CHECKING:
    from omnigraph.syntax.grammar import Token

INTEGER_MAX = 2**63 - 1
UNSIGNED_32_MAX = 2**32 - 1
NUMBER_LENGTH_MAX = 1000
"""Longer numbers are refused unread: reading digits costs more than linear time."""

_UNESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def span_of(token: Token) -> Span:
    """The characters of one token."""
    return Span(token.start_pos, token.end_pos)


def from_to(first: Token, last: Token) -> Span:
    """The characters from the start of one token to the end of another."""
    return Span(first.start_pos, last.end_pos)


def variable_name(token: Token) -> str:
    """The name of `$name`."""
    name: str = token.value[1:]
    return name


def read_string(token: Token) -> str:
    """The value of a quoted string."""
    body: str = token.value[1:-1]
    if "\\" not in body:
        return body

    def unescape(escape: re.Match[str]) -> str:
        value = _UNESCAPED.get(escape[1])
        if value is None:
            raise _bad_escape(token, escape)
        return value

    return _ESCAPE.sub(unescape, body)


def _bad_escape(token: Token, escape: re.Match[str]) -> ParseError:
    start = span_of(token).start + 1 + escape.start()
    shown = f"`{escape[0]}`" if escape[0].isprintable() else repr(escape[0])
    return ParseError(
        f"unsupported escape sequence {shown}",
        span=Span(start, start + 2),
        hint=r"a string knows `\"`, `\\`, `\n`, `\r` and `\t`",
    )


def read_integer(token: Token, maximum: int = INTEGER_MAX, name: str = "an integer") -> int:
    """The value of `[-]digits`, whose size is at most `maximum` (one more below zero)."""
    negative = token.value.startswith("-")
    digits = token.value.lstrip("-0") or "0"
    # Python refuses to read very long integers, so length decides first.
    size = int(digits) if len(digits) <= len(str(maximum)) else maximum + 2
    if negative and size > maximum + 1:
        raise ParseError(f"{name} is at least -{maximum + 1}", span=span_of(token))
    if not negative and size > maximum:
        raise ParseError(f"{name} is at most {maximum}", span=span_of(token))
    return -size if negative else size


def read_dimension(size: Token) -> int:
    """The dimension of a Vector, at least one."""
    dimension = read_integer(size, VECTOR_DIMENSION_MAX, "the dimension of a Vector")
    if dimension == 0:
        raise ParseError("the dimension of a Vector must be greater than zero", span=span_of(size))
    return dimension


def read_float(token: Token) -> float:
    """The value of `[-]digits.digits`; always finite."""
    if len(token.value) > NUMBER_LENGTH_MAX:
        raise ParseError(
            f"the number is too long: at most {NUMBER_LENGTH_MAX} characters", span=span_of(token)
        )
    value = float(token.value)
    if math.isinf(value):
        raise ParseError("the number is too large for a 64-bit float", span=span_of(token))
    return value


def read_number(token: Token) -> int | float:
    """The value of a bound: a float exactly when it was written with a dot."""
    return read_float(token) if "." in token.value else read_integer(token)
