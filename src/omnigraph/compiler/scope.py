"""Scope: the names a clause can see, and what they stand for.

Parameters and bindings are two namespaces. `$v.p` asks the bindings only; a bare `$v` asks the
parameters first. A `not` block works on a copy, so its bindings do not escape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, TypeAlias

from omnigraph.catalog.model import Catalog, EdgeType, EntityType, InterfaceType, NodeType, Property
from omnigraph.dataclass import dataclass
from omnigraph.errors import TypeCheckError, did_you_mean
from omnigraph.ir.expressions import ID_PROPERTY, SCORE_PROPERTY, NodeRef, Param, PropertyRef
from omnigraph.ir.expressions import Scalar as Operand
from omnigraph.ir.query import RowType
from omnigraph.source_text import Span
from omnigraph.syntax.query_tree import (
    ANONYMOUS,
    AggregateExpr,
    AliasExpr,
    CollectExpr,
    Expr,
    PropertyExpr,
    VariableExpr,
)
from omnigraph.types import PropertyType, Scalar

ID = ID_PROPERTY
ID_TYPE = PropertyType(Scalar.STRING)
"""What `id` is called and holds where a query may name it: an edge has no value but this one."""
ENDPOINTS: Final = {"from": "src", "to": "dst"}
"""How a query spells the ends of an edge, and the columns that hold them."""


@dataclass(frozen=True, slots=True)
class PathVariable:
    """What a walk along `edge` followed, from a node of one type to one of the other."""

    edge: EdgeType
    left: str
    right: str
    has_weight: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Where bare words are properties: those of `owner`, read of `variable`; others are `code`."""

    variable: str
    owner: EntityType
    code: str
    has_id: bool = False

    def find(self, name: str) -> PropertyRef | None:
        """The property that a word names; `from` and `to` are the ends of an edge."""
        found = self.owner.properties.get(name)
        if found is not None:
            return PropertyRef(self.variable, name, found.type)
        if isinstance(self.owner, EdgeType) and name in ENDPOINTS:
            return PropertyRef(self.variable, ENDPOINTS[name], ID_TYPE)
        is_id = self.has_id and name == ID
        return PropertyRef(self.variable, ID, ID_TYPE) if is_id else None


@dataclass(frozen=True, slots=True)
class RowFields:
    """What `$row.field` stands for: a parameter of its own, or a column of the rows of `for`."""

    type: RowType
    is_column: bool = False

    def find(self, expression: PropertyExpr) -> Param | PropertyRef:
        """Resolve a field (T6)."""
        declared = {each.name: each.type for each in self.type.fields}
        found = declared.get(expression.property)
        if not isinstance(found, PropertyType):
            raise TypeCheckError(
                f"`${expression.variable}` has no field `{expression.property}`",
                code="T6",
                span=expression.property_span,
                hint=did_you_mean(expression.property, declared),
            )
        if self.is_column:
            return PropertyRef(expression.variable, expression.property, _as_computed(found))
        return Param(f"{expression.variable}.{expression.property}", found)


def _as_computed(found: PropertyType) -> PropertyType:
    """Parameters are computed with at full width: what is declared F32 has not been rounded."""
    if found.scalar is Scalar.F32:
        return PropertyType(Scalar.F64, found.is_list, found.nullable)
    return found


