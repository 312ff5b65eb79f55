"""Keys: the canonical string of every scalar, and the ids that are made of them.

Two values of a type have the same canonical string exactly when they are equal, so ids, unique
tuples and endpoints can all be compared as text.
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.layout import arrow_schema
from omnigraph.catalog.model import EdgeType, EntityType, NodeType
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConstraintError
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.bad_rows import NO_BAD_ROWS, SHOWN_MAX, BadRow, BadRows, excerpt
from omnigraph.write.convert import ID, Columns
from omnigraph.write.fit import to_mask
from omnigraph.write.ulids import new_ulids
from omnigraph.write.values import Unfit, to_stored

_STRUCTURAL_TYPE = PropertyType(Scalar.STRING)


@dataclass(frozen=True, slots=True)
class Ids:
    """One id per row, null only where a key member is, and the rows whose own `id` disagrees."""

    ids: pa.StringArray
    bad: BadRows


@dataclass(frozen=True, slots=True)
class Rows:
    """A table in stored order and type, ids included. To be stored only when `bad` is empty."""

    table: pa.Table
    bad: BadRows


def column_type(entity: EntityType, name: str) -> PropertyType:
    """The type of a property or a structural column."""
    if name in entity.structural_columns:
        return _STRUCTURAL_TYPE
    return entity.properties[name].type


def canonical_strings(column: pa.Array, type_: PropertyType) -> pa.StringArray:
    """Spell every value of a stored column canonically; null stays null.

    Raises:
        ConstraintError: The type has no canonical spelling, or a float is not finite.
    """
    if type_.is_list:
        raise ConstraintError(f"unsupported column type {type_} in a key or @unique")
    match type_.scalar:
        case Scalar.STRING:
            return column
        case Scalar.BOOL | Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return pc.cast(column, pa.utf8())
        case Scalar.DATE:
            return pc.cast(column.view(pa.int32()), pa.utf8())
        case Scalar.DATETIME:
            return pc.cast(column.view(pa.int64()), pa.utf8())
        case Scalar.F32 | Scalar.F64:
            if not pc.all(pc.is_finite(column), min_count=0).as_py():
                raise ConstraintError("a key or @unique value must be a finite number")
            return pc.if_else(pc.equal(column, 0), "0", pc.cast(column, pa.utf8()))
        case Scalar.VECTOR | Scalar.BLOB:
            raise ConstraintError(f"unsupported column type {type_} in a key or @unique")
    assert_never(type_.scalar)


def make_ids(
    entity: EntityType,
    table: pa.Table,
    explicit_ids: pa.StringArray,
    limit: int | None = SHOWN_MAX,
) -> Ids:
    """The id of every row: its key spelled canonically, else its own `id`, else a fresh ULID.

    `table` has at least the members of the key.
    """
    if entity.key is None:
        return Ids(_fill_ids(explicit_ids), NO_BAD_ROWS)
    ids = key_ids(entity, table)
    if explicit_ids.null_count == len(explicit_ids):
        return Ids(ids, NO_BAD_ROWS)
    suspects = np.flatnonzero(to_mask(pc.not_equal(ids, explicit_ids)))
    # Another spelling of the same key is welcome: `"007"` beside the integer 7, a date beside days.
    wrong = [
        row for row in suspects if _canonical_id(entity, explicit_ids[row]) != ids[row].as_py()
    ]

    def describe(row: int) -> BadRow:
        given, made = excerpt(explicit_ids[row].as_py()), excerpt(ids[row].as_py())
        return BadRow(
            row, entity.name, ID, given, f"id does not match the key, which makes it {made}"
        )

    return Ids(ids, BadRows.at(np.array(wrong, dtype=np.int64), describe, limit))


def _fill_ids(explicit_ids: pa.StringArray) -> pa.StringArray:
    """The id of every row without a key: its own, else a fresh ULID."""
    if explicit_ids.null_count == 0:
        return explicit_ids
    return pc.coalesce(explicit_ids, new_ulids(len(explicit_ids)))


def key_ids(entity: EntityType, table: pa.Table) -> pa.StringArray:
    """The ids that the key columns of a keyed type make, null where a member is null."""
    assert entity.key is not None
    members = [
        canonical_strings(whole_column(table, name), column_type(entity, name))
        for name in entity.key
    ]
    return members[0] if len(members) == 1 else json_arrays(members)


def node_rows(node: NodeType, columns: Columns, limit: int | None = SHOWN_MAX) -> Rows:
    """Put ids before converted properties."""
    made = make_ids(node, columns.table, columns.explicit_ids, limit)
    arrays = [made.ids, *columns.table.columns]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(node))
    return Rows(table, BadRows.of_batch([columns.bad, made.bad], limit))


def edge_rows(
    edge: EdgeType,
    columns: Columns,
    sources: pa.StringArray,
    targets: pa.StringArray,
    limit: int | None = SHOWN_MAX,
) -> Rows:
    """Put ids and endpoints before converted properties. An edge without an endpoint is bad."""

    def missing(label: str, ids: pa.StringArray) -> BadRows:
        return BadRows.at(
            np.flatnonzero(to_mask(ids.is_null())),
            lambda row: BadRow(row, edge.name, label, "", f"an edge needs a string `{label}`"),
            limit,
        )

    ends = columns.table.append_column("src", sources).append_column("dst", targets)
    made = make_ids(edge, ends, columns.explicit_ids, limit)
    arrays = [made.ids, sources, targets, *columns.table.columns]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(edge))
    parts = [missing("from", sources), missing("to", targets), columns.bad, made.bad]
    return Rows(table, BadRows.of_batch(parts, limit))


def json_arrays(members: list[pa.StringArray]) -> pa.StringArray:
    """A compact JSON array of strings per row, null where a member is null."""
    parts: list[pa.StringArray | str] = ["["]
    for number, member in enumerate(members):
        parts += ["," if number else "", _json_strings(member)]
    return pc.binary_join_element_wise(*parts, "]", "")


def whole_column(table: pa.Table, name: str) -> pa.Array:
    """One column as a single array."""
    return table.column(name).combine_chunks()


def _json_strings(texts: pa.StringArray) -> pa.StringArray:
    needs_escape = pc.match_substring_regex(texts, r'["\\\x00-\x1f]')
    if pc.any(needs_escape, min_count=0).as_py():
        escaped = [
            None if text is None else orjson.dumps(text).decode()
            for text in pc.if_else(needs_escape, texts, None).to_pylist()
        ]
        plain = pc.if_else(needs_escape, None, texts)
        quoted = pc.binary_join_element_wise('"', plain, '"', "")
        return pc.coalesce(quoted, pa.array(escaped, pa.utf8()))
    return pc.binary_join_element_wise('"', texts, '"', "")


def _canonical_id(entity: EntityType, given: pa.StringScalar) -> str | None:
    """The canonical id of the key tuple that `given` denotes, or None when it denotes none."""
    assert entity.key is not None
    text: str = given.as_py()
    members: object = [text]
    if len(entity.key) > 1:
        try:
            members = orjson.loads(text)
        except orjson.JSONDecodeError:
            return None
    if not isinstance(members, list) or len(members) != len(entity.key):
        return None
    try:
        columns = {
            name: _key_member(column_type(entity, name), member)
            for name, member in zip(entity.key, members, strict=True)
        }
    except (Unfit, ValueError):
        return None
    made: str = key_ids(entity, pa.table(columns))[0].as_py()
    return made


def _key_member(type_: PropertyType, member: object) -> pa.Array:
    """One key member as a column of one row, from its text or its JSON value."""
    value = member
    if isinstance(member, str):
        match type_.scalar:
            case Scalar.BOOL:
                value = {"true": True, "false": False}.get(member)
            case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
                value = int(member)
            case Scalar.F32 | Scalar.F64:
                value = float(member)
            case Scalar.DATE | Scalar.DATETIME if member.lstrip("-").isdecimal():
                value = int(member)
    return pa.array([to_stored(type_, value)], type_.arrow_type())
