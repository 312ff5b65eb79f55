"""Literals as text: the inverse of `omnigraph.syntax.literals`."""

from __future__ import annotations

from decimal import Decimal

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def write_string(value: str) -> str:
    """Quote `value` so that `read_string` gives it back."""
    return f'"{value.translate(_ESCAPES)}"'


def write_literal(value: str | int | float | bool) -> str:
    """Spell a scalar so that reading it gives the same value and type."""
    match value:
        case bool():  # Before int, which a bool is too.
            return "true" if value else "false"
        case str():
            return write_string(value)
        case float():
            return _write_float(value)
        case int():
            return str(value)


def _write_float(value: float) -> str:
    """Spell `value` exactly, with a dot and without an exponent."""
    text = format(Decimal(repr(value)), "f")
    return text if "." in text else f"{text}.0"
