"""Lint: every query of a file against a schema, without running any.

    Q000   error     the file does not parse; nothing else is looked at
    L201   warning   a node type is updated, and no update sets this optional property
    L301   error     a mutation both adds and deletes
    L302   error     an update assigns a key member
    L303   error     an order names an alias that no projection has
    L304   error     a projection that no row can hold
    L305   warning   a filter undoes an `optional` (lint_patterns.py)
    L306   warning   two `optional` blocks multiply what is counted
    L307   info      a parameter that may be null is compared (lint_nulls.py)
    L308   warning   a stage over several node variables: n counts combinations
    L309   info      a denial drops the rows in which a property is null

A type error belongs to the result of its query, and the other queries are still checked. The four
L3 codes are findings as well as the query's error, and count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from omnigraph.catalog.model import Catalog, NodeType
from omnigraph.compiler.check_file import CheckedQuery, check_file
from omnigraph.compiler.codes import LINT_CODES, Severity
from omnigraph.compiler.compile import QueryKind, parse_file
from omnigraph.compiler.describe import Operation, describe
from omnigraph.compiler.lint_nulls import lint_negatives, lint_parameters
from omnigraph.compiler.lint_patterns import lint_patterns
from omnigraph.compiler.lint_stages import count_combinations
from omnigraph.compiler.lower import lower_read
from omnigraph.compiler.typed import Refusal, TypedMutation, TypedRead
from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError, SourceError
from omnigraph.ir.mutations import Update, UpdateBound
from omnigraph.json_form import JsonForm, to_json, without_empty
from omnigraph.source_text import SourceText

Status: TypeAlias = Literal["ok", "error"]

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Finding(JsonForm):
    """Something about the file as a whole, or about one type or property."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return without_empty(JsonForm.to_json(self))


@dataclass(frozen=True, slots=True)
class QueryResult(JsonForm):
    """What lint says about one query. `operation` is there for a query that can run."""

    name: str
    kind: QueryKind
    error: str | None = None
    warnings: tuple[str, ...] = ()
    operation: Operation | None = None

    @property
    def status(self) -> Status:
        return "ok" if self.error is None else "error"

    def to_json(self) -> dict[str, Any]:
        optional = {
            "warnings": to_json(self.warnings),
            "error": self.error,
            "operation": to_json(self.operation),
        }
        known = {"name": self.name, "kind": self.kind, "status": self.status}
        return known | without_empty(optional)


@dataclass(frozen=True, slots=True)
class LintReport:
    """Everything lint found. `errors` counts each problem once."""

    schema_source: Mapping[str, str]
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]
    errors: int
    warnings: int
    infos: int

    @property
    def status(self) -> Status:
        return "error" if self.errors else "ok"

    @property
    def queries_processed(self) -> int:
        return len(self.results)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "schema_source": dict(self.schema_source),
            "query_path": self.query_path,
            "queries_processed": self.queries_processed,
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": to_json(self.results),
            "findings": to_json(self.findings),
        }


def lint(
    catalog: Catalog, source: str, *, query_path: str, schema_source: Mapping[str, str]
) -> LintReport:
    """Check every query of `source`. `schema_source` says where the schema came from."""
    try:
        tree = parse_file(source, query_path)
    except ParseError as error:
        finding = _finding("Q000", error.render())
        return _report(schema_source, query_path, [], [finding], type_errors=0)
    checked = list(check_file(tree.queries, catalog))
    for item in checked:
        if isinstance(item.error, SourceError):
            item.error.with_source(SourceText(query_path, source))
    results = [_result(item, catalog, SourceText(query_path, source)) for item in checked]
    type_errors = sum(item.error is not None for item in checked)
    findings = list_findings(checked, catalog)
    return _report(schema_source, query_path, results, findings, type_errors=type_errors)


def list_findings(checked: Sequence[CheckedQuery], catalog: Catalog) -> list[Finding]:
    """What there is to say about the queries of a file beside their type errors."""
    return [
        *_refusal_findings(checked),
        *_never_updated(checked, catalog),
        *_pattern_findings(checked),
        *_combinations(checked),
        *_null_findings(checked),
    ]


def list_warnings(checked: CheckedQuery) -> Iterator[str]:
    """The warnings about one query that have no code."""
    if checked.is_repeated:
        yield f"query '{checked.query.name}' is declared before; only the first one can be run"
    if checked.query.is_mutation and not checked.query.params:
        yield "mutation declares no params"


