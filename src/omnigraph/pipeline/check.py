"""Check: what must hold between rows of a load that fits in this process.

Two rounds, because which rows are replaced decides the rest:

    ids     repeated ids; ids that are there already; rows a merge replaces
    rules   endpoints, @unique, @card, edges an overwrite would leave hanging

Several columns are looked at at a time. A load that is too large for this is checked by an
exchange, with the same results (check_exchange.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan, KeyColumns, RowNumbers
from omnigraph.pipeline.hashes import find_repeated
from omnigraph.pipeline.model import LoadMode
from omnigraph.storage.projection import ROW_ADDRESS
from omnigraph.write.bad_rows import BadRow
from omnigraph.write.convert import ID
from omnigraph.write.fit import to_mask
from omnigraph.write.integrity import (
    NO_IDS,
    Side,
    UniqueGroup,
    describe_repeated_id,
    duplicate_ids,
    last_by_id,
    split_surviving,
)
from omnigraph.write.rules import BrokenCardinality, BrokenRule, OrphanedEdges, check_rules

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
    """What the ids of one table say.

    `lost` are the numbers of rows that a later record of the same id replaces. `replaced` are the
    committed rows that a merge replaces: their addresses, ids and, for `@card`, sources.
    """

    table_key: str
    repeated: list[Violation] = field(default_factory=list)
    repeated_total: int = 0
    taken: list[tuple[int, str]] = field(default_factory=list)
    lost: RowNumbers = field(default_factory=lambda: np.empty(0, np.int64))
    replaced: pa.Table | None = None


def run_in_threads(
    threads: int, function: Callable[[Item], Result], items: Iterable[Item]
) -> list[Result]:
    """Apply a function to every item, in order; most of a check is Arrow's, outside the lock."""
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


# Round one: ids


def check_ids(columns: KeyColumns, limit: int | None, threads: int = 1) -> list[IdOutcome]:
    """Check the ids of every loaded table unless all of them were generated."""
    plan = columns.plan
    keys = [key for key in plan.list_table_keys() if not plan.has_made_ids(key)]
    return run_in_threads(
        threads, lambda key: _check_ids_of(columns, plan.catalog.entity(key), limit), keys
    )


def _check_ids_of(columns: KeyColumns, entity: EntityType, limit: int | None) -> IdOutcome:
    key = entity.table_key
    rows = columns.read_loaded(key, [ID])
    ids, row_numbers = rows[ID].combine_chunks(), rows[ROW_NUMBER].to_numpy()
    outcome = IdOutcome(key)
    distinct = ids
    if columns.plan.mode is not LoadMode.MERGE:
        candidates = find_repeated(ids)
        if len(candidates):
            repeats = _find_repeats(entity, ids, row_numbers, candidates, limit)
            outcome.repeated, outcome.repeated_total = repeats
            distinct = pc.unique(ids)
    match columns.plan.mode:
        case LoadMode.MERGE:
            outcome.lost = np.setdiff1d(
                row_numbers, last_by_id(rows)[ROW_NUMBER].to_numpy(), assume_unique=True
            )
            counts_edges = isinstance(entity, EdgeType) and not entity.cardinality.is_default
            wanted = [ID, "src"] if counts_edges else [ID]
            outcome.replaced = columns.read_committed(key, wanted, among=pc.unique(ids), by=ID)
        case LoadMode.APPEND:
            committed = columns.read_committed(key, [ID], among=distinct, by=ID)
            found = np.flatnonzero(to_mask(pc.is_in(ids, committed[ID].combine_chunks())))[:limit]
            outcome.taken = [(int(row_numbers[row]), ids[row].as_py()) for row in found.tolist()]
    return outcome


def _find_repeats(
    entity: EntityType,
    ids: pa.StringArray,
    row_numbers: RowNumbers,
    candidates: RowNumbers,
    limit: int | None,
) -> tuple[list[Violation], int]:
    """Rows among the candidates whose id an earlier row has. Of a keyed type the key is named."""
    found = duplicate_ids(entity, ids.take(pa.array(candidates)), limit)
    bad = [_name_key(entity, replace(each, index=int(candidates[each.index]))) for each in found]
    return [Violation(int(row_numbers[e.index]), entity.table_key, e) for e in bad], found.total


def describe_repeat(entity: EntityType, value: str) -> BadRow:
    """What is wrong with a row whose id an earlier row has."""
    return _name_key(entity, describe_repeated_id(entity, value))


def _name_key(entity: EntityType, bad: BadRow) -> BadRow:
    if entity.key is None:
        return bad
    group = UniqueGroup(entity.name, entity.key)
    reason = f"@unique violation on {group}"
    return replace(bad, property=", ".join(group.members), reason=reason)


