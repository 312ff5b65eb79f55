"""Check: what must hold between rows, for one bucket of a load.

Two rounds, because who replaces whom decides the rest:

    ids     by id                 repeated ids; ids that are there already; rows a merge replaces
    rules   by endpoint, tuple,   endpoints, @unique, @card, edges an overwrite would leave hanging
            or source

Each round is a function of one hash bucket. A load of ordinary size is one bucket in the driver,
which looks at several columns at a time; beyond that a runner maps the buckets, and no bucket
holds more than its share of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType, NodeType
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan, KeyColumns, RowNumbers
from omnigraph.pipeline.model import LoadMode
from omnigraph.storage.location import graph_root
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import BadRow, excerpt, shortened
from omnigraph.write.convert import ID
from omnigraph.write.integrity import (
    NO_IDS,
    Side,
    UniqueGroup,
    groups_besides_key,
    split_surviving,
)
from omnigraph.write.rules import (
    BrokenCardinality,
    BrokenRule,
    OrphanedEdges,
    Rule,
    check_rules,
)

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken by one loaded row; `row_number` is None when no loaded row is to blame."""

    row_number: int | None
    table_key: str
    bad: BadRow


@dataclass(slots=True)
class IdOutcome:
    """What the ids of one bucket of one table say.

    `lost` are the numbers of rows that a later record of the same id replaces. `replaced` are the
    committed rows that a merge takes away: their addresses, and the columns later checks need.
    """

    table_key: str
    repeated: list[Violation] = field(default_factory=list)
    repeated_total: int = 0
    taken: list[tuple[int, str]] = field(default_factory=list)
    lost: RowNumbers = field(default_factory=lambda: np.empty(0, np.int64))
    replaced: pa.Table | None = None


def tables_for(plan: CheckPlan) -> TableStorage:
    """Storage for a check that runs in another process."""
    return TableStorage(graph_root(plan.root), plan.storage_options)


