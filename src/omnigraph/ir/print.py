"""Readable text of the typed query, for `explain` and for tests.

$p.title      a property               :year      a parameter
$p            a node, as its id        now()      the instant of the query
#1            a hidden variable
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.ir.expressions import (
    GROUP_VARIABLE,
    NOW_PARAMETER,
    PATH_PROPERTIES,
    SCORE_PROPERTY,
    TYPE_PROPERTY,
    Aggregate,
    AliasRef,
    And,
    Arithmetic,
    Bm25,
    Call,
    Case,
    Collect,
    Compare,
    Constant,
    GroupColumn,
    IsIn,
    IsNull,
    Minus,
    Nearest,
    NodeRef,
    Not,
    Null,
    ObjectRef,
    Or,
    Param,
    Predicate,
    Projected,
    PropertyRef,
    Rrf,
    SameNode,
    SortKey,
    TextMatch,
    Truth,
)
from omnigraph.ir.mutations import (
    SELF,
    Assignment,
    Delete,
    DeleteBound,
    ForEach,
    Insert,
    MutationIR,
    MutationOp,
    PlainOp,
    Update,
    UpdateBound,
    Upsert,
)
from omnigraph.ir.query import (
    HIDDEN_PREFIX,
    HOP_VARIABLE,
    AntiJoin,
    Count,
    Direction,
    EitherMatch,
    Expand,
    Filter,
    Finish,
    Narrow,
    NodeScan,
    Operator,
    OptionalMatch,
    Parameter,
    QueryIR,
    Top,
    WalkMode,
)
from omnigraph.syntax.query_tree import DateText, DateTimeText, ListLiteral, LiteralValue

_INDENT = "  "

_PARAMETER = re.compile(r'"(?:[^"\\]|\\.)*"|(?<!\w):([a-z_]\w*)')
"""A parameter, or a text in which a colon is just that."""


def format_ir(ir: QueryIR | MutationIR) -> str:
    """Return `ir` as indented lines, one operator per line, in the order they run."""
    lines = _read_lines(ir) if isinstance(ir, QueryIR) else _mutation_lines(ir)
    return "\n".join(lines)


def format_predicate(predicate: Predicate) -> str:
    """Return a predicate on one line."""
    match predicate:
        case Compare(left, kind, right):
            return f"{format_expression(left)} {kind} {format_expression(right)}"
        case TextMatch(function, target, query, max_edits):
            arguments = [target, query] + ([max_edits] if max_edits is not None else [])
            return _call(function, arguments)
        case SameNode(left, right):
            return f"{format_variable(left)} is {format_variable(right)}"
        case IsIn(operand, values):
            return f"{format_expression(operand)} in {format_expression(values)}"
        case IsNull(operand):
            return f"{format_expression(operand)} is null"
        case Not(part):
            return f"not ({format_predicate(part)})"
        case And(parts):
            return f"({' and '.join(map(format_predicate, parts))})"
        case Or(parts):
            return f"({' or '.join(map(format_predicate, parts))})"
        case _:
            assert_never(predicate)


def quote_predicate(predicate: Predicate) -> str:
    """The same as a query writes it, for those who wrote it: parameters with `$`."""
    return _PARAMETER.sub(
        lambda found: f"${found[1]}" if found[1] else found[0], format_predicate(predicate)
    )


def format_expression(expression: Projected | SortKey) -> str:
    """Return an expression on one line."""
    match expression:
        case Constant(value):
            return _literal(value)
        case Param(name):
            return "now()" if name == NOW_PARAMETER else f":{name}"
        case PropertyRef(variable, name):
            if variable == SELF:
                return name
            if name == TYPE_PROPERTY:
                return f"type({format_variable(variable)})"
            return _property(variable, name)
        case NodeRef(variable):
            return format_variable(variable)
        case AliasRef(alias):
            return alias
        case Aggregate(function, argument, is_distinct=is_distinct):
            distinct = "distinct " if is_distinct else ""
            return f"{function}({distinct}{format_expression(argument)})"
        case Collect():
            return _collect_text(expression)
        case ObjectRef(variable, fields):
            names = ", ".join(field.property for field in fields)
            return f"{format_variable(variable)} {{ {names} }}"
        case GroupColumn(place):
            return f"{GROUP_VARIABLE}.{place}"
        case Nearest(target, query):
            return _call("nearest", [target, query])
        case Bm25(target, query):
            return _call("bm25", [target, query])
        case Rrf(first, second, k):
            arguments: list[Projected | SortKey] = [first, second]
            return _call("rrf", arguments + ([k] if k is not None else []))
        case Null():
            return "null"
        case Arithmetic(operand, rest):
            terms = "".join(f" {op} {format_expression(each)}" for op, each in rest)
            return f"({format_expression(operand)}{terms})"
        case Minus(operand):
            return f"-{format_expression(operand)}"
        case Call(name, values):
            return _call(name, values)
        case Case(arms, otherwise):
            whens = (
                f"when {format_predicate(condition)} then {format_expression(value)}"
                for condition, value in arms
            )
            return f"case {' '.join(whens)} else {format_expression(otherwise)} end"
        case Truth(predicate):
            return format_predicate(predicate)
        case _:
            assert_never(expression)


def _collect_text(collect: Collect) -> str:
    distinct = "distinct " if collect.is_distinct else ""
    keys = ", ".join(
        f"{format_expression(key)} {'desc' if descending else 'asc'}"
        for key, descending in collect.order
    )
    order = f" order {keys}" if keys else ""
    return f"collect({distinct}{format_expression(collect.argument)}{order})"


def _property(variable: str, name: str) -> str:
    if variable == HOP_VARIABLE:
        return name
    shown = format_variable(variable)
    if name == SCORE_PROPERTY:
        return shown
    function, _, wanted = name.partition("/")
    if function in PATH_PROPERTIES:
        return f"{function.removeprefix(HIDDEN_PREFIX)}({', '.join(filter(None, (shown, wanted)))})"
    return f"{shown}.{name}"


def _call(function: str, arguments: Iterable[Projected | SortKey]) -> str:
    return f"{function}({', '.join(map(format_expression, arguments))})"


def _read_lines(ir: QueryIR) -> Iterator[str]:
    yield _header("read", ir.name, ir.params)
    yield from _operator_lines(ir.pipeline, depth=1)
    for item in ir.returns:
        yield f"{_INDENT}return {format_expression(item.expression)} as {item.column}"
    for order in ir.order:
        direction = "desc" if order.descending else "asc"
        yield f"{_INDENT}order {format_expression(order.expression)} {direction}"
    shown = [item.expression for item in ir.returns]
    if ir.is_grouped and not any(isinstance(each, (Aggregate, Collect)) for each in shown):
        yield f"{_INDENT}distinct"
    if ir.finish is not None:
        yield from (f"{_INDENT}{line}" for line in format_finish(ir.finish))
    yield from (f"{_INDENT}{line}" for line in format_counts(ir.limit, ir.offset))


def format_finish(finish: Finish) -> Iterator[str]:
    """What is done with groups, one step per line."""
    for predicate in finish.having:
        yield f"having {format_predicate(predicate)}"
    for item in finish.returns:
        yield f"show {format_expression(item.expression)} as {item.column}"
    if finish.is_distinct:
        yield "distinct"
    for order in finish.order:
        direction = "desc" if order.descending else "asc"
        yield f"order by {format_expression(order.expression)} {direction}"


def format_counts(limit: Count | None, offset: Count | None) -> Iterator[str]:
    """How many rows are shown, and how many are left out before them."""
    for word, count in (("limit", limit), ("offset", offset)):
        if count is not None:
            yield f"{word} {count if isinstance(count, int) else format_expression(count)}"


def _mutation_lines(ir: MutationIR) -> Iterator[str]:
    yield _header("mutation", ir.name, ir.params)
    if ir.match is not None:
        yield f"{_INDENT}match"
        yield from _operator_lines(ir.match.pipeline, depth=2)
        for item in ir.match.returns:
            yield f"{_INDENT * 2}give {item.column}"
    yield from _statement_lines(ir.ops, depth=1)
    if ir.returned is not None:
        distinct = "distinct " if ir.returned.distinct else ""
        for item in ir.returned.items:
            shown = format_expression(item.expression)
            yield f"{_INDENT}return {distinct}{shown} as {item.column}"


def _statement_lines(ops: Iterable[MutationOp], depth: int) -> Iterator[str]:
    for op in ops:
        if isinstance(op, ForEach):
            how = "in one batch" if op.is_batched else "one by one"
            yield f"{_INDENT * depth}for ${op.variable} in :{op.rows.name}, {how}"
            yield from _statement_lines(op.body, depth + 1)
        else:
            yield f"{_INDENT * depth}{_mutation_text(op)}"


def _header(kind: str, name: str, params: tuple[Parameter, ...]) -> str:
    return f"{kind} {name}({', '.join(map(_format_parameter, params))})"


def _format_parameter(param: Parameter) -> str:
    default = "" if param.default is None else f" = {format_expression(param.default)}"
    return f":{param.name} {param.type}{default}"


def _operator_lines(operators: tuple[Operator, ...], depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    for operator in operators:
        match operator:
            case NodeScan(variable, type_name, filters):
                where = format_where(filters)
                yield f"{indent}scan {format_variable(variable)}: {type_name}{where}"
            case Expand():
                yield f"{indent}{_expand_text(operator)}"
            case Filter(predicate):
                yield f"{indent}filter {format_predicate(predicate)}"
            case AntiJoin(outer_variables, inner):
                yield f"{indent}not, given {_given(outer_variables)}"
                yield from _operator_lines(inner, depth + 1)
            case Narrow(variable, type_name):
                yield f"{indent}narrow {format_variable(variable)} to {type_name}"
            case OptionalMatch(outer_variables, inner):
                yield f"{indent}optional, given {_given(outer_variables)}"
                yield from _operator_lines(inner, depth + 1)
            case EitherMatch(outer_variables, alternatives):
                word = f"either, given {_given(outer_variables)}"
                for inner in alternatives:
                    yield f"{indent}{word}"
                    yield from _operator_lines(inner, depth + 1)
                    word = "or"
            case Top():
                yield from _top_lines(operator, indent)
            case _:
                assert_never(operator)


def _given(variables: tuple[str, ...]) -> str:
    return ", ".join(map(format_variable, variables)) or "nothing"


def _expand_text(expand: Expand) -> str:
    edge = format_hops(
        expand.edge, expand.min_hops, expand.max_hops, expand.mode, expand.hop_filters
    )
    if expand.edge_variable is not None:
        edge = f"${expand.edge_variable}: {edge}"
    if expand.weight is not None:
        edge += f" by {expand.weight}"
    match expand.direction:
        case Direction.OUT:
            arrow = f"-[{edge}]->"
        case Direction.IN:
            arrow = f"<-[{edge}]-"
        case Direction.BOTH:
            arrow = f"<-[{edge}]->"
        case _:
            assert_never(expand.direction)
    target = f"{format_variable(expand.target)}: {expand.target_type}"
    source, where = format_variable(expand.source), format_where(expand.target_filters)
    return f"expand {source} {arrow} {target}{where}"


def format_hops(
    edge: str,
    least: int,
    most: int | None,
    mode: WalkMode,
    filters: tuple[Predicate, ...],
) -> str:
    """Return what a traversal follows, with its bounds."""
    name = edge if mode is WalkMode.REACH else f"{mode} {edge}"
    where = format_where(filters).strip()
    bounds = "" if (least, most) == (1, 1) else f"{least},{'' if most is None else most}"
    inside = " ".join(filter(None, (bounds, where)))
    return f"{name}{{{inside}}}" if inside else name


def _top_lines(top: Top, indent: str) -> Iterator[str]:
    count = top.count if isinstance(top.count, int) else format_expression(top.count)
    named = "" if top.score is None else f" as ${top.score}"
    yield f"{indent}top {count}{named}"
    for each in top.order:
        direction = "desc" if each.descending else "asc"
        yield f"{indent}{_INDENT}by {format_expression(each.expression)} {direction}"


def _mutation_text(op: PlainOp) -> str:
    table = f"{op.entity_kind}:{op.type_name}"
    match op:
        case Insert():
            return f"insert {table} {_format_assignments(op.assignments)}{_as(op.label)}"
        case Upsert():
            return f"upsert {table} {_format_assignments(op.assignments)}{_as(op.label)}"
        case Update():
            values = _format_assignments(op.assignments)
            return f"update {table} {values} where {format_predicate(op.predicate)}{_as(op.label)}"
        case Delete():
            return f"delete {table} where {format_predicate(op.predicate)}{_as(op.label)}"
        case UpdateBound():
            return f"update {table} of {op.target} {_format_assignments(op.assignments)}"
        case DeleteBound():
            return f"delete {table} of {op.target}"
        case _:
            assert_never(op)


def _as(label: str | None) -> str:
    return "" if label is None else f" as ${label}"


def _format_assignments(assignments: tuple[Assignment, ...]) -> str:
    return ", ".join(f"{a.property} := {format_expression(a.value)}" for a in assignments)


def format_where(filters: tuple[Predicate, ...]) -> str:
    """Return ` where …` for a scan or expansion, nothing without filters."""
    return f" where {' and '.join(map(format_predicate, filters))}" if filters else ""


def format_variable(name: str) -> str:
    """Return a variable as a query spells it; a hidden one by its own name."""
    return name if name.startswith(HIDDEN_PREFIX) else f"${name}"


def _literal(value: LiteralValue) -> str:
    match value:
        case DateText(text):
            return f"date({json.dumps(text, ensure_ascii=False)})"
        case DateTimeText(text):
            return f"datetime({json.dumps(text, ensure_ascii=False)})"
        case ListLiteral(items):
            return f"[{', '.join(map(_literal, items))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)
