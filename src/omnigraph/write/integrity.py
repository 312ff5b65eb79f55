"""Integrity: what must hold between rows: unique tuples, distinct ids, endpoints, cardinality.

Every check is a function of one or two columns of text. `describe_*` say what is wrong with a row,
also for a load that is too large for one process and is checked by an exchange.

`split_surviving` comes first: a committed row that the write replaces or deletes takes no part in
the other checks, and only its id says so.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.model import EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.write.bad_rows import NO_BAD_ROWS, SHOWN_MAX, BadRow, BadRows, excerpt, shorten
from omnigraph.write.convert import ID
from omnigraph.write.fit import to_mask
from omnigraph.write.keys import canonical_strings, column_type, whole_column

NO_IDS = pa.array([], pa.utf8())

Side: TypeAlias = Literal["src", "dst"]


@dataclass(frozen=True, slots=True)
class UniqueGroup:
    """Properties that together name at most one row of a type: a `@key` or a `@unique`."""

    type_name: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        listed = ", ".join(self.members)
        return f"{self.type_name}.{listed if len(self.members) == 1 else f'({listed})'}"


def unique_groups(entity: EntityType) -> tuple[UniqueGroup, ...]:
    """Every group of a type, the key first, each set of members once."""
    groups = [*([entity.key] if entity.key is not None else []), *entity.uniques]
    distinct = {frozenset(members): members for members in reversed(groups)}
    return tuple(UniqueGroup(entity.name, members) for members in reversed(distinct.values()))


def groups_besides_key(entity: EntityType) -> list[UniqueGroup]:
    """The groups that the ids do not cover: a row with the same key is the same row."""
    key = entity.key
    return [each for each in unique_groups(entity) if key is None or {*each.members} != {*key}]


def edge_ends(edge: EdgeType) -> tuple[tuple[Side, str], tuple[Side, str]]:
    """Both sides of an edge with the node type there."""
    return ("src", edge.source), ("dst", edge.target)


def tuple_keys(entity: EntityType, group: UniqueGroup, table: pa.Table) -> pa.StringArray:
    """One text per row that stands for its tuple; null where a member is null, so exempt.

    A member is framed by its length in bytes (`3:KDD4:2024`), which no value can imitate.
    """
    members = [
        canonical_strings(whole_column(table, name), column_type(entity, name))
        for name in group.members
    ]
    if len(members) == 1:
        return members[0]
    framed = [
        part
        for member in members
        for part in (pc.cast(pc.binary_length(member), pa.utf8()), ":", member)
    ]
    return pc.binary_join_element_wise(*framed, "")


def duplicate_tuples(
    group: UniqueGroup, keys: pa.StringArray, limit: int | None = SHOWN_MAX
) -> BadRows:
    """Rows whose tuple an earlier row of the same input has already."""
    return _tuple_violations(group, keys, _repeats(keys), limit)


def find_clashes(
    group: UniqueGroup,
    keys: pa.StringArray,
    committed_keys: pa.StringArray,
    limit: int | None = SHOWN_MAX,
) -> BadRows:
    """Rows whose tuple a committed row has that survives the write (see `split_surviving`)."""
    clashing = np.flatnonzero(is_among(keys, committed_keys))
    return _tuple_violations(group, keys, clashing, limit)


def split_surviving(committed: pa.Table, gone_ids: pa.StringArray) -> tuple[pa.Table, pa.Table]:
    """Split committed rows by `id`: those the write leaves alone, and those it takes away.

    `gone_ids` are the ids the write replaces and the ids it deletes.
    """
    is_gone = pa.array(is_among(whole_column(committed, ID), gone_ids))
    return committed.filter(pc.invert(is_gone)), committed.filter(is_gone)


def last_by_id(table: pa.Table) -> pa.Table:
    """Keep the last row of every id, in input order. Rows without an id are all kept."""
    ids = whole_column(table, ID)
    codes, distinct_count = _codes(ids)
    if distinct_count == len(ids) - ids.null_count:
        return table
    rows = np.arange(len(ids))
    last = np.zeros(distinct_count, dtype=np.int64)
    np.maximum.at(last, codes[codes >= 0], rows[codes >= 0])
    return table.take(pa.array(np.sort(np.concatenate([last, rows[codes < 0]]))))


def duplicate_ids(
    entity: EntityType, ids: pa.StringArray, limit: int | None = SHOWN_MAX
) -> BadRows:
    """Rows whose id an earlier row of the same input has already."""

    def describe(row: int) -> BadRow:
        return describe_repeated_id(entity, ids[row].as_py(), row)

    return BadRows.at(_repeats(ids), describe, limit)


def describe_repeated_id(entity: EntityType, value: str, row: int = 0) -> BadRow:
    reason = f"id '{shorten(value)}' occurs more than once in the input"
    return BadRow(row, entity.name, ID, excerpt(value), reason)


def missing_endpoints(
    edge: EdgeType,
    side: Side,
    endpoint_ids: pa.StringArray,
    node_ids: pa.StringArray,
    limit: int | None = SHOWN_MAX,
) -> BadRows:
    """Edges whose endpoint on `side` is not among the nodes that exist after the write."""

    def describe(row: int) -> BadRow:
        return describe_missing_end(edge, side, endpoint_ids[row].as_py(), row)

    absent = ~is_among(endpoint_ids, node_ids) & to_mask(endpoint_ids.is_valid())
    return BadRows.at(np.flatnonzero(absent), describe, limit)


def describe_missing_end(edge: EdgeType, side: Side, value: str, row: int = 0) -> BadRow:
    node_name = edge.source if side == "src" else edge.target
    reason = f"{side} '{shorten(value)}' not found in {node_name}"
    return BadRow(row, edge.name, side, excerpt(value), reason)


def find_touched_sources(
    written: pa.StringArray, lost: pa.StringArray | None, deleted_nodes: pa.StringArray | None
) -> pa.StringArray:
    """The nodes whose number of edges a write may have changed, each once."""
    touched = pc.unique(pa.chunked_array([written, lost if lost is not None else NO_IDS]))
    touched = touched.drop_null()
    if deleted_nodes is not None:
        touched = touched.filter(pa.array(~is_among(touched, deleted_nodes)))
    return touched


def cardinality_violations(
    edge: EdgeType,
    *,
    written: pa.StringArray,
    surviving: pa.StringArray,
    lost: pa.StringArray | None = None,
    deleted_nodes: pa.StringArray | None = None,
    limit: int | None = SHOWN_MAX,
) -> BadRows:
    """Sources the write touches that end up with too many or too few edges.

    `written`, `surviving` and `lost` are the `src` of the edges the write adds or replaces, of the
    committed edges it leaves alone, and of those it takes away. A source in `deleted_nodes` is
    skipped, and so is one that the write does not touch. `index` counts `find_touched_sources`.
    """
    if edge.cardinality.is_default:
        return NO_BAD_ROWS
    touched = find_touched_sources(written, lost, deleted_nodes)
    counts = _counts(touched, written) + _counts(touched, surviving)

    def describe(row: int) -> BadRow:
        return describe_cardinality(edge, touched[row].as_py(), int(counts[row]), row)

    return BadRows.at(np.flatnonzero(is_out_of_bounds(edge, counts)), describe, limit)


def is_out_of_bounds(edge: EdgeType, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether each number of edges is one that `@card` does not allow."""
    maximum = edge.cardinality.maximum
    violating = counts < edge.cardinality.minimum
    return violating if maximum is None else violating | (counts > maximum)


