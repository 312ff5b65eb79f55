"""Shape: what a schema means, as one canonical JSON document, and the hash that names it.

The shape leaves out whatever does not change the meaning: the order and spacing of the source,
comments, rename hints, and identities. Two schemas with one shape are the same schema. Facts at
their default are left out too, so that a kind of fact added later leaves old hashes as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from omnigraph.catalog.model import (
    Catalog,
    EdgeType,
    InterfaceType,
    NodeType,
    OpaqueAnnotation,
    Property,
)
from omnigraph.types import PropertyType

Document: TypeAlias = dict[str, Any]


def catalog_of(
    *,
    nodes: Mapping[str, NodeType],
    edges: Mapping[str, EdgeType],
    interfaces: Mapping[str, InterfaceType],
    next_id: int,
    aliases: Mapping[int, int] | None = None,
) -> Catalog:
    """Gather checked types, in name order, into a catalogue that knows the hash of its shape."""
    shape = {
        "interfaces": [interface_shape(each) for each in interfaces.values()],
        "nodes": [node_shape(each) for each in nodes.values()],
        "edges": [edge_shape(each) for each in edges.values()],
    }
    return Catalog(
        nodes=nodes,
        edges=edges,
        interfaces=interfaces,
        shape_hash=hashlib.sha256(canonical(shape).encode()).hexdigest(),
        next_id=next_id,
        aliases=aliases or {},
        edge_names_folded={name.lower(): name for name in edges},
    )


def canonical(document: object) -> str:
    """One spelling per document: sorted members, no spaces, ASCII only."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def interface_shape(interface: InterfaceType) -> Document:
    return _without_defaults(
        name=interface.name,
        properties=[property_shape(each) for each in interface.properties.values()],
        key=sorted(interface.key or ()),
        uniques=interface.uniques,
        indexes=interface.indexes,
    )


def node_shape(node: NodeType) -> Document:
    return _without_defaults(
        name=node.name,
        interfaces=node.interfaces,
        properties=[property_shape(each) for each in node.properties.values()],
        # By name: the stored order follows property ids, which are no part of the shape.
        key=sorted(node.key or ()),
        uniques=node.uniques,
        indexes=node.indexes,
        ranges=[[each.property, each.lower, each.upper] for each in node.ranges],
        checks=[[each.property, each.pattern] for each in node.checks],
        description=node.description,
        instruction=node.instruction,
        annotations=annotations_shape(node.annotations),
    )


def edge_shape(edge: EdgeType) -> Document:
    bounds = edge.cardinality
    return _without_defaults(
        name=edge.name,
        source=edge.source,
        target=edge.target,
        cardinality=None if bounds.is_default else [bounds.minimum, bounds.maximum],
        properties=[property_shape(each) for each in edge.properties.values()],
        key=sorted(edge.key or ()),
        uniques=edge.uniques,
        indexes=edge.indexes,
        description=edge.description,
        instruction=edge.instruction,
        annotations=annotations_shape(edge.annotations),
    )


def property_shape(property_: Property) -> Document:
    embed = property_.embed
    return _without_defaults(
        name=property_.name,
        type=type_shape(property_.type),
        embed=None if embed is None else _without_defaults(source=embed.source, model=embed.model),
        description=property_.description,
        annotations=annotations_shape(property_.annotations),
        injected_by=property_.injected_by,
        language=property_.language,
    )


def type_shape(type_: PropertyType) -> Document:
    return _without_defaults(
        scalar=type_.scalar.value,
        is_list=type_.is_list,
        nullable=type_.nullable,
        dimension=type_.dimension,
        variants=type_.variants,
    )


def annotations_shape(annotations: tuple[OpaqueAnnotation, ...]) -> list[Document]:
    # A list, because `@flag(false)` is a fact and no default.
    return [
        _without_defaults(
            name=each.name,
            value=None if each.value is None else [each.value],
            kwargs=each.kwargs,
        )
        for each in annotations
    ]


def _without_defaults(**facts: Any) -> Document:
    """Leave out members at their default. JSON has no tuples, so they become lists here."""
    return {
        name: [list(each) if isinstance(each, tuple) else each for each in value]
        if isinstance(value, tuple)
        else value
        for name, value in facts.items()
        if value is not None and value is not False and value not in ((), [], {})
    }
