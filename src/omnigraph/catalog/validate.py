"""Validate: a schema tree → drafts, checked and expanded, which lack nothing but identities.

    names  →  annotations  →  interfaces  →  constraints, embeds, cardinality  →  endpoints

The first fault found is raised and points at the text it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from omnigraph.catalog.annotations import PropertyDraft, TypeNotes, read_property, read_type
from omnigraph.catalog.backfill import check_backfill
from omnigraph.catalog.constraints import Constraints, read_constraints
from omnigraph.catalog.defaults import check_default, check_default_rules
from omnigraph.catalog.interfaces import effective_properties, interface_names
from omnigraph.catalog.model import DEFAULT, Cardinality, TypeKind
from omnigraph.catalog.names import check_endpoints, check_names, kind_of, owner_of
from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError, did_you_mean
from omnigraph.syntax.schema_tree import Declaration, EdgeDecl, InterfaceDecl, NodeDecl, SchemaTree


@dataclass(frozen=True, slots=True)
class InterfaceDraft:
    """One interface. `properties` are in name order, here and in the other drafts."""

    name: str
    properties: Mapping[str, PropertyDraft]
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class NodeDraft:
    """One node type with every property it has in effect."""

    name: str
    properties: Mapping[str, PropertyDraft]
    constraints: Constraints
    notes: TypeNotes
    interfaces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EdgeDraft:
    """One edge type between two declared node types."""

    name: str
    properties: Mapping[str, PropertyDraft]
    constraints: Constraints
    notes: TypeNotes
    source: str
    target: str
    cardinality: Cardinality


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A whole schema, checked. Types are in name order: the order in the file has no meaning."""

    interfaces: Mapping[str, InterfaceDraft] = field(default_factory=dict)
    nodes: Mapping[str, NodeDraft] = field(default_factory=dict)
    edges: Mapping[str, EdgeDraft] = field(default_factory=dict)


def validate(tree: SchemaTree) -> SchemaDraft:
    """Check every rule of one schema file.

    Raises:
        ParseError: A declaration breaks a rule of its own, or one about its interfaces.
        CatalogError: Names collide, or an edge ends at no node type.
    """
    check_names(tree)
    # In the order of the file, so that of several faults the topmost is the one reported.
    drafts = [(declaration, _own_properties(declaration)) for declaration in tree.declarations]
    contracts = {d.name: own for d, own in drafts if isinstance(d, InterfaceDecl)}
    interfaces: dict[str, InterfaceDraft] = {}
    nodes: dict[str, NodeDraft] = {}
    edges: dict[str, EdgeDraft] = {}
    for declaration, own in drafts:
        match declaration:
            case InterfaceDecl():
                interfaces[declaration.name] = _interface(declaration, own)
            case NodeDecl():
                nodes[declaration.name] = _node(declaration, own, contracts)
            case EdgeDecl():
                edges[declaration.name] = _edge(declaration, own)
    check_endpoints(tree)
    return SchemaDraft(
        interfaces=dict(sorted(interfaces.items())),
        nodes=dict(sorted(nodes.items())),
        edges=dict(sorted(edges.items())),
    )


def _own_properties(declaration: Declaration) -> dict[str, PropertyDraft]:
    kind, owner = kind_of(declaration), owner_of(declaration)
    drafts = {p.name: read_property(p, kind, owner) for p in declaration.properties}
    return dict(sorted(drafts.items()))


def _interface(declaration: InterfaceDecl, own: Mapping[str, PropertyDraft]) -> InterfaceDraft:
    owner = owner_of(declaration)
    constraints = read_constraints("interface", owner, own)
    _check_defaults(own, constraints, owner)
    _check_backfills(own, "interface", owner)
    return InterfaceDraft(declaration.name, own, constraints)


def _node(
    declaration: NodeDecl,
    own: Mapping[str, PropertyDraft],
    contracts: Mapping[str, Mapping[str, PropertyDraft]],
) -> NodeDraft:
    owner = owner_of(declaration)
    notes = read_type(declaration.annotations, owner)
    properties = effective_properties(declaration, own, contracts)
    _check_embeds(properties, owner)
    constraints = read_constraints("node", owner, properties, declaration.constraints)
    _check_defaults(properties, constraints, owner)
    _check_backfills(properties, "node", owner)
    return NodeDraft(declaration.name, properties, constraints, notes, interface_names(declaration))


def _edge(declaration: EdgeDecl, own: Mapping[str, PropertyDraft]) -> EdgeDraft:
    owner = owner_of(declaration)
    constraints = read_constraints("edge", owner, own, declaration.constraints)
    _check_defaults(own, constraints, owner)
    _check_backfills(own, "edge", owner)
    return EdgeDraft(
        name=declaration.name,
        properties=own,
        constraints=constraints,
        notes=read_type(declaration.annotations, owner),
        source=declaration.source.name,
        target=declaration.target.name,
        cardinality=_cardinality(declaration),
    )


def _cardinality(declaration: EdgeDecl) -> Cardinality:
    written = declaration.cardinality
    if written is None:
        return Cardinality()
    if written.maximum is not None and written.minimum > written.maximum:
        raise ParseError(
            f"@card of edge {declaration.name}: min {written.minimum} exceeds max "
            f"{written.maximum} — write the smaller number first",
            span=written.span,
        )
    return Cardinality(written.minimum, written.maximum)


def _check_embeds(properties: Mapping[str, PropertyDraft], owner: str) -> None:
    """An interface may leave the source of an `@embed` to the node, so only nodes are checked."""
    for draft in properties.values():
        if draft.embed is None:
            continue
        source = properties.get(draft.embed.source)
        if source is not None and source.type.is_text:
            continue
        problem = "is an unknown property" if source is None else f"is {source.type}"
        raise ParseError(
            f"@embed on property `{draft.name}` of {owner}: source `{draft.embed.source}` "
            f"{problem}, but must be a String property of the same node",
            span=next(a.span for a in draft.declaration.annotations if a.name == "embed"),
            hint=did_you_mean(draft.embed.source, _texts(properties)),
        )


def _check_defaults(
    properties: Mapping[str, PropertyDraft], constraints: Constraints, owner: str
) -> None:
    for draft in properties.values():
        written = [each for each in draft.declaration.annotations if each.name == DEFAULT]
        for annotation in draft.annotations:
            if annotation.name == DEFAULT:
                subject, span = f"property `{draft.name}` of {owner}", written[0].span
                check_default(annotation, draft.type, subject, span)
                check_default_rules(draft.name, annotation.value, constraints, subject, span)


def _check_backfills(properties: Mapping[str, PropertyDraft], kind: TypeKind, owner: str) -> None:
    types = {name: draft.type for name, draft in properties.items()}
    for name, draft in properties.items():
        if draft.backfill is not None:
            subject = f"property `{name}` of {owner}"
            span = next(a.span for a in draft.declaration.annotations if a.name == "backfill")
            check_backfill(draft.backfill, name, types, kind, subject, span)


def _texts(properties: Mapping[str, PropertyDraft]) -> Iterable[str]:
    return (draft.name for draft in properties.values() if draft.type.is_text)