def describe_cardinality(edge: EdgeType, source: str, count: int, row: int = 0) -> BadRow:
    bounds = edge.cardinality
    bound = f"min {bounds.minimum}" if count < bounds.minimum else f"max {bounds.maximum}"
    reason = (
        f"@card violation on edge {edge.name}: "
        f"source '{shorten(source)}' has {count} edges ({bound})"
    )
    return BadRow(row, edge.name, "src", excerpt(source), reason)


def _tuple_violations(
    group: UniqueGroup, keys: pa.StringArray, rows: npt.NDArray[np.int64], limit: int | None
) -> BadRows:
    def describe(row: int) -> BadRow:
        return describe_tuple(group, keys[row].as_py(), row)

    return BadRows.at(rows, describe, limit)


def describe_tuple(group: UniqueGroup, key: str, row: int = 0) -> BadRow:
    """What is wrong with a row whose tuple, framed by `tuple_keys`, another row has."""
    shown = ", ".join(excerpt(member) for member in _members(group, key))
    property_ = ", ".join(group.members)
    return BadRow(row, group.type_name, property_, shown, f"@unique violation on {group}")


def _members(group: UniqueGroup, key: str) -> list[str]:
    """Undo the framing of `tuple_keys`."""
    if len(group.members) == 1:
        return [key]
    rest = key.encode()
    members: list[str] = []
    while rest:
        length, _, rest = rest.partition(b":")
        members.append(rest[: int(length)].decode())
        rest = rest[int(length) :]
    return members


def _codes(texts: pa.StringArray) -> tuple[npt.NDArray[np.int64], int]:
    """Number the distinct texts in order of appearance; -1 for null. And how many there are."""
    encoded = pc.dictionary_encode(texts)
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return codes, len(encoded.dictionary)


def _repeats(texts: pa.StringArray) -> npt.NDArray[np.int64]:
    """The rows whose text an earlier row has; null repeats nothing."""
    codes, distinct_count = _codes(texts)
    if distinct_count == len(texts) - texts.null_count:
        return np.empty(0, dtype=np.int64)
    # A text is new exactly where its number is higher than all before it.
    highest = np.maximum.accumulate(codes)
    highest_before = np.concatenate([np.array([-1]), highest[:-1]])
    return np.flatnonzero((codes >= 0) & (codes <= highest_before))


def is_among(texts: pa.StringArray, known: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Whether each text is one of `known`. Null is among nothing."""
    return to_mask(pc.is_in(texts, value_set=known, skip_nulls=True))


def _counts(of: pa.StringArray, texts: pa.StringArray) -> npt.NDArray[np.int64]:
    """How often each of the distinct texts in `of` occurs in `texts`."""
    positions = pc.index_in(texts, value_set=of).drop_null().to_numpy()
    return np.bincount(positions, minlength=len(of))
