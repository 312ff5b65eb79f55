"""Statement builder: the rules of query.lark for the statements of a mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.syntax.literals import span_of, variable_name
from omnigraph.syntax.statement_tree import (
    DeleteBound,
    DeleteStatement,
    ForStatement,
    InsertStatement,
    UpdateBound,
    UpdateStatement,
    UpsertStatement,
)

if TYPE_CHECKING:
    from omnigraph.syntax.grammar import Token


class StatementBuilder:
    """The actions of the statements. `QueryBuilder` has them too."""

    def insert_stmt(self, children: list[Any]) -> InsertStatement:
        type_name, assignments, label = children
        return InsertStatement(type_name.value, assignments, label, span=span_of(type_name))

    def upsert_stmt(self, children: list[Any]) -> UpsertStatement:
        type_name, assignments, label = children
        return UpsertStatement(type_name.value, assignments, label, span=span_of(type_name))

    def update_stmt(self, children: list[Any]) -> UpdateStatement:
        type_name, assignments, where, label = children
        return UpdateStatement(type_name.value, assignments, where, label, span=span_of(type_name))

    def update_bound(self, children: list[Any]) -> UpdateBound:
        variable, assignments = children
        return UpdateBound(variable_name(variable), assignments, span=span_of(variable))

    def delete_stmt(self, children: list[Any]) -> DeleteStatement:
        type_name, where, label = children
        return DeleteStatement(type_name.value, where, label, span=span_of(type_name))

    def delete_bound(self, children: list[Token]) -> DeleteBound:
        return DeleteBound(variable_name(children[0]), span=span_of(children[0]))

    def for_stmt(self, children: list[Any]) -> ForStatement:
        variable, _, rows, body = children
        return ForStatement(
            variable_name(variable), variable_name(rows), body, span=span_of(variable)
        )

    def label(self, children: list[Token]) -> str:
        return variable_name(children[0])
