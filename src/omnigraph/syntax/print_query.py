"""Print a query tree as `.gq` text in canonical form.

Law: parsing the text gives an equal tree. What may be left out is left out (`asc`, empty braces,
`= true` behind a text search), except commas, which are always written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.syntax.query_tree import (
    ROW_LIST,
    AggregateExpr,
    AliasExpr,
    AndTest,
    ArithmeticExpr,
    Binding,
    CaseArm,
    CaseExpr,
    Clause,
    CollectExpr,
    Condition,
    ConditionExpr,
    Count,
    DateText,
    DateTimeText,
    EitherClause,
    Expr,
    FieldDecl,
    FilterClause,
    FunctionExpr,
    FuzzyExpr,
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
    ObjectExpr,
    OptionalClause,
    Ordering,
    OrTest,
    ParamDecl,
    Projection,
    PropertyExpr,
    PropertyMatch,
    QueryDecl,
    QueryTree,
    RrfExpr,
    Stage,
    TextSearchExpr,
    Traversal,
    VariableExpr,
    is_text_search,
)
from omnigraph.syntax.statement_tree import (
    DeleteBound,
    DeleteStatement,
    ForStatement,
    InsertStatement,
    Statement,
    UpdateBound,
    UpdateStatement,
    UpsertStatement,
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
    default = "" if param.default is None else f" = {print_expression(param.default)}"
    return f"${param.name}: {_param_type(param)}{_mark(param)}{default}"


def _param_type(param: ParamDecl) -> str:
    if not param.fields:
        return param.type_name
    fields = (f"{field.name}: {field.type_name}{_mark(field)}" for field in param.fields)
    row = f"{{ {', '.join(fields)} }}"
    return f"[{row}]" if param.type_name == ROW_LIST else row


def _mark(declared: ParamDecl | FieldDecl) -> str:
    return "?" if declared.nullable else ""


def _read(query: QueryDecl) -> Iterator[str]:
    for stage in query.stages:
        yield from _stage(stage)
    yield from _block("match", _clauses(query.match))
    yield from _returns(query)
    if query.having:
        yield from _block("having", map(_condition_clause, query.having))
    if query.order:
        yield f"order {{ {_orderings(query.order)} }}"
    if query.limit is not None:
        yield f"limit {_count(query.limit)}"
    if query.offset is not None:
        yield f"offset {_count(query.offset)}"


def _stage(stage: Stage) -> Iterator[str]:
    score = "" if stage.score is None else f" as ${stage.score}"
    head = f"top {_count(stage.count)} by {_orderings(stage.keys)}{score}"
    yield from _block(head, _clauses(stage.clauses))


def _count(count: Count) -> str:
    return str(count) if isinstance(count, int) else print_expression(count)


def _returns(query: QueryDecl) -> Iterator[str]:
    *lines, last = map(_projection, query.returns)
    word = "return distinct" if query.distinct else "return"
    yield from _block(word, [*(f"{line}," for line in lines), last])


def _mutation(query: QueryDecl) -> Iterator[str]:
    if query.match:
        yield from _block("match", _clauses(query.match))
    for statement in query.mutations:
        yield from _statement(statement)
    if query.returns:
        yield from _returns(query)


def _clauses(clauses: Iterable[Clause]) -> Iterator[str]:
    return (line for clause in clauses for line in _clause(clause))


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
            yield _condition_clause(clause)
        case Negation(clauses):
            yield from _block("not", _clauses(clauses))
        case OptionalClause(clauses):
            yield from _block("optional", _clauses(clauses))
        case EitherClause(alternatives):
            for number, each in enumerate(alternatives):
                yield from _block("or" if number else "either", _clauses(each))
        case unreachable:
            assert_never(unreachable)


def _condition_clause(condition: Condition) -> str:
    text = _condition(condition)
    # A sign at the start of a clause would continue the clause before it.
    return f"({text})" if text.startswith("-") else text


def _traversal(traversal: Traversal) -> str:
    edge = f"<{traversal.edge}>" if traversal.undirected else traversal.edge
    if traversal.shortest is not None:
        edge = f"{traversal.shortest} {edge}"
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable}: {edge}"
    weight = "" if traversal.weight is None else f" by {traversal.weight}"
    return f"${traversal.source} {edge}{_bounds(traversal)}{weight} ${traversal.target}"


def _bounds(traversal: Traversal) -> str:
    parts = []
    if traversal.has_bounds:
        maximum = "" if traversal.max_hops is None else traversal.max_hops
        parts.append(f"{traversal.min_hops},{maximum}")
    if traversal.hop_filter is not None:
        parts.append(f"where {_condition(traversal.hop_filter)}")
    return f"{{{' '.join(parts)}}}" if parts else ""


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
    return f"{left} {clause.op} {right}"


def _is_constant(clause: FilterClause) -> bool:
    """Whether the right side is one atom that no variable starts."""
    return isinstance(clause.right, (LiteralExpr, NowExpr)) and not _has_sign(clause.right)


def _projection(projection: Projection) -> str:
    alias = "" if projection.alias is None else f" as {projection.alias}"
    return f"{print_expression(projection.expression)}{alias}"


def _orderings(orderings: Iterable[Ordering]) -> str:
    return ", ".join(map(_ordering, orderings))


def _ordering(ordering: Ordering) -> str:
    return f"{print_expression(ordering.expression)}{' desc' if ordering.descending else ''}"


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case InsertStatement(type_name, assignments, label):
            yield f"insert {type_name} {_assignments(assignments)}{_label(label)}"
        case UpsertStatement(type_name, assignments, label):
            yield f"upsert {type_name} {_assignments(assignments)}{_label(label)}"
        case UpdateStatement(type_name, assignments, where, label):
            head = f"update {type_name} set {_assignments(assignments)}"
            yield f"{head} where {_condition(where)}{_label(label)}"
        case DeleteStatement(type_name, where, label):
            yield f"delete {type_name} where {_condition(where)}{_label(label)}"
        case UpdateBound(variable, assignments):
            yield f"update ${variable} set {_assignments(assignments)}"
        case DeleteBound(variable):
            yield f"delete ${variable}"
        case ForStatement(variable, rows, body):
            lines = (line for each in body for line in _statement(each))
            yield from _block(f"for ${variable} in ${rows}", lines)
        case unreachable:
            assert_never(unreachable)


def _label(label: str | None) -> str:
    return "" if label is None else f" as ${label}"


def _assignments(assignments: Iterable[PropertyMatch]) -> str:
    pairs = (f"{pair.property}: {print_expression(pair.value)}" for pair in assignments)
    return f"{{ {', '.join(pairs)} }}"


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
        case AggregateExpr(function, argument, distinct):
            return f"{function}({_distinct(distinct)}{print_expression(argument)})"
        case CollectExpr(argument, distinct, order):
            keys = f" order {_orderings(order)}" if order else ""
            return f"collect({_distinct(distinct)}{print_expression(argument)}{keys})"
        case ObjectExpr(variable, properties):
            return f"${variable} {{ {'*' if properties is None else ', '.join(properties)} }}"
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


def _distinct(distinct: bool) -> str:
    return "distinct " if distinct else ""


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