Bound: TypeAlias = NodeType | EdgeType | InterfaceType
"""What a variable may be bound to."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is visible at one point. The type of a variable says whether it is a node or an edge.

    `paths` and `scores` are variables that are neither. Where there are `words`, a condition reads
    these and no variable.

    `narrowed` gives the one type that a variable of an interface can have here, where traversals
    leave no other, and `nullable` the variables that an `optional` may leave null. The types of
    `typed` are asked for by `type(…)`.
    """

    catalog: Catalog
    params: Mapping[str, PropertyType] = field(default_factory=dict)
    variables: dict[str, Bound] = field(default_factory=dict)
    paths: dict[str, PathVariable] = field(default_factory=dict)
    scores: dict[str, PropertyType] = field(default_factory=dict)
    words: Words | None = None
    rows: Mapping[str, RowFields] = field(default_factory=dict)
    """Objects, by the name of the parameter or of the element of `for`."""
    narrowed: dict[str, str] = field(default_factory=dict)
    nullable: set[str] = field(default_factory=set)
    typed: set[str] = field(default_factory=set)
    blocks: list[Scope] = field(default_factory=list)
    """The scopes of inner blocks, whose variables are not visible here."""

    def given(self, expression: Expr) -> Operand | None:
        """What an expression stands for as a whole, where that is known already."""
        return None

    def aggregate(self, expression: AggregateExpr | CollectExpr) -> Operand:
        """An aggregate inside an expression (T8): rows have none."""
        raise TypeCheckError(
            f"`{aggregate_word(expression)}` works on groups in `return`, not row by row",
            code="T8",
            span=expression.span,
            hint="in a read: `count($p) as n` in `return`, and `having { n > 1 }`",
        )

    def inner(self) -> Scope:
        """The scope of an inner block: it starts from this one and adds to itself alone."""
        inner = replace(
            self,
            variables=dict(self.variables),
            paths=dict(self.paths),
            narrowed=dict(self.narrowed),
            nullable=set(self.nullable),
            typed=set(),
            blocks=[],
        )
        self.blocks.append(inner)
        return inner

    def is_hidden(self, name: str) -> bool:
        """Whether a variable is bound inside a block only."""
        return any(each.is_bound(name) or each.is_hidden(name) for each in self.blocks)

    def _hint_unbound(self, name: str, known: list[str]) -> str | None:
        if self.is_hidden(name):
            return "what `not` binds stays inside, as what some alternatives of `either` bind"
        return variable_hint(name, known)

    def bound_names(self) -> frozenset[str]:
        """Every variable that is bound."""
        return frozenset([*self.variables, *self.paths, *self.scores])

    def is_bound(self, name: str) -> bool:
        return name in self.variables or name in self.paths or name in self.scores

    def path(self, name: str) -> PathVariable | None:
        """The path that a bare `$name` means; a parameter of that name hides it."""
        return None if name in self.params else self.paths.get(name)

    def knows(self, name: str) -> bool:
        """Whether anything is called `$name`."""
        return name in self.params or name in self.rows or self.is_bound(name)

    def word(self, name: str) -> PropertyRef | None:
        """What a bare word stands for, where it stands for a property."""
        return None if self.words is None else self.words.find(name)

    def word_ref(self, expression: AliasExpr) -> PropertyRef:
        """Resolve a bare word where it is a property."""
        assert self.words is not None
        owner, name = self.words.owner, expression.name
        found = self.words.find(name)
        if found is None:
            noun = "edge " if isinstance(owner, EdgeType) else ""
            ends = ENDPOINTS if isinstance(owner, EdgeType) else ()
            raise TypeCheckError(
                f"{noun}{owner.name} has no property `{name}`",
                code=self.words.code,
                span=expression.span,
                hint=did_you_mean(name, [*owner.properties, *ends]),
            )
        return found

    def node_type(self, name: str) -> str:
        """The type of a node variable as far as it is known; else its interface."""
        return self.narrowed.get(name, self.variables[name].name)

    def variable(self, name: str) -> Bound | None:
        """What `$name` is bound to. `$_` never is."""
        return None if name == ANONYMOUS else self.variables.get(name)

    def parameter(self, expression: VariableExpr) -> Param | None:
        """The parameter that a bare `$name` means, if one is declared."""
        if expression.name in self.rows and not self.is_bound(expression.name):
            raise _whole_rows(expression, self.rows[expression.name].type)
        declared = self.params.get(expression.name)
        return Param(expression.name, declared) if declared is not None else None

    def property_ref(self, expression: PropertyExpr) -> Param | PropertyRef:
        """Resolve `$variable.property` (T6). The id of an edge is read as one."""
        owner = self.variable(expression.variable)
        row = self.rows.get(expression.variable)
        if row is not None and not row.type.is_list and not self.is_bound(expression.variable):
            return row.find(expression)
        if expression.variable in self.paths:
            raise self.path_error(expression.variable, expression.span)
        if owner is None:
            raise self._not_bound(expression)
        if isinstance(owner, EdgeType) and expression.property == ID:
            return self.id_of(expression.variable)
        found = owner.properties.get(expression.property)
        if found is None:
            raise TypeCheckError(
                f"{owner.name} has no property `{expression.property}`",
                code="T6",
                span=expression.property_span,
                hint=_property_hint(expression, owner),
            )
        return PropertyRef(
            expression.variable, expression.property, self.type_at(expression.variable, found.type)
        )

    def id_of(self, variable: str) -> PropertyRef:
        """The id of a bound entity, which is null exactly where the variable is."""
        return PropertyRef(variable, ID, self.type_at(variable, ID_TYPE))

    def type_at(self, variable: str, found: PropertyType) -> PropertyType:
        """The type of a value of a variable: null where the variable is."""
        return replace(found, nullable=True) if variable in self.nullable else found

    def language_of(self, ref: PropertyRef) -> str:
        """The language that full text takes a property to be in; of an interface, any type's."""
        owner = self.variables[ref.variable]
        if isinstance(owner, EdgeType):
            return self.catalog.text_language(owner.table_key, ref.property)
        types = self.catalog.types_of(self.node_type(ref.variable))
        return self.catalog.text_language(f"node:{types[0]}", ref.property) if types else ""

    def bare_variable(self, expression: VariableExpr) -> Param | NodeRef | PropertyRef:
        """Resolve a bare `$name`: a parameter first, then a score or a node.

        An edge has no value of its own (T23), nor has a path (T36).
        """
        parameter = self.parameter(expression)
        if parameter is not None:
            return parameter
        if expression.name in self.scores:
            return PropertyRef(expression.name, SCORE_PROPERTY, self.scores[expression.name])
        if expression.name in self.paths:
            raise self.path_error(expression.name, expression.span)
        match self.variable(expression.name):
            case NodeType() | InterfaceType():
                return NodeRef(
                    expression.name,
                    self.node_type(expression.name),
                    expression.name in self.nullable,
                )
            case EdgeType(name=type_name):
                raise TypeCheckError(
                    f"`${expression.name}` is bound to an edge, which has no value of its own; "
                    f"name its id, `${expression.name}.id`, or a property of {type_name}, "
                    f"as in `${expression.name}.property`",
                    code="T23",
                    span=expression.span,
                )
            case None:
                known = [*self.params, *self.bound_names()]
                raise TypeCheckError(
                    f"`${expression.name}` is not bound",
                    code=None if self.words is None else self.words.code,
                    span=expression.span,
                    hint=self._words_hint() or self._hint_unbound(expression.name, known),
                )

    def path_error(self, name: str, span: Span) -> TypeCheckError:
        """T36: a path where a value stands."""
        return TypeCheckError(
            f"`${name}` is a path, which has no value of its own",
            code="T36",
            span=span,
            hint=f"return nodes(${name}) or hops(${name}); there are hops(${name}), "
            f"nodes(${name}), edges(${name})",
        )

    def _words_hint(self) -> str | None:
        if self.words is None:
            return None
        return f"here only properties of {self.words.owner.name} are read, as bare words"

    def _not_bound(self, expression: PropertyExpr) -> TypeCheckError:
        if self.words is not None:
            message = f"`${expression.variable}` cannot be read here"
        elif expression.variable in self.scores:
            message = f"`${expression.variable}` is a score and has no properties"
        elif expression.variable == ANONYMOUS:
            message = "`$_` binds nothing, so it has no properties; give it a name"
        elif expression.variable in self.params:
            message = f"`${expression.variable}` is a parameter and has no properties"
        else:
            message = f"`${expression.variable}` is not bound"
        return TypeCheckError(
            message,
            code="T6" if self.words is None else self.words.code,
            span=expression.span,
            hint=self._words_hint()
            or self._hint_unbound(expression.variable, list(self.variables)),
        )


