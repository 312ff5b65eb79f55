"""Layout: the table of a node or edge type: its columns, their Arrow types, and its indexes.

pyarrow is imported when a schema is first asked for, so that compiling a query stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.catalog.model import EntityType, IndexKind, NodeType
from omnigraph.types import PropertyType, Scalar

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_schema(entity: EntityType) -> pa.Schema:
    """The Arrow schema of the table: structural columns, then properties by name.

    A Blob appears as its logical placeholder, LargeBinary.
    """
    import pyarrow as pa

    structural = [pa.field(name, pa.utf8(), nullable=False) for name in entity.structural_columns]
    properties = [each.type.arrow_field(each.name) for each in entity.properties.values()]
    return pa.schema([*structural, *properties])


def index_kind(type_: PropertyType) -> IndexKind | None:
    """The physical index that suits a property of this type, if any does."""
    if type_.is_list or type_.is_blob:
        return None
    if type_.is_vector:
        return IndexKind.VECTOR
    if type_.scalar is Scalar.STRING and not type_.is_enum:
        return IndexKind.INVERTED
    return IndexKind.BTREE


def list_declared_indexes(entity: EntityType) -> tuple[tuple[str, IndexKind], ...]:
    """The physical indexes a table should have, in column order, each column at most once.

    Structural columns always have one. The ids of edges without a key rise with their rows, because
    they are made so and exported so: the least and the greatest of every few thousand rows find one
    as fast as a B-tree, which takes as much space as the edges. Of the declarations only those over
    one property ask for an index: a composite key or index is an intent that no index serves.
    """
    declared = {members[0] for members in entity.indexes if len(members) == 1}
    if entity.key is not None and len(entity.key) == 1:
        declared.add(entity.key[0])
    wanted = [(name, IndexKind.BTREE) for name in entity.structural_columns]
    if not isinstance(entity, NodeType) and entity.key is None:
        wanted[0] = (wanted[0][0], IndexKind.ZONEMAP)
    for name, property_ in entity.properties.items():
        kind = index_kind(property_.type)
        if name in declared and kind is not None:
            wanted.append((name, kind))
    return tuple(wanted)