def in_threads(
    threads: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> list[Result]:
    """Apply a function to every item, in order; most of a check is Arrow's, outside the lock."""
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


# Round one: ids


def check_ids(columns: KeyColumns, limit: int | None, threads: int = 1) -> list[IdOutcome]:
    """Look at the ids of every loaded table that did not get all of them from us."""
    plan = columns.plan
    keys = [key for key in plan.loaded_keys() if not plan.has_made_ids(key)]
    return in_threads(threads, lambda key: _check_ids_of(columns, plan.entity(key), limit), keys)


def _check_ids_of(columns: KeyColumns, entity: EntityType, limit: int | None) -> IdOutcome:
    key = entity.table_key
    rows = columns.loaded(key, [ID])
    ids, row_numbers = rows[ID].combine_chunks(), rows[ROW_NUMBER].to_numpy()
    outcome = IdOutcome(key)
    is_last = _is_last(ids)
    match columns.plan.mode:
        case LoadMode.MERGE:
            outcome.lost = row_numbers[~is_last]
            wanted = replaced_columns(entity)
            outcome.replaced = columns.committed(key, wanted, among=pc.unique(ids), by=ID)
        case LoadMode.APPEND:
            outcome.repeated, outcome.repeated_total = _repeated(entity, ids, row_numbers, limit)
            committed = columns.committed(key, [ID], among=pc.unique(ids), by=ID)
            taken = pc.is_in(ids, committed[ID].combine_chunks()).to_numpy(zero_copy_only=False)
            found = np.flatnonzero(taken)[:limit]
            outcome.taken = [(int(row_numbers[row]), ids[row].as_py()) for row in found.tolist()]
        case LoadMode.OVERWRITE:
            outcome.repeated, outcome.repeated_total = _repeated(entity, ids, row_numbers, limit)
    return outcome


def replaced_columns(entity: EntityType) -> list[str]:
    """The columns of a replaced row that later checks look at."""
    names = [ID]
    if isinstance(entity, EdgeType) and not entity.cardinality.is_default:
        names.append("src")
    for group in groups_besides_key(entity):
        names += group.members
    return list(dict.fromkeys(names))


def _is_last(ids: pa.StringArray) -> np.ndarray:
    encoded = pc.dictionary_encode(ids)
    codes = encoded.indices.to_numpy()
    last = np.zeros(len(encoded.dictionary), dtype=np.int64)
    rows = np.arange(len(codes))
    last[codes] = rows  # the last assignment of a code stays
    is_last = np.zeros(len(codes), dtype=np.bool_)
    is_last[last] = True
    return is_last if len(codes) else np.zeros(0, np.bool_)


def _repeated(
    entity: EntityType, ids: pa.StringArray, row_numbers: RowNumbers, limit: int | None
) -> tuple[list[Violation], int]:
    """Rows whose id an earlier row has. For a keyed node that is its key, and is said so."""
    encoded = pc.dictionary_encode(ids)
    if len(encoded.dictionary) == len(ids):
        return [], 0
    codes = encoded.indices.to_numpy()
    _, firsts = np.unique(codes, return_index=True)
    repeats = np.setdiff1d(np.arange(len(codes)), firsts)
    key = entity.key if isinstance(entity, NodeType) else None

    def describe(value: str) -> BadRow:
        if key is not None:
            reason = f"@unique violation on {UniqueGroup(entity.name, key)}"
            return BadRow(0, entity.name, ", ".join(key), excerpt(value), reason)
        reason = f"id '{shortened(value)}' occurs more than once in the input"
        return BadRow(0, entity.name, ID, excerpt(value), reason)

    shown = [
        Violation(int(row_numbers[row]), entity.table_key, describe(ids[row].as_py()))
        for row in repeats[:limit].tolist()
    ]
    return shown, len(repeats)


# Round two: rules between rows


def check_bucket(
    columns: KeyColumns, replaced: dict[str, pa.Table], limit: int | None, threads: int = 1
) -> tuple[list[Violation], int]:
    """Every broken rule of one bucket, up to the limit of each rule, and how many there are.

    `replaced` holds the committed rows a merge takes away.
    """
    found = list(check_rules(_LoadedGraph(columns, replaced), limit, partial(_run, threads)))
    violations = [each for broken in found for each in _to_violations(broken, limit)]
    return violations, sum(broken.bad.total for broken in found)


def _run(threads: int, rules: list[Rule]) -> list[BrokenRule | None]:
    return in_threads(threads, lambda rule: rule(), rules)


def _to_violations(broken: BrokenRule, limit: int | None) -> Iterator[Violation]:
    key = broken.entity.table_key
    match broken:
        case OrphanedEdges():
            yield from (Violation(None, key, bad) for bad in broken.bad)
        case BrokenCardinality(rows=rows, sources=sources):
            # Blame the last loaded edge of the source, or all of them when they are quarantined.
            for bad in broken.bad:
                edges = rows.filter(pc.equal(rows["src"], sources[bad.index]))
                blamed = edges[ROW_NUMBER].to_pylist() or [None]
                for row_number in blamed if limit is None else blamed[-1:]:
                    yield Violation(row_number, key, bad)
        case _:
            row_numbers = broken.rows[ROW_NUMBER].to_numpy()
            yield from (Violation(int(row_numbers[bad.index]), key, bad) for bad in broken.bad)


@dataclass(frozen=True, slots=True)
class _LoadedGraph:
    """The graph after a load, one bucket of it. Values were checked when records were read."""

    columns: KeyColumns
    replaced: dict[str, pa.Table]

    def changed_types(self) -> list[EntityType]:
        return [self.columns.plan.entity(key) for key in self.columns.plan.loaded_keys()]

    def edge_types(self) -> list[EdgeType]:
        loaded = {each.name: each for each in self.changed_types() if isinstance(each, EdgeType)}
        return list((loaded | dict(self.columns.plan.catalog.edges)).values())

    def value_columns(self, entity: EntityType) -> list[str]:
        return []

    def new_rows(self, entity: EntityType, columns: Sequence[str]) -> pa.Table:
        return self.columns.loaded(entity.table_key, columns)

    def surviving_rows(
        self, entity: EntityType, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        key = entity.table_key
        asked = NO_IDS if self._is_overwritten(key) else values
        committed = self.columns.committed(key, columns, among=asked, by=by)
        replaced = self.replaced.get(key)
        if replaced is None:
            return committed
        return split_surviving(committed, replaced[ID].combine_chunks())[0]

    def lost_edges(self, edge: EdgeType) -> pa.Table:
        replaced = self.replaced.get(edge.table_key)
        if replaced is None:
            return pa.table({ID: NO_IDS, "src": NO_IDS})
        return self.columns.bucket.select(replaced, replaced["src"])

    def exposed_edges(self, edge: EdgeType, side: Side, node_name: str) -> pa.Table | None:
        key = edge.table_key
        if self._is_overwritten(key) or not self._is_overwritten(f"node:{node_name}"):
            return None
        return self.columns.committed(key, [ID, side], among=None, by=side)

    def live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        key = f"node:{node_name}"
        new = self.columns.loaded(key, [ID])[ID].combine_chunks()
        if self._is_overwritten(key):
            return new
        asked = pc.unique(ids)
        asked = asked.filter(pc.invert(pc.is_in(asked, new)))
        committed = self.columns.committed(key, [ID], among=asked, by=ID)
        return pa.concat_arrays([new, committed[ID].combine_chunks()])

    def deleted_nodes(self, node_name: str) -> None:
        return None

    def _is_overwritten(self, table_key: str) -> bool:
        plan = self.columns.plan
        return plan.mode is LoadMode.OVERWRITE and table_key in plan.loaded_keys()


def addresses_of(replaced: pa.Table | None) -> np.ndarray:
    """Where the replaced rows lie."""
    if replaced is None:
        return np.empty(0, np.uint64)
    return np.asarray(replaced[ROW_ADDRESS].to_numpy(), dtype=np.uint64)
