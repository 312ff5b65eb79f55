"""Declared types: the node and edge types of a schema text, by identity instead of by name.

Names of properties in annotations and constraints are tokens, `#` and the identity, so that two
schemas that call a property differently can be compared fact by fact. `read_types` makes this form
of a text, `declare_types` a text's declarations of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TypeVar

from omnigraph.catalog.model import Catalog, TypeKind
from omnigraph.catalog.names import kind_of
from omnigraph.dataclass import dataclass
from omnigraph.syntax import parse_schema
from omnigraph.syntax.schema_tree import (
    Annotation,
    CardinalityDecl,
    ConstraintDecl,
    Declaration,
    EdgeDecl,
    Identifier,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    TypeRef,
)
from omnigraph.types import PropertyType

HINTS = ("rename_from", "backfill")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """One declared property. Names in its annotations are tokens that stand for identities."""

    name: str
    type: PropertyType
    annotations: Mapping[str, Annotation]
    backfill: Annotation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """One declared node or edge type, by identities."""

    kind: TypeKind
    name: str
    annotations: Mapping[str, Annotation]
    implements: tuple[str, ...]
    ends: tuple[int, int] | None
    cardinality: CardinalityDecl | None
    properties: Mapping[int, DeclaredProperty]
    constraints: Mapping[tuple[str, ...], ConstraintDecl]

    @property
    def subject(self) -> str:
        return f"{self.kind}:{self.name}"


def read_types(source: str, catalog: Catalog) -> dict[int, DeclaredType]:
    """The node and edge types of a schema by identity, in the order of the text."""
    types: dict[int, DeclaredType] = {}
    for declaration in parse_schema(source).declarations:
        if not isinstance(declaration, InterfaceDecl):
            kind = kind_of(declaration)
            accepted = catalog.types_by_kind()[kind][declaration.name]
            types[accepted.type_id] = _read_type(declaration, catalog)
    return types


def _read_type(declaration: NodeDecl | EdgeDecl, catalog: Catalog) -> DeclaredType:
    kind = kind_of(declaration)
    accepted = catalog.types_by_kind()[kind][declaration.name]
    tokens = {name: f"#{each.property_id}" for name, each in accepted.properties.items()}
    properties = {}
    for each in declaration.properties:
        named = {a.name: _respell(a, tokens) for a in each.annotations}
        backfill = next((a for a in each.annotations if a.name == "backfill"), None)
        facts = {name: a for name, a in named.items() if name not in HINTS}
        found = DeclaredProperty(each.name, each.type, facts, backfill)
        properties[accepted.properties[each.name].property_id] = found
    constraints = [
        replace(each, arguments=tuple(_respell_argument(a, tokens) for a in each.arguments))
        for each in declaration.constraints
    ]
    ends = None
    if isinstance(declaration, EdgeDecl):
        nodes = catalog.nodes
        ends = nodes[declaration.source.name].type_id, nodes[declaration.target.name].type_id
    return DeclaredType(
        kind=kind,
        name=declaration.name,
        annotations={a.name: a for a in declaration.annotations if a.name not in HINTS},
        implements=tuple(each.name for each in getattr(declaration, "implements", ())),
        ends=ends,
        cardinality=getattr(declaration, "cardinality", None),
        properties=properties,
        constraints={key_of(each): each for each in constraints},
    )


def key_of(constraint: ConstraintDecl) -> tuple[str, ...]:
    """What two constraints share that cannot both hold, or are one."""
    members = tuple(each.name for each in constraint.arguments if isinstance(each, Identifier))
    match constraint.name:
        case "key":
            return ("key",)
        case "check":
            return ("check", *members, str(constraint.arguments[-1]))
        case name:
            return (name, *sorted(members))


def _respell(annotation: Annotation, names: Mapping[str, str]) -> Annotation:
    if isinstance(annotation.value, Identifier):
        return replace(annotation, value=_respell_argument(annotation.value, names))
    return annotation


def _respell_argument(argument: _V, names: Mapping[str, str]) -> _V:
    if isinstance(argument, Identifier) and argument.name in names:
        return replace(argument, name=names[argument.name])
    return argument


def declare_types(types: Mapping[int, DeclaredType], *catalogs: Catalog) -> Iterator[Declaration]:
    """Types as declarations; the catalogues know the names of properties from interfaces."""
    names = {key: each.name for key, each in types.items()}
    for type_id, each in types.items():
        spelled = {f"#{key}": found.name for key, found in each.properties.items()}
        for catalog in catalogs:
            for entity in catalog.entities():
                if entity.type_id == type_id:
                    spelled = {
                        f"#{found.property_id}": name for name, found in entity.properties.items()
                    } | spelled
        properties = tuple(_declare_property(found, spelled) for found in each.properties.values())
        constraints = tuple(respell_constraint(c, spelled) for c in each.constraints.values())
        annotations = tuple(each.annotations.values())
        if each.ends is None:
            implements = tuple(TypeRef(name) for name in each.implements)
            yield NodeDecl(each.name, annotations, implements, properties, constraints)
        else:
            source, target = (TypeRef(names[end]) for end in each.ends)
            facts = (each.cardinality, annotations, properties, constraints)
            yield EdgeDecl(each.name, source, target, *facts)


def _declare_property(found: DeclaredProperty, spelled: Mapping[str, str]) -> PropertyDecl:
    annotations = [_respell(each, spelled) for each in found.annotations.values()]
    return PropertyDecl(found.name, found.type, tuple(annotations))


def respell_constraint(constraint: ConstraintDecl, names: Mapping[str, str]) -> ConstraintDecl:
    """A constraint with its properties under other names, or as tokens."""
    return replace(
        constraint, arguments=tuple(_respell_argument(a, names) for a in constraint.arguments)
    )


def list_tokens(found: DeclaredType) -> Iterator[str]:
    """The properties that annotations and constraints of a type use."""
    arguments = [a for each in found.constraints.values() for a in each.arguments]
    arguments += [a.value for p in found.properties.values() for a in p.annotations.values()]  # type: ignore[misc]
    for argument in arguments:
        if isinstance(argument, Identifier) and argument.name.startswith("#"):
            yield argument.name


def facts_by_name(found: DeclaredType) -> tuple[object, ...]:
    """A type by the names in it, to be compared with one that has other identities."""
    spelled = {f"#{key}": each.name for key, each in found.properties.items()}
    properties = {
        each.name: (each.type, {n: _respell(a, spelled) for n, a in each.annotations.items()})
        for each in found.properties.values()
    }
    constraints = {
        key_of(each): each
        for each in (respell_constraint(c, spelled) for c in found.constraints.values())
    }
    return (
        found.annotations,
        found.implements,
        found.ends,
        found.cardinality,
        properties,
        constraints,
    )
