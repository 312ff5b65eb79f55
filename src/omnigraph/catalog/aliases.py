"""Aliases: identities that a merge has found to be the same.

Two branches that each add `email` to a type give it two identities. When they are merged, the
property goes on under one of them, and the merged schema records what the other one is called.
Schemas are compared by identity, so those that are compared get the same words for it first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from omnigraph.catalog.model import Catalog, EdgeType, InterfaceType, NodeType, Property

_Type = TypeVar("_Type", InterfaceType, NodeType, EdgeType)


def unify(*catalogs: Catalog) -> Callable[[Catalog], Catalog]:
    """Make one identity of those that any of the schemas calls the same.

    The identity of the first schema that has one stays. What comes out is the schema itself when
    none of its identities changes.
    """
    leaders: dict[int, int] = {}

    def find(identity: int) -> int:
        while identity in leaders:
            identity = leaders[identity]
        return identity

    for catalog in catalogs:
        for one, other in catalog.aliases.items():
            if find(one) != find(other):
                leaders[find(one)] = find(other)
    if not leaders:
        return lambda catalog: catalog
    chosen: dict[int, int] = {}
    for catalog in catalogs:
        for identity in list_identities(catalog):
            chosen.setdefault(find(identity), identity)
    return lambda catalog: respell(
        catalog, lambda identity: chosen.get(find(identity), find(identity))
    )


def list_identities(catalog: Catalog) -> list[int]:
    """The identities of all types and properties."""
    types = [*catalog.interfaces.values(), *catalog.entities()]
    return [
        *(each.type_id for each in types),
        *(found.property_id for each in types for found in each.properties.values()),
    ]


def respell(catalog: Catalog, to: Callable[[int], int]) -> Catalog:
    """The schema under other identities; the same value when none is another one."""
    if all(to(each) == each for each in list_identities(catalog)):
        return catalog
    return replace(
        catalog,
        interfaces={name: _respell(each, to) for name, each in catalog.interfaces.items()},
        nodes={name: _respell(each, to) for name, each in catalog.nodes.items()},
        edges={name: _respell(each, to) for name, each in catalog.edges.items()},
    )


def _respell(found: _Type, to: Callable[[int], int]) -> _Type:
    properties: Mapping[str, Property] = {
        name: replace(each, property_id=to(each.property_id))
        for name, each in found.properties.items()
    }
    return replace(found, type_id=to(found.type_id), properties=properties)
