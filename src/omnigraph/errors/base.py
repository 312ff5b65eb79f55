"""The base of every error, and the hint that names a near word."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar


def did_you_mean(wrong: str, known: Iterable[str]) -> str | None:
    """Return a hint naming the known word nearest to `wrong`, if one is near."""
    by_folded = {word.lower(): word for word in sorted(known, reverse=True)}
    near = difflib.get_close_matches(wrong.lower(), by_folded, n=1, cutoff=0.6)
    return f"did you mean `{by_folded[near[0]]}`?" if near else None


def with_suggestion(message: str, wrong: str, known: Iterable[str]) -> str:
    """`message`, with the known word nearest to `wrong` behind it, if one is near."""
    hint = did_you_mean(wrong, known)
    return f"{message} — {hint}" if hint else message


class OmnigraphError(Exception):
    """Base of every error that Omnigraph raises on purpose."""

    kind: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    prefix: ClassVar[str] = ""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        # A quoted value may not be valid Unicode, and a message has to fit terminals and responses.
        message = message.encode(errors="backslashreplace").decode()
        self.message = message
        self.code = code
        super().__init__(f"{self.prefix}{message}")

    def render(self) -> str:
        """Return the text a terminal shows."""
        return str(self)

    def add_outcome(self, outcome: str) -> None:
        """Add what happened to the data to the text, unless it is there already."""
        if outcome not in self.message:
            self.change_text(lambda text: f"{text}; {outcome}")

    def change_text(self, change: Callable[[str], str]) -> None:
        """Replace the text by what `change` makes of it."""
        self.message = change(self.message)
        self.args = (change(str(self.args[0])), *self.args[1:])

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback through our code."""
        from omnigraph.short_traceback import format_short

        return format_short(self, self.render())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all attributes: the signature of `__init__` differs from class to class."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    kind: type[OmnigraphError], args: tuple[Any, ...], facts: Mapping[str, Any]
) -> OmnigraphError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error
