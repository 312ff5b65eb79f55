"""Diagnose: everything that is wrong with a text, and exactly where.

The parser stops at the first mistake of a file. The queries around the wrong one are then read on
their own, so that a query that is being typed hides nothing of the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.compiler.check_file import CheckedQuery, check_file
from omnigraph.compiler.codes import Severity
from omnigraph.compiler.compile import parse_file
from omnigraph.compiler.lint import list_findings, list_warnings
from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError, ParseError, SourceError
from omnigraph.lsp.scan import find_queries
from omnigraph.source_text import Span
from omnigraph.syntax import parse_schema
from omnigraph.syntax.query_tree import QueryDecl


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """`code` is that of a rule, where it has one; a text that does not parse is `Q000`."""

    span: Span
    severity: Severity
    message: str
    code: str | None = None

    def move(self, start: int) -> Diagnostic:
        """The same, of a text that begins at `start` of another."""
        span = Span(self.span.start + start, self.span.end + start)
        return Diagnostic(span, self.severity, self.message, self.code)


def diagnose_schema(text: str) -> list[Diagnostic]:
    """The first mistake of a `.pg` text; later ones depend on it."""
    try:
        build_catalog(parse_schema(text))
    except SourceError as error:
        return [_from_error(error, Span(0, 0))]
    return []


def diagnose_queries(text: str, catalog: Catalog | None) -> list[Diagnostic]:
    """Every mistake of a `.gq` text and every finding of lint; without a schema, of its syntax."""
    try:
        queries = parse_file(text, "query.gq").queries
    except ParseError as error:
        wrong = _from_error(error, Span(0, 0))
        return [wrong, *_diagnose_others(text, wrong.span, catalog)]
    return [] if catalog is None else list(_check(queries, catalog))


def _diagnose_others(text: str, wrong: Span, catalog: Catalog | None) -> Iterator[Diagnostic]:
    for query in find_queries(text):
        # What begins where the text goes wrong is not to blame: the query before it has no end.
        if query.start < wrong.start <= query.end:
            continue
        part = text[query.start : query.end]
        try:
            queries = parse_file(part, "query.gq").queries
        except ParseError as error:
            yield _from_error(error, Span(0, 0)).move(query.start)
            continue
        if catalog is not None:
            for found in _check(queries, catalog):
                yield found.move(query.start)


def _check(queries: tuple[QueryDecl, ...], catalog: Catalog) -> Iterator[Diagnostic]:
    checked = list(check_file(queries, catalog))
    for each in checked:
        yield from _diagnose_query(each)
    names = {each.query.name: each.query.span for each in reversed(checked)}
    for finding in list_findings(checked, catalog):
        if finding.severity != "error":
            for name in finding.query_names:
                yield Diagnostic(names[name], finding.severity, finding.message, finding.code)


def _diagnose_query(checked: CheckedQuery) -> Iterator[Diagnostic]:
    at = checked.query.span
    if checked.error is not None:
        yield _from_error(checked.error, at)
    for refusal in checked.typed.refusals if checked.typed is not None else ():
        error = refusal.error()
        yield Diagnostic(refusal.span or at, "error", _text(error), error.code or refusal.code)
    for warning in list_warnings(checked):
        yield Diagnostic(at, "warning", warning)


def _from_error(error: OmnigraphError, otherwise: Span) -> Diagnostic:
    span = error.span if isinstance(error, SourceError) and error.span else otherwise
    code = error.code or ("Q000" if isinstance(error, ParseError) else None)
    return Diagnostic(span, "error", _text(error), code)


def _text(error: OmnigraphError) -> str:
    """The message without its code, which editors show beside it, and with its hint."""
    message = error.message.removeprefix(f"{error.code}: ")
    hint = error.hint if isinstance(error, SourceError) else None
    return f"{message}\n{hint}" if hint else message