# Round two: rules between rows


def check_rows(
    columns: KeyColumns, replaced: dict[str, pa.Table], limit: int | None, threads: int = 1
) -> tuple[list[Violation], int]:
    """Every broken rule, up to the limit of each rule, and how many there are.

    `replaced` holds the committed rows that a merge replaces.
    """
    found = list(
        check_rules(_LoadedGraph(columns, replaced), limit, partial(run_in_threads, threads))
    )
    violations = [each for broken in found for each in _to_violations(broken, limit)]
    return violations, sum(broken.bad.total for broken in found)


def _to_violations(broken: BrokenRule, limit: int | None) -> Iterator[Violation]:
    key = broken.entity.table_key
    match broken:
        case OrphanedEdges():
            yield from (Violation(None, key, name_committed(bad)) for bad in broken.bad)
        case BrokenCardinality(rows=rows, sources=sources):
            # Blame the last loaded edge of the source, or all of them when they are quarantined.
            for bad in broken.bad:
                edges = rows.filter(pc.equal(rows["src"], sources[bad.index]))
                blamed = edges[ROW_NUMBER].to_pylist() or [None]
                for row_number in blamed if limit is None else blamed[-1:]:
                    shown = name_committed(bad) if row_number is None else bad
                    yield Violation(row_number, key, shown)
        case _:
            row_numbers = broken.rows[ROW_NUMBER].to_numpy()
            yield from (Violation(int(row_numbers[bad.index]), key, bad) for bad in broken.bad)


def name_committed(bad: BadRow) -> BadRow:
    """A bad row that no loaded row is to blame for."""
    return replace(bad, location="committed rows")


def list_changed_types(plan: CheckPlan) -> list[EntityType]:
    """The loaded types, in the order of reports."""
    return [plan.catalog.entity(key) for key in plan.list_table_keys()]


def list_edge_types(plan: CheckPlan) -> list[EdgeType]:
    """All edge types, the loaded ones first."""
    changed = list_changed_types(plan)
    loaded = {each.name: each for each in changed if isinstance(each, EdgeType)}
    return list((loaded | dict(plan.catalog.edges)).values())


@dataclass(frozen=True, slots=True)
class _LoadedGraph:
    """The graph after a load. Values were checked when records were read."""

    columns: KeyColumns
    replaced: dict[str, pa.Table]

    def list_changed_types(self) -> list[EntityType]:
        return list_changed_types(self.columns.plan)

    def list_edge_types(self) -> list[EdgeType]:
        return list_edge_types(self.columns.plan)

    def list_value_columns(self, entity: EntityType) -> list[str]:
        return []

    def read_new_rows(self, entity: EntityType, columns: Sequence[str]) -> pa.Table:
        return self.columns.read_loaded(entity.table_key, columns)

    def read_surviving_rows(
        self, entity: EntityType, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        key = entity.table_key
        asked = NO_IDS if self.columns.plan.is_overwritten(key) else values
        committed = self.columns.read_committed(key, columns, among=asked, by=by)
        replaced = self.replaced.get(key)
        if replaced is None:
            return committed
        return split_surviving(committed, replaced[ID].combine_chunks())[0]

    def read_lost_edges(self, edge: EdgeType) -> pa.Table:
        replaced = self.replaced.get(edge.table_key)
        if replaced is None:
            return pa.table({ID: NO_IDS, "src": NO_IDS})
        return replaced

    def read_exposed_edges(self, edge: EdgeType, side: Side, node_name: str) -> pa.Table | None:
        key = edge.table_key
        if self.columns.plan.is_overwritten(key) or not self.columns.plan.is_overwritten(
            f"node:{node_name}"
        ):
            return None
        return self.columns.read_committed(key, [ID, side], among=None, by=side)

    def find_live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        key = f"node:{node_name}"
        new = self.columns.read_loaded(key, [ID])[ID].combine_chunks()
        if self.columns.plan.is_overwritten(key):
            return new
        asked = pc.unique(ids)
        asked = asked.filter(pc.invert(pc.is_in(asked, new)))
        committed = self.columns.read_committed(key, [ID], among=asked, by=ID)
        return pa.concat_arrays([new, committed[ID].combine_chunks()])

    def list_deleted_nodes(self, node_name: str) -> None:
        return None


def addresses_of(replaced: pa.Table) -> np.ndarray:
    """Where the replaced rows lie."""
    return np.asarray(replaced[ROW_ADDRESS].to_numpy(), dtype=np.uint64)
