"""Parameters: their types, the fields of rows, and defaults (T46)."""

from __future__ import annotations

import re

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check_expressions import check_scalar
from omnigraph.compiler.scope import RowFields, Scope
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import NOW_PARAMETER, Constant, Null
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.ir.query import Parameter, RowType
from omnigraph.syntax.query_tree import ROW_LIST, FieldDecl, ListLiteral, ParamDecl
from omnigraph.types import INTEGER_BOUNDS, PropertyType, Scalar

_VECTOR = re.compile(r"Vector\(\s*([0-9]{1,18})\s*\)")
_LIST = re.compile(r"\[\s*(\w+)\s*\]")
_SCALARS = {scalar.value: scalar for scalar in Scalar if scalar is not Scalar.VECTOR}


def check_params(declared: tuple[ParamDecl, ...], catalog: Catalog) -> tuple[Parameter, ...]:
    """Type every parameter; names differ."""
    seen: set[str] = set()
    for param in declared:
        if param.name == NOW_PARAMETER:
            raise TypeCheckError(
                f"`${NOW_PARAMETER}` is reserved: it carries now()", span=param.span
            )
        if param.name in seen:
            raise TypeCheckError(f"parameter `${param.name}` is declared twice", span=param.span)
        seen.add(param.name)
    return tuple(_check_param(param, catalog) for param in declared)


def param_scope(params: tuple[Parameter, ...], catalog: Catalog) -> Scope:
    """What a query sees before its first clause."""
    values = {each.name: each.type for each in params if isinstance(each.type, PropertyType)}
    rows = {each.name: RowFields(each.type) for each in params if isinstance(each.type, RowType)}
    return Scope(catalog, values, rows=rows)


def _check_param(param: ParamDecl, catalog: Catalog) -> Parameter:
    if param.fields:
        return _check_row(param)
    found = _value_type(param)
    if param.default is None:
        return Parameter(param.name, found)
    return Parameter(param.name, found, _check_default(param, found, catalog))


def _check_row(param: ParamDecl) -> Parameter:
    if param.default is not None:
        raise _bad_default(param, "rows have none")
    names = [each.name for each in param.fields]
    for each in param.fields:
        if names.count(each.name) > 1:
            raise TypeCheckError(
                f"`${param.name}` declares the field `{each.name}` twice", span=each.span
            )
    fields = tuple(Parameter(each.name, _value_type(each)) for each in param.fields)
    return Parameter(
        param.name,
        RowType(fields, is_list=param.type_name == ROW_LIST, nullable=param.nullable),
    )


def _value_type(declared: ParamDecl | FieldDecl) -> PropertyType:
    vector = _VECTOR.fullmatch(declared.type_name)
    if vector is not None:
        return PropertyType(Scalar.VECTOR, nullable=declared.nullable, dimension=int(vector[1]))
    listed = _LIST.fullmatch(declared.type_name)
    scalar = _SCALARS.get(listed[1] if listed else declared.type_name)
    if scalar is None or (listed and scalar is Scalar.BLOB):
        raise TypeCheckError(
            f"`${declared.name}` has the unknown parameter type {declared.type_name}",
            span=declared.span,
            hint=did_you_mean(declared.type_name, _SCALARS),
        )
    return PropertyType(scalar, is_list=listed is not None, nullable=declared.nullable)


def _check_default(param: ParamDecl, wanted: PropertyType, catalog: Catalog) -> Operand:
    assert param.default is not None
    try:
        found = check_scalar(param.default, Scope(catalog))
    except TypeCheckError as error:
        raise _bad_default(param, error.message.partition(": ")[2] or error.message) from None
    if isinstance(found, Null):
        if not wanted.nullable:
            raise _bad_default(param, f"null is no {wanted}")
        return Null(wanted)
    problem = _misfit(found, wanted)
    if problem is not None:
        raise _bad_default(param, problem)
    return Constant(found.value, wanted) if isinstance(found, Constant) else found


def _misfit(found: Operand, wanted: PropertyType) -> str | None:
    """Why a value does not fit a type, None when it does."""
    if found.type.is_duration:
        return "it is a duration"
    if isinstance(found, Constant) and isinstance(found.value, ListLiteral):
        return _list_misfit(found.value, found.type, wanted)
    plain = PropertyType(wanted.scalar, wanted.is_list)
    is_text = found.type.is_text and wanted.is_blob
    is_whole = wanted.scalar.is_integer and not found.type.scalar.is_integer
    if is_whole or not (is_text or found.type.compatible_with(plain)):
        return f"it is {found.type}, and the parameter is {wanted}"
    if isinstance(found, Constant) and wanted.scalar.is_integer:
        lower, upper = INTEGER_BOUNDS[wanted.scalar]
        if not lower <= int(str(found.value)) <= upper:
            return f"it exceeds the range of {wanted}"
    return None


def _list_misfit(value: ListLiteral, found: PropertyType, wanted: PropertyType) -> str | None:
    if wanted.is_vector:
        if len(value.items) != wanted.dimension or not found.element().is_numeric:
            return f"it is no {wanted}"
        return None
    if not wanted.is_list:
        return f"it is a list, and the parameter is {wanted}"
    if value.items and not found.element().compatible_with(wanted.element()):
        return f"it is {found}, and the parameter is {wanted}"
    return None


def _bad_default(param: ParamDecl, problem: str) -> TypeCheckError:
    span = param.span if param.default is None else param.default.span
    return TypeCheckError(
        f"default of ${param.name}: {problem}",
        code="T46",
        span=span,
        hint="a default is a value without variables, in the type of its parameter",
    )