def _whole_rows(expression: VariableExpr, found: RowType) -> TypeCheckError:
    name = expression.name
    if found.is_list:
        return TypeCheckError(
            f"`${name}` is a list of rows and is used by `for` only",
            code="T43",
            span=expression.span,
            hint=f"for $row in ${name} {{ … }}",
        )
    field = found.fields[0].name
    return TypeCheckError(
        f"`${name}` is an object, and this needs a value; name a field, as in `${name}.{field}`",
        code="T7",
        span=expression.span,
    )


def aggregate_word(expression: AggregateExpr | CollectExpr) -> str:
    """What an aggregate is called in a query."""
    return "collect" if isinstance(expression, CollectExpr) else expression.function.value


def type_of(name: str, scope: Scope) -> Bound | None:
    """The type of the node or edge that a bare `$name` means; a parameter of that name hides it."""
    return None if name in scope.params else scope.variable(name)


def require_node(name: str, span: Span, scope: Scope) -> None:
    """Refuse a variable that is a score (T39) or a path (T36) where a node stands."""
    if name in scope.scores:
        raise TypeCheckError(
            f"`${name}` is a score of top and no node",
            code="T39",
            span=span,
            hint="name a variable of the stage",
        )
    if name in scope.paths:
        raise TypeCheckError(
            f"`${name}` is a path and no node",
            code="T36",
            span=span,
            hint=f"there are hops(${name}), nodes(${name}), edges(${name})",
        )


def variable_hint(name: str, known: list[str]) -> str | None:
    """Suggest the variable nearest to `$name`."""
    return did_you_mean(f"${name}", [f"${other}" for other in known if other != name])


def edge_hint(name: str, catalog: Catalog) -> str | None:
    """Suggest the edge nearest to `name`, spelled as a traversal spells it."""
    return did_you_mean(name, [edge[0].lower() + edge[1:] for edge in catalog.edges])


_ENDS_ELSEWHERE = {
    name: f"the ends of an edge are `from` and `to`: write `{end}`"
    for end, names in {"from": ("src", "source", "start"), "to": ("dst", "target")}.items()
    for name in names
}


def require_property(
    owner: Bound, name: str, *, code: str, span: Span, also: tuple[str, ...] = ()
) -> Property:
    """The property of this name, or `code`. `also` are other names that would have been right."""
    found = owner.properties.get(name)
    if found is None:
        raise TypeCheckError(
            f"{owner.name} has no property `{name}`",
            code=code,
            span=span,
            hint=_ENDS_ELSEWHERE.get(name if also else "")
            or interface_hint(owner, name)
            or did_you_mean(name, [*owner.properties, *also]),
        )
    return found


def interface_hint(owner: Bound, name: str) -> str | None:
    """Say that an interface shows its own properties only, unless a name is near."""
    if not isinstance(owner, InterfaceType):
        return None
    return did_you_mean(name, owner.properties) or f"bind the concrete type to use {name}"


def _property_hint(expression: PropertyExpr, owner: Bound) -> str | None:
    if expression.property == "id" and not isinstance(owner, EdgeType):
        return f"return `${expression.variable}` itself: its value is the id"
    found = interface_hint(owner, expression.property)
    return found or did_you_mean(expression.property, owner.properties)