def _report(
    schema_source: Mapping[str, str],
    query_path: str,
    results: list[QueryResult],
    findings: list[Finding],
    *,
    type_errors: int,
) -> LintReport:
    found = {s: sum(finding.severity == s for finding in findings) for s in _SEVERITIES}
    return LintReport(
        schema_source=schema_source,
        query_path=query_path,
        results=tuple(results),
        findings=tuple(sorted(findings, key=_finding_order)),
        errors=found["error"] + type_errors,
        warnings=found["warning"] + sum(len(result.warnings) for result in results),
        infos=found["info"],
    )


def _finding_order(finding: Finding) -> tuple[int, str, str, str]:
    severity = _SEVERITIES.index(finding.severity)
    return severity, finding.type_name or "", finding.property or "", finding.message


def _result(checked: CheckedQuery, catalog: Catalog, source: SourceText) -> QueryResult:
    query, typed = checked.query, checked.typed
    kind: QueryKind = "mutation" if query.is_mutation else "read"
    operation = None
    error = None if checked.error is None else checked.error.render()
    if typed is not None and typed.refusals:
        refusal = typed.refusals[0].error()
        if isinstance(refusal, SourceError):
            refusal.with_source(source)
        error = refusal.render()
    elif typed is not None:
        ir = lower_read(typed) if isinstance(typed, TypedRead) else typed.ir
        operation = describe(ir, catalog)
    return QueryResult(query.name, kind, error, tuple(list_warnings(checked)), operation)


def _finding(code: str, message: str, **about: Any) -> Finding:
    return Finding(LINT_CODES[code].severity, code, message, **about)


def _refusal_findings(checked: Iterable[CheckedQuery]) -> Iterator[Finding]:
    for item in checked:
        for refusal in item.typed.refusals if item.typed is not None else ():
            yield _refusal_finding(refusal, item.query.name)


def _refusal_finding(refusal: Refusal, query_name: str) -> Finding:
    return _finding(
        refusal.code,
        f"query '{query_name}': {refusal.message}",
        type_name=refusal.type_name,
        property=refusal.property,
        query_names=(query_name,),
    )


def _pattern_findings(checked: Iterable[CheckedQuery]) -> Iterator[Finding]:
    for item in checked:
        for code, message in lint_patterns(item.typed) if isinstance(item.typed, TypedRead) else ():
            name = item.query.name
            yield _finding(code, f"query '{name}': {message}", query_names=(name,))


def _combinations(checked: Iterable[CheckedQuery]) -> Iterator[Finding]:
    """L308."""
    for item in checked:
        if isinstance(item.typed, TypedRead) and item.is_valid:
            for message in count_combinations(item.typed):
                text = f"query '{item.query.name}': {message}"
                yield _finding("L308", text, query_names=(item.query.name,))


def _null_findings(checked: Iterable[CheckedQuery]) -> Iterator[Finding]:
    """L307 and L309."""
    for item in checked:
        name, typed = item.query.name, item.typed
        if typed is None:
            continue
        for text in lint_parameters(typed):
            yield _finding("L307", f"query '{name}': {text}", query_names=(name,))
        for text in lint_negatives(typed) if isinstance(typed, TypedRead) else ():
            yield _finding("L309", f"query '{name}': {text}", query_names=(name,))


def _never_updated(checked: Iterable[CheckedQuery], catalog: Catalog) -> Iterator[Finding]:
    """L201. Only queries that can run count, both as updating a type and as setting a property."""
    assigned: dict[str, set[str]] = {}
    updating: dict[str, set[str]] = {}
    for item in checked:
        for op in _updates_of_nodes(item):
            names = {assignment.property for assignment in op.assignments}
            assigned.setdefault(op.type_name, set()).update(names)
            updating.setdefault(op.type_name, set()).add(item.query.name)
    for type_name, properties in assigned.items():
        for name in _updatable(catalog.nodes[type_name]):
            if name not in properties:
                yield _finding(
                    "L201",
                    f"{type_name}.{name} exists in schema but no update query sets it",
                    type_name=type_name,
                    property=name,
                    query_names=tuple(sorted(updating[type_name])),
                )


def _updates_of_nodes(checked: CheckedQuery) -> Iterator[Update | UpdateBound]:
    if checked.is_valid and isinstance(checked.typed, TypedMutation):
        for op in checked.typed.ir.list_plain_ops():
            if isinstance(op, (Update, UpdateBound)) and op.entity_kind == "node":
                yield op


def _updatable(node: NodeType) -> Iterator[str]:
    for found in node.properties.values():
        if found.type.nullable and found.embed is None and found.name not in (node.key or ()):
            yield found.name
