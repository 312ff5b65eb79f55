"""Check: a query tree against a catalogue. The first error of a query is the one reported.

parameters → check_match (bindings, check_traversals, check_filters, nested `not`)
           → check_returns → check_order            for a read
           → check_mutations                         for a mutation
"""

from __future__ import annotations

import re

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check_match import check_pattern
from omnigraph.compiler.check_mutations import check_mutation
from omnigraph.compiler.check_order import check_order
from omnigraph.compiler.check_returns import check_returns
from omnigraph.compiler.check_stages import check_stages
from omnigraph.compiler.not_yet import not_yet
from omnigraph.compiler.scope import RowFields, Scope
from omnigraph.compiler.typed import TypedQuery, TypedRead
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import Parameter, RowType
from omnigraph.syntax.query_tree import ROW_LIST, FieldDecl, ParamDecl, QueryDecl, VariableExpr
from omnigraph.types import PropertyType, Scalar

_VECTOR = re.compile(r"Vector\(\s*([0-9]{1,18})\s*\)")
_LIST = re.compile(r"\[\s*(\w+)\s*\]")
_SCALARS = {scalar.value: scalar for scalar in Scalar if scalar is not Scalar.VECTOR}


def check_query(query: QueryDecl, catalog: Catalog) -> TypedQuery:
    """Resolve every name of `query` and type every expression.

    Raises:
        TypeCheckError: The query does not fit the schema; `code` says which rule it breaks.
    """
    _refuse_unbuilt(query)
    params = _check_params(query.params)
    scope = _make_scope(catalog, params)
    if query.is_mutation:
        return check_mutation(query, params, scope)
    stages = check_stages(query.stages, scope)
    pattern = check_pattern(query.match, scope)
    returns = check_returns(query.returns, scope)
    order, order_refusals = check_order(query, returns, scope)
    return TypedRead(
        name=query.name,
        params=params,
        pattern=pattern,
        returns=returns.items,
        order=order,
        limit=query.limit if isinstance(query.limit, int) else None,
        refusals=returns.refusals + order_refusals,
        stages=stages,
    )


def _refuse_unbuilt(query: QueryDecl) -> None:
    for is_used, construct in (
        (query.distinct, "return distinct"),
        (query.having, "having"),
        (query.offset is not None, "offset"),
        (isinstance(query.limit, VariableExpr), "limit from a parameter"),
        (any(param.default is not None for param in query.params), "default of a parameter"),
    ):
        if is_used:
            raise not_yet(construct)


def _make_scope(catalog: Catalog, params: tuple[Parameter, ...]) -> Scope:
    values = {each.name: each.type for each in params if isinstance(each.type, PropertyType)}
    rows = {each.name: RowFields(each.type) for each in params if isinstance(each.type, RowType)}
    return Scope(catalog, values, rows=rows)


def _check_params(declared: tuple[ParamDecl, ...]) -> tuple[Parameter, ...]:
    seen: set[str] = set()
    for param in declared:
        if param.name == NOW_PARAMETER:
            raise TypeCheckError(
                f"`${NOW_PARAMETER}` is reserved: it carries now()", span=param.span
            )
        if param.name in seen:
            raise TypeCheckError(f"parameter `${param.name}` is declared twice", span=param.span)
        seen.add(param.name)
    return tuple(Parameter(param.name, _check_type(param)) for param in declared)


def _check_type(param: ParamDecl) -> PropertyType | RowType:
    if not param.fields:
        return _param_type(param)
    names = [each.name for each in param.fields]
    for each in param.fields:
        if names.count(each.name) > 1:
            raise TypeCheckError(
                f"`${param.name}` declares the field `{each.name}` twice", span=each.span
            )
    fields = tuple(Parameter(each.name, _param_type(each)) for each in param.fields)
    return RowType(fields, is_list=param.type_name == ROW_LIST, nullable=param.nullable)


def _param_type(param: ParamDecl | FieldDecl) -> PropertyType:
    vector = _VECTOR.fullmatch(param.type_name)
    if vector is not None:
        return PropertyType(Scalar.VECTOR, nullable=param.nullable, dimension=int(vector[1]))
    listed = _LIST.fullmatch(param.type_name)
    scalar = _SCALARS.get(listed[1] if listed else param.type_name)
    if scalar is None or (listed and scalar is Scalar.BLOB):
        raise TypeCheckError(
            f"`${param.name}` has the unknown parameter type {param.type_name}",
            span=param.span,
            hint=did_you_mean(param.type_name, _SCALARS),
        )
    return PropertyType(scalar, is_list=listed is not None, nullable=param.nullable)
