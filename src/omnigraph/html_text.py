"""HTML text: values as text of a page. Nothing in a value is markup, and nothing is hidden."""

from __future__ import annotations

from html import escape

_DIRECTION_MARKS = {0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def escape_text(text: str) -> str:
    """Text for a page: nothing in it is markup, and what cannot be seen is made visible."""
    return escape(show_controls(text), quote=True)


def show_controls(text: str) -> str:
    """Text in which control characters and direction marks are written out."""
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20 and character not in "\t\n":
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    # Marks that turn the reading direction would let a value rearrange the text around it.
    if code in _DIRECTION_MARKS or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04x}"
    return character
