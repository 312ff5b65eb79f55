"""Catalogs: the accepted schema of a graph as checked types, for the server and for clients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from omnigraph.catalog import Catalog, EdgeType, NodeType, build_catalog
from omnigraph.catalog.model import InterfaceType, Property
from omnigraph.syntax import parse_schema

Json = dict[str, Any]


@lru_cache(maxsize=64)
def read_catalog(schema: str) -> Catalog:
    """The catalogue of an accepted schema text."""
    return build_catalog(parse_schema(schema))


def catalog_to_json(catalog: Catalog) -> Json:
    """Types with their properties, keys and indexes, in the order of their names."""
    return {
        "nodes": [
            {**_type(each), "interfaces": list(each.interfaces)} for each in catalog.nodes.values()
        ],
        "edges": [
            {
                **_type(each),
                "word": each.name[:1].lower() + each.name[1:],
                "source": each.source,
                "target": each.target,
                "cardinality": None if each.cardinality.is_default else str(each.cardinality),
            }
            for each in catalog.edges.values()
        ],
        "interfaces": [
            {
                "name": each.name,
                "types": list(catalog.types_of(each.name)),
                "properties": _properties(each),
            }
            for each in catalog.interfaces.values()
        ],
    }


def _type(entity: NodeType | EdgeType) -> Json:
    return {
        "name": entity.name,
        "table_key": entity.table_key,
        "description": entity.description,
        "key": list(entity.key or ()),
        "uniques": [list(columns) for columns in entity.uniques],
        "indexes": [list(columns) for columns in entity.indexes],
        "properties": _properties(entity),
    }


def _properties(owner: NodeType | EdgeType | InterfaceType) -> list[Json]:
    indexed = {columns[0] for columns in owner.indexes}
    return [_property(each, each.name in indexed) for each in owner.properties.values()]


def _property(declared: Property, is_indexed: bool) -> Json:
    return {
        "name": declared.name,
        "type": str(declared.type).removesuffix("?"),
        "nullable": declared.type.nullable,
        "is_text": declared.type.is_text,
        "is_vector": declared.type.is_vector,
        "is_blob": declared.type.is_blob,
        "indexed": is_indexed,
        "embeds": None if declared.embed is None else declared.embed.source,
        "description": declared.description,
    }
