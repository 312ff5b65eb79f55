"""Source: decide whether a text may be parsed at all, and hide its comments from the grammar.

Everything here is linear and without recursion, so a hostile text is refused before a tree exists.
"""

from __future__ import annotations

import re

from omnigraph.errors import ParseError
from omnigraph.source_text import SourceText, Span

SOURCE_BYTES_MAX = 1024 * 1024
"""The largest schema or query text, in UTF-8 bytes."""

NESTING_MAX = 64
"""How deep brackets may nest. Trees are read by recursion, so their depth has to have a bound."""

# Strings come first, so that `//` and brackets inside them count for nothing. Every repetition is
# possessive: no input makes this search go back.
_MARKS = re.compile(
    r"""
    "[^"\\]*+(?:\\.[^"\\]*+)*+"?
    | //[^\n]*+
    | /\*[^*]*+(?:\*(?!/)[^*]*+)*+(?P<closed>\*/)?
    | [\[\](){}]
    """,
    re.VERBOSE | re.DOTALL,
)


_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def admit(text: str) -> str:
    """Return the text with every comment blanked; each character keeps its position.

    Raises:
        ParseError: The text is too long, not valid Unicode, nested too deeply, or ends inside a
            comment.
    """
    if not isinstance(text, str):
        raise TypeError(f"a schema or query is text (str), not {type(text).__name__}")
    _check_size(len(text))
    if not text.isascii():
        _check_size(len(_encode(text)))
        if text[0] == "\ufeff":
            text = " " + text[1:]
    if "\0" in text:
        at = text.index("\0")
        raise ParseError("the text contains a NUL character", span=Span(at, at + 1))
    openings = text.count("(") + text.count("[") + text.count("{")
    if openings > NESTING_MAX or "//" in text or "/*" in text:
        return _blank_comments(text)
    return text


def printable(source: SourceText) -> SourceText:
    """Return `source` fit to be quoted: control characters and lone surrogates are replaced.

    Every character and byte keeps its position, so that spans still hold.
    """
    text = source.text[:SOURCE_BYTES_MAX]
    return SourceText(source.name, _UNPRINTABLE.sub(_stand_in, text))


def _stand_in(character: re.Match[str]) -> str:
    # As many bytes in UTF-8 as what it stands for; half a surrogate pair has no such form.
    return "·" if "\x80" <= character[0] <= "\x9f" else "?"


def _check_size(size: int) -> None:
    if size > SOURCE_BYTES_MAX:
        limit = SOURCE_BYTES_MAX // (1024 * 1024)
        raise ParseError(f"the text is too long: the limit is {limit} MiB — split it")


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ParseError(
            "the text is not valid Unicode: it contains half of a surrogate pair",
            span=Span(error.start, error.start + 1),
            hint="save the file as UTF-8",
        ) from None


def _blank_comments(text: str) -> str:
    parts: list[str] = []
    done = depth = 0
    for mark in _MARKS.finditer(text):
        match text[mark.start()]:
            case "(" | "[" | "{":
                depth += 1
                if depth > NESTING_MAX:
                    raise _too_deep(mark.start())
            case ")" | "]" | "}":
                depth = max(0, depth - 1)
            case "/":
                _check_closed(mark)
                parts += text[done : mark.start()], " " * (mark.end() - mark.start())
                done = mark.end()
    return "".join([*parts, text[done:]])


def _check_closed(comment: re.Match[str]) -> None:
    if comment[0].startswith("/*") and comment["closed"] is None:
        start = comment.start()
        raise ParseError(
            "the comment is not closed", span=Span(start, start + 2), hint="it ends with `*/`"
        )


def _too_deep(at: int) -> ParseError:
    return ParseError(
        f"nested too deeply: brackets nest at most {NESTING_MAX} deep",
        span=Span(at, at + 1),
    )
