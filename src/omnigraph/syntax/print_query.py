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
    AndTest,
    ArithmeticExpr,
    Binding,
    CaseArm,
    CaseExpr,
    Clause,
    Condition,
    ConditionExpr,
    DateText,
    DateTimeText,
    DeleteStatement,
    Expr,
    FilterClause,
    FunctionExpr,
    FuzzyExpr,
    InsertStatement,
    ListLiteral,
    LiteralExpr,
    LiteralValue,
    MinusExpr,
    NearestExpr,
    Negation,
    NotTest,
    NowExpr,
    NullExpr,
    NullTest,
    Ordering,
    OrTest,
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
    is_text_search,
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
        case FilterClause() | NullTest() | NotTest() | AndTest() | OrTest():
            text = _condition(clause)
            # A sign at the start of a clause would continue the clause before it.
            yield f"({text})" if text.startswith("-") else text
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


def _condition(condition: Condition) -> str:
    match condition:
        case FilterClause():
            return _comparison(condition)
        case NullTest(operand, is_negated):
            return f"{print_expression(operand)} is {'not ' if is_negated else ''}null"
        case NotTest(inner):
            return f"not ({_condition(inner)})"
        case AndTest(parts):
            return " and ".join(_enclose(part, (AndTest, OrTest)) for part in parts)
        case OrTest(parts):
            return " or ".join(_enclose(part, (OrTest,)) for part in parts)
        case unreachable:
            assert_never(unreachable)


def _enclose(part: Condition, weaker: tuple[type[Condition], ...]) -> str:
    """A part of a condition, in parentheses when it would fall apart without."""
    return f"({_condition(part)})" if isinstance(part, weaker) else _condition(part)


def _comparison(clause: FilterClause) -> str:
    left, right = print_expression(clause.left), print_expression(clause.right)
    if is_text_search(clause):
        return left
    # Behind a bare variable, a word that is followed by another variable is an edge.
    if clause.op.is_word and isinstance(clause.left, VariableExpr) and not _is_constant(clause):
        left = f"({left})"
    if left.endswith("null") and clause.op.value.startswith(">"):
        # `<null>` is an edge, so `null` before a `>` is a name.
        left = f"({left})"
    if left.endswith("null") and clause.op.value.startswith(">"):
        # `<null>` is an edge, so `null` before a `>` is a name.
        left = f"({left})"
    return f"{left} {clause.op} {right}"


def _is_constant(clause: FilterClause) -> bool:
    """Whether the right side is one atom that no variable starts."""
    return isinstance(clause.right, (LiteralExpr, NowExpr)) and not _has_sign(clause.right)


def _projection(projection: Projection) -> str:
    alias = "" if projection.alias is None else f" as {projection.alias}"
    return f"{print_expression(projection.expression)}{alias}"


def _ordering(ordering: Ordering) -> str:
    return f"{print_expression(ordering.expression)}{' desc' if ordering.descending else ''}"


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
    pairs = (f"{pair.property}: {print_expression(pair.value)}" for pair in assignments)
    return f"{{ {', '.join(pairs)} }}"


def _where(predicate: Predicate) -> str:
    return f"where {predicate.property} {predicate.op} {print_expression(predicate.value)}"


def print_expression(expression: Expr) -> str:
    """Return the text of one expression."""
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
        case NullExpr():
            return "null"
        case ArithmeticExpr():
            return _arithmetic(expression)
        case MinusExpr(operand):
            return f"-{_operand(operand, ArithmeticExpr)}"
        case FunctionExpr(name, arguments):
            return _call(name, *arguments)
        case CaseExpr(arms, otherwise):
            return _case(arms, otherwise)
        case ConditionExpr(condition):
            return _condition(condition)
        case unreachable:
            assert_never(unreachable)


def _arithmetic(expression: ArithmeticExpr) -> str:
    def write(operand: Expr) -> str:
        is_stronger = isinstance(operand, ArithmeticExpr) and not operand.is_additive
        if expression.is_additive and is_stronger:
            return print_expression(operand)
        return _operand(operand, ArithmeticExpr)

    rest = (f" {op} {write(operand)}" for op, operand in expression.rest)
    return write(expression.first) + "".join(rest)


def _operand(operand: Expr, weaker: type[Expr]) -> str:
    text = print_expression(operand)
    return f"({text})" if isinstance(operand, weaker) else text


def _case(arms: tuple[CaseArm, ...], otherwise: Expr | None) -> str:
    whens = (f"when {_condition(arm.condition)} then {print_expression(arm.value)}" for arm in arms)
    last = "" if otherwise is None else f" else {print_expression(otherwise)}"
    return f"case {' '.join(whens)}{last} end"


def _has_sign(literal: LiteralExpr | NowExpr) -> bool:
    return isinstance(literal, LiteralExpr) and _literal(literal.value).startswith("-")


def _call(function: str, *arguments: Expr | None) -> str:
    written = (print_expression(argument) for argument in arguments if argument is not None)
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
