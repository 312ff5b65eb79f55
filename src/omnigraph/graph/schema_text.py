"""The text of a schema, which shows itself as text."""

from __future__ import annotations

from typing import Protocol

from omnigraph.display import Sheet, show_html, show_text


class Printer(Protocol):
    """What IPython prints with."""

    def text(self, text: str) -> None: ...


class SchemaText(str):
    """A schema as it was written. Evaluated in a notebook it is lines, not a literal."""

    __slots__ = ()

    def make_sheet(self) -> Sheet:
        return Sheet("schema", text=self)

    _repr_html_ = show_html

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(show_text(self))
