"""Source text: a named text, spans of it, and the excerpt with carets that an error shows."""

from __future__ import annotations

from omnigraph.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters of one source text."""

    start: int
    end: int


NO_SPAN = Span(-1, -1)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A named text, so that an error can quote the line it is about."""

    name: str
    text: str

    def location(self, span: Span) -> tuple[int, int]:
        """Return the 1-based line and column of where `span` starts."""
        line_start = self.text.rfind("\n", 0, span.start) + 1
        return self.text.count("\n", 0, span.start) + 1, span.start - line_start + 1

    def byte_span(self, span: Span) -> tuple[int, int]:
        """Return `span` in UTF-8 bytes; never empty."""
        before = len(self.text[: span.start].encode(errors="replace"))
        inside = len(self.text[span.start : span.end].encode(errors="replace"))
        return before, before + max(1, inside)

    def excerpt(self, span: Span, hint: str | None = None) -> str:
        """Quote the line of `span`, underline it, and put `hint` behind the underline."""
        # A span at the end of the text is shown as one character behind it.
        start = min(span.start, len(self.text))
        span = Span(start, max(span.end, start + 1))
        line, column = self.location(span)
        line_start = span.start - column + 1
        line_end = self.text.find("\n", line_start)
        quoted = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        # A line can be megabytes long: quote only the characters around the span.
        first = max(0, column - 1 - 80)
        shown = quoted[first : first + 160].expandtabs(1).rstrip("\r")
        width = max(1, min(span.end - span.start, len(shown) - (column - 1 - first)))
        gutter = " " * len(str(line))
        underline = " " * (column - 1 - first) + "^" * width
        return "\n".join(
            [
                f"{gutter}--> {self.name}:{line}:{column}",
                f"{gutter} |",
                f"{line} | {shown}",
                f"{gutter} | {underline}" + (f" {hint}" if hint else ""),
            ]
        )
