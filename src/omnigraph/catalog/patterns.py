"""Patterns of `@check`: one dialect, compiled by one function, for schema files and for writes.

The dialect is Python's `re` without what needs unbounded memory of the text: no backreferences and
no lookaround. A match is a search: the pattern may be found anywhere, unless it is anchored.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from omnigraph.errors import ParseError
from omnigraph.source_text import Span

# One token of a pattern. A character class is one token, so that what looks like a group inside
# it is left alone; `]` is an ordinary character right after the opening bracket.
_TOKEN = re.compile(
    r"""
      (?P<backreference> \\[1-9] | \(\?P= | \(\?\( )
    | (?P<lookaround> \(\?<?[=!] )
    | (?P<other> \\. | \[\^?\]?(?:\\.|[^\]\\])*\] | . )
    """,
    re.VERBOSE | re.DOTALL,
)


def compile_pattern(pattern: str, span: Span | None = None) -> re.Pattern[str]:
    """Compile the pattern of a `@check`.

    Raises:
        ParseError: The pattern is malformed, or uses a construct outside the dialect. The error
            points at `span`.
    """
    try:
        return _compile(pattern)
    except ValueError as error:
        raise ParseError(f"invalid regex in @check: {error}", span=span) from None


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    for token in _TOKEN.finditer(pattern):
        if token.lastgroup != "other":
            raise ValueError(
                f"`{pattern}` uses a {token.lastgroup} at position {token.start()}, which the "
                "linear-time dialect does not have — rewrite it without"
            )
    try:
        with warnings.catch_warnings():
            # `[[:alpha:]]` and `[a--b]` are set operations elsewhere and plain characters in `re`,
            # which only warns. Neither reading is safe to guess, so the warning is an error.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern)
    except FutureWarning:
        raise ValueError(f"`{pattern}` nests one character class in another") from None
    except re.error as error:
        raise ValueError(f"`{pattern}`: {error}") from None
    except (OverflowError, RecursionError):
        raise ValueError(f"`{pattern[:80]}` repeats or nests too far") from None
