"""Errors of a schema or query text: fix the text."""

from __future__ import annotations

from omnigraph.errors.base import OmnigraphError
from omnigraph.source_text import NO_SPAN, SourceText, Span


class SourceError(OmnigraphError):
    """The text of a schema or query is wrong. Knows where, when `span` is given."""

    http_status = 400

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}" if code else message, code=code)
        self.span = span if span is not None and span != NO_SPAN else None
        self.hint = hint
        self.source: SourceText | None = None

    def with_source(self, source: SourceText) -> SourceError:
        """Attach the text, so that the error shows its line. The first text attached stays."""
        if self.source is None:
            self.source = source
            if self.span is not None:
                self.add_note(source.excerpt(self.span, self.hint))
            elif self.hint:
                self.add_note(self.hint)
        return self

    @property
    def location(self) -> tuple[int, int] | None:
        """The 1-based line and column, when both text and span are known."""
        if self.source is None or self.span is None:
            return None
        return self.source.location(self.span)

    @property
    def byte_span(self) -> tuple[int, int] | None:
        """The span in UTF-8 bytes; never empty."""
        if self.source is None or self.span is None:
            return None
        return self.source.byte_span(self.span)

    def render(self) -> str:
        if self.source is not None and self.span is not None:
            return f"{self}\n{self.source.excerpt(self.span, self.hint)}"
        return f"{self}\n{self.hint}" if self.hint else str(self)


class ParseError(SourceError):
    """The text does not follow the grammar, or breaks a rule of one schema file."""

    kind = "parse"
    prefix = "parse error: "


class CatalogError(SourceError):
    """The declarations of a schema do not fit together."""

    kind = "catalog"
    prefix = "catalog error: "


class TypeCheckError(SourceError):
    """A query does not fit the schema. `code` names the rule that it breaks, such as T6."""

    kind = "type"
    prefix = "type error: "


class PlanError(SourceError):
    """A read was asked to run as a mutation, or the reverse."""

    kind = "plan"
    prefix = "plan error: "


class IdentityError(SourceError):
    """A `@rename_from` hint cannot be resolved against the accepted schema."""

    kind = "identity"
    prefix = "schema identity resolution failed: "
