"""Build: a schema tree → the catalogue, with the identities of the accepted one carried on."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.catalog.annotations import PropertyDraft
from omnigraph.catalog.identity import Identities, TypeKey, resolve_identities
from omnigraph.catalog.model import EDGE_ENDS, Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.shape import catalog_of
from omnigraph.catalog.validate import EdgeDraft, InterfaceDraft, NodeDraft, SchemaDraft, validate
from omnigraph.errors import ResourceLimitError, SourceError
from omnigraph.source_text import SourceText
from omnigraph.syntax.schema_tree import SchemaTree

DECLARATIONS_MAX = 5_000
"""A change of all types locks a table for each, and every lock is an open file."""


def build_catalog(tree: SchemaTree, accepted: Catalog | None = None) -> Catalog:
    """Check `tree` and return its types, in canonical order.

    With `accepted`, types and properties that continue an accepted one keep its identity; without,
    all identities are new and rename hints mean nothing.

    Raises:
        ParseError: A declaration breaks a rule.
        CatalogError: The declarations do not fit together.
        IdentityError: A rename hint cannot be followed.
        ResourceLimitError: There are more declarations than one change can lock the tables of.
    """
    if len(tree.declarations) > DECLARATIONS_MAX:
        raise ResourceLimitError(
            "number of declarations in a schema",
            limit=DECLARATIONS_MAX,
            actual=len(tree.declarations),
            advice="nothing was changed; use a property where types differ in little else",
        )
    try:
        draft = validate(tree)
        identities = resolve_identities(draft, accepted)
    except SourceError as error:
        raise error.with_source(SourceText(tree.name, tree.text)) from None
    return assemble(draft, identities, {} if accepted is None else accepted.aliases)


def assemble(
    draft: SchemaDraft, identities: Identities, aliases: Mapping[int, int] | None = None
) -> Catalog:
    """The catalogue of a draft that lacks nothing but its identities."""
    return catalog_of(
        nodes={name: _node(each, identities) for name, each in draft.nodes.items()},
        edges={name: _edge(each, identities) for name, each in draft.edges.items()},
        interfaces={name: _interface(each, identities) for name, each in draft.interfaces.items()},
        next_id=identities.next_id,
        aliases=aliases,
    )


def _interface(draft: InterfaceDraft, identities: Identities) -> InterfaceType:
    key: TypeKey = ("interface", draft.name)
    return InterfaceType(
        name=draft.name,
        type_id=identities.types[key],
        properties=_properties(draft.properties, key, identities),
        key=draft.constraints.key,
        uniques=draft.constraints.uniques,
        indexes=draft.constraints.indexes,
    )


def _node(draft: NodeDraft, identities: Identities) -> NodeType:
    key: TypeKey = ("node", draft.name)
    properties = _properties(draft.properties, key, identities)
    return NodeType(
        name=draft.name,
        type_id=identities.types[key],
        incarnation_id=identities.incarnations[key],
        properties=properties,
        key=_sort_key_members(draft.constraints.key, properties),
        uniques=draft.constraints.uniques,
        indexes=draft.constraints.indexes,
        ranges=draft.constraints.ranges,
        checks=draft.constraints.checks,
        interfaces=draft.interfaces,
        description=draft.notes.description,
        instruction=draft.notes.instruction,
        annotations=draft.notes.annotations,
    )


def _edge(draft: EdgeDraft, identities: Identities) -> EdgeType:
    key: TypeKey = ("edge", draft.name)
    properties = _properties(draft.properties, key, identities)
    return EdgeType(
        name=draft.name,
        type_id=identities.types[key],
        incarnation_id=identities.incarnations[key],
        source=draft.source,
        target=draft.target,
        cardinality=draft.cardinality,
        properties=properties,
        key=_sort_key_members(draft.constraints.key, properties),
        uniques=draft.constraints.uniques,
        indexes=draft.constraints.indexes,
        description=draft.notes.description,
        instruction=draft.notes.instruction,
        annotations=draft.notes.annotations,
    )


def _sort_key_members(
    members: tuple[str, ...] | None, properties: Mapping[str, Property]
) -> tuple[str, ...] | None:
    """The ends of an edge, then by property id: a rename must not reorder what spells the id."""
    if members is None:
        return None
    ends = [name for name in EDGE_ENDS if name in members]
    others = [name for name in members if name not in ends]
    return (*ends, *sorted(others, key=lambda name: properties[name].property_id))


def _properties(
    drafts: Mapping[str, PropertyDraft], key: TypeKey, identities: Identities
) -> dict[str, Property]:
    return {
        name: Property(
            name=name,
            type=draft.type,
            property_id=identities.properties[(*key, name)],
            embed=draft.embed,
            description=draft.description,
            annotations=draft.annotations,
            injected_by=draft.injected_by,
            backfill=draft.backfill,
            language=draft.language,
        )
        for name, draft in drafts.items()
    }
