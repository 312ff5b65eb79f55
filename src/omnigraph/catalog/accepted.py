"""Accepted: the catalogue as the JSON text of `_schema.ir.json`, and back.

The document is the shape with identities beside the names. Reading is strict: a text that would
not be written back the same, byte order and spacing aside, was not written by this program, and a
catalogue guessed from it could hand out an identity twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from omnigraph.catalog.model import (
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    InterfaceType,
    NodeType,
    OpaqueAnnotation,
    Property,
    Range,
)
from omnigraph.catalog.shape import (
    Document,
    canonical,
    catalog_of,
    edge_shape,
    interface_shape,
    node_shape,
)
from omnigraph.errors import StorageError
from omnigraph.types import PropertyType, Scalar

FORMAT_VERSION = 1


def catalog_to_json(catalog: Catalog) -> str:
    """Return the text of the accepted schema: readable, and the same for equal catalogues."""
    return json.dumps(_document(catalog), indent=2, ensure_ascii=False) + "\n"


def catalog_from_json(text: str) -> Catalog:
    """Read what `catalog_to_json` wrote.

    Raises:
        StorageError: The text is damaged, edited by hand, or of a later format.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damage_error(f"is not JSON ({error})") from None
    version = document.get("format_version") if isinstance(document, dict) else None
    if version != FORMAT_VERSION:
        raise StorageError(
            f"the accepted schema has format_version {version}, this program reads "
            f"{FORMAT_VERSION} — open the graph with the program that wrote it"
        )
    try:
        catalog = _catalog(document)
        intact = canonical(_document(catalog)) == canonical(document)
        _check_names(catalog)
        _check_identities(catalog)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damage_error(f"cannot be read at {error}") from None
    if not intact:
        raise _damage_error("holds facts out of place")
    return catalog


def _document(catalog: Catalog) -> Document:
    aliases = {str(one): other for one, other in sorted(catalog.aliases.items())}
    return {
        "format_version": FORMAT_VERSION,
        "next_id": catalog.next_id,
        **({"aliases": aliases} if aliases else {}),
        "interfaces": [
            _with_ids(interface_shape(each), each) for each in catalog.interfaces.values()
        ],
        "nodes": [_with_ids(node_shape(each), each) for each in catalog.nodes.values()],
        "edges": [_with_ids(edge_shape(each), each) for each in catalog.edges.values()],
    }


def _with_ids(shape: Document, entity: InterfaceType | NodeType | EdgeType) -> Document:
    document: Document = {"name": entity.name, "type_id": entity.type_id}
    if not isinstance(entity, InterfaceType):
        document["incarnation_id"] = entity.incarnation_id
    document |= shape
    document["properties"] = [
        {"name": each["name"], "property_id": entity.properties[each["name"]].property_id} | each
        for each in shape.get("properties", ())
    ]
    if entity.key is not None:
        document["key"] = list(entity.key)
    return document


def _catalog(document: Document) -> Catalog:
    return catalog_of(
        interfaces={each["name"]: _interface(each) for each in document["interfaces"]},
        nodes={each["name"]: _node(each) for each in document["nodes"]},
        edges={each["name"]: _edge(each) for each in document["edges"]},
        next_id=document["next_id"],
        aliases={int(one): int(other) for one, other in document.get("aliases", {}).items()},
    )


def _interface(document: Document) -> InterfaceType:
    return InterfaceType(
        name=document["name"],
        type_id=document["type_id"],
        properties=_properties(document),
        key=tuple(document["key"]) if "key" in document else None,
        uniques=_tuples(document.get("uniques", ())),
        indexes=_tuples(document.get("indexes", ())),
    )


def _node(document: Document) -> NodeType:
    return NodeType(
        name=document["name"],
        type_id=document["type_id"],
        incarnation_id=document["incarnation_id"],
        properties=_properties(document),
        key=tuple(document["key"]) if "key" in document else None,
        uniques=_tuples(document.get("uniques", ())),
        indexes=_tuples(document.get("indexes", ())),
        ranges=tuple(Range(*each) for each in document.get("ranges", ())),
        checks=tuple(Check(*each) for each in document.get("checks", ())),
        interfaces=tuple(document.get("interfaces", ())),
        description=document.get("description"),
        instruction=document.get("instruction"),
        annotations=_annotations(document),
    )


def _edge(document: Document) -> EdgeType:
    return EdgeType(
        name=document["name"],
        type_id=document["type_id"],
        incarnation_id=document["incarnation_id"],
        source=document["source"],
        target=document["target"],
        cardinality=Cardinality(*document.get("cardinality", ())),
        properties=_properties(document),
        key=tuple(document["key"]) if "key" in document else None,
        uniques=_tuples(document.get("uniques", ())),
        indexes=_tuples(document.get("indexes", ())),
        description=document.get("description"),
        instruction=document.get("instruction"),
        annotations=_annotations(document),
    )


def _properties(document: Document) -> dict[str, Property]:
    return {each["name"]: _property(each) for each in document["properties"]}


def _property(document: Document) -> Property:
    type_ = document["type"]
    variants = type_.get("variants")
    embed = document.get("embed")
    return Property(
        name=document["name"],
        type=PropertyType(
            scalar=Scalar(type_["scalar"]),
            is_list=type_.get("is_list", False),
            nullable=type_.get("nullable", False),
            dimension=type_.get("dimension"),
            variants=None if variants is None else tuple(variants),
        ),
        property_id=document["property_id"],
        embed=None if embed is None else Embed(embed["source"], embed.get("model")),
        description=document.get("description"),
        annotations=_annotations(document),
        injected_by=tuple(document.get("injected_by", ())),
        language=document.get("language"),
    )


def _annotations(document: Document) -> tuple[OpaqueAnnotation, ...]:
    return tuple(
        OpaqueAnnotation(
            name=each["name"],
            value=each["value"][0] if "value" in each else None,
            kwargs=_tuples(each.get("kwargs", ())),
        )
        for each in document.get("annotations", ())
    )


def _tuples(lists: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(tuple(each) for each in lists)


def _check_names(catalog: Catalog) -> None:
    """Every type has a name, and every edge ends at node types."""
    named = all(isinstance(name, str) for name in (*catalog.interfaces, *catalog.nodes))
    ends = {end for edge in catalog.edges.values() for end in (edge.source, edge.target)}
    if not named or not ends <= catalog.nodes.keys():
        raise _damage_error("names a type that is not there")


def _check_identities(catalog: Catalog) -> None:
    """Every identity is a number below `next_id`, and no two are the same."""
    numbers: list[object] = []
    for each in (*catalog.interfaces.values(), *catalog.entities()):
        numbers.append(each.type_id)
        numbers += [property_.property_id for property_ in each.properties.values()]
        if not isinstance(each, InterfaceType):
            numbers.append(each.incarnation_id)
    valid = [n for n in numbers if type(n) is int and 0 < n < catalog.next_id]
    if len(set(valid)) != len(numbers):
        raise _damage_error("gives one identity twice, or one at or above next_id")


def _damage_error(how: str) -> StorageError:
    return StorageError(
        f"the accepted schema {how} — it was edited or damaged; restore it from a backup"
    )
