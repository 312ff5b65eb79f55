"""Print a query tree as `.gq` text in canonical form.

Law: parsing the text gives an equal tree. What may be left out is left out (`asc`, empty braces,
`= true` behind a text search), except commas, which are always written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.syntax.query_tree import (
    AggregateExpr,
    AliasExpr,
    Binding,
    Clause,
    CompareOp,
    DateText,
    DateTimeText,
    DeleteStatement,
    Expr,
    FilterClause,
    FuzzyExpr,
    InsertStatement,
    ListLiteral,
    LiteralExpr,
    LiteralValue,
    NearestExpr,
    Negation,
    NowExpr,
    Ordering,
    ParamDecl,
    Predicate,
    Projection,
    PropertyExpr,
    PropertyMatch,
    QueryDecl,
    QueryTree,
    RrfExpr,
    Statement,
    TextSearchExpr,
    Traversal,
    UpdateStatement,
    VariableExpr,
)
from omnigraph.syntax.write_literals import write_literal, write_string

_INDENT = "    "


def print_query(tree: QueryTree) -> str:
    """Return the canonical text of a query file."""
    return "\n".join(map(_query, tree.queries))


def _query(query: QueryDecl) -> str:
    head = f"query {query.name}({', '.join(map(_param, query.params))})"
    for name, text in (("description", query.description), ("instruction", query.instruction)):
        if text is not None:
            head += f" @{name}({write_string(text)})"
    body = _mutation(query) if query.is_mutation else _read(query)
    return "\n".join([f"{head} {{", *_indent(body), "}\n"])


def _param(param: ParamDecl) -> str:
    return f"${param.name}: {param.type_name}{'?' if param.nullable else ''}"


def _read(query: QueryDecl) -> Iterator[str]:
    yield from _block("match", (line for clause in query.match for line in _clause(clause)))
    *lines, last = map(_projection, query.returns)
    yield from _block("return", [*(f"{line}," for line in lines), last])
    if query.order:
        yield f"order {{ {', '.join(map(_ordering, query.order))} }}"
    if query.limit is not None:
        yield f"limit {query.limit}"


def _mutation(query: QueryDecl) -> Iterator[str]:
    for statement in query.mutations:
        yield _statement(statement)


def _block(word: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{word} {{"
    yield from _indent(lines)
    yield "}"


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in lines)


def _clause(clause: Clause) -> Iterator[str]:
    match clause:
        case Binding(variable, type_name, matches):
            braces = f" {_assignments(matches)}" if matches else ""
            yield f"${variable}: {type_name}{braces}"
        case Traversal():
            yield _traversal(clause)
        case FilterClause():
            yield _filter(clause)
        case Negation(clauses):
            inner = (line for clause in clauses for line in _clause(clause))
            yield from _block("not", inner)
        case unreachable:
            assert_never(unreachable)


def _traversal(traversal: Traversal) -> str:
    edge = f"<{traversal.edge}>" if traversal.undirected else traversal.edge
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable}: {edge}"
    if traversal.has_bounds:
        maximum = "" if traversal.max_hops is None else traversal.max_hops
        edge += f"{{{traversal.min_hops},{maximum}}}"
    return f"${traversal.source} {edge} ${traversal.target}"


def _filter(clause: FilterClause) -> str:
    if _is_text_search(clause):
        return _expression(clause.left)
    return f"{_expression(clause.left)} {clause.op} {_expression(clause.right)}"


def _is_text_search(clause: FilterClause) -> bool:
    match clause:
        case FilterClause(
            TextSearchExpr("search" | "match_text") | FuzzyExpr(),
            CompareOp.EQUAL,
            LiteralExpr(True),
        ):
            return True
    return False


def _projection(projection: Projection) -> str:
    alias = "" if projection.alias is None else f" as {projection.alias}"
    return f"{_expression(projection.expression)}{alias}"


def _ordering(ordering: Ordering) -> str:
    return f"{_expression(ordering.expression)}{' desc' if ordering.descending else ''}"


def _statement(statement: Statement) -> str:
    match statement:
        case InsertStatement(type_name, assignments):
            return f"insert {type_name} {_assignments(assignments)}"
        case UpdateStatement(type_name, assignments, where):
            return f"update {type_name} set {_assignments(assignments)} {_where(where)}"
        case DeleteStatement(type_name, where):
            return f"delete {type_name} {_where(where)}"
        case unreachable:
            assert_never(unreachable)


def _assignments(assignments: Iterable[PropertyMatch]) -> str:
    pairs = (f"{pair.property}: {_expression(pair.value)}" for pair in assignments)
    return f"{{ {', '.join(pairs)} }}"


def _where(predicate: Predicate) -> str:
    return f"where {predicate.property} {predicate.op} {_expression(predicate.value)}"


def _expression(expression: Expr) -> str:
    match expression:
        case LiteralExpr(value):
            return _literal(value)
        case VariableExpr(name):
            return f"${name}"
        case NowExpr():
            return "now()"
        case PropertyExpr(variable, name):
            return f"${variable}.{name}"
        case NearestExpr(target, query):
            return _call("nearest", target, query)
        case TextSearchExpr(function, target, query):
            return _call(function, target, query)
        case FuzzyExpr(target, query, max_edits):
            return _call("fuzzy", target, query, max_edits)
        case RrfExpr(first, second, k):
            return _call("rrf", first, second, k)
        case AggregateExpr(function, argument):
            return _call(function, argument)
        case AliasExpr(name):
            return name
        case unreachable:
            assert_never(unreachable)


def _call(function: str, *arguments: Expr | None) -> str:
    written = (_expression(argument) for argument in arguments if argument is not None)
    return f"{function}({', '.join(written)})"


def _literal(value: LiteralValue) -> str:
    match value:
        case DateText(text):
            return f"date({write_string(text)})"
        case DateTimeText(text):
            return f"datetime({write_string(text)})"
        case ListLiteral(items):
            return f"[{', '.join(map(_literal, items))}]"
        case scalar:
            return write_literal(scalar)
