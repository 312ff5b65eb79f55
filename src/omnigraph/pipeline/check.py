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

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType, NodeType
from omnigraph.pipeline.buckets import Bucket
from omnigraph.pipeline.columns import PLACE, CheckPlan, KeyColumns, Places
from omnigraph.pipeline.model import LoadMode
from omnigraph.storage.location import graph_root
from omnigraph.storage.loose import ADDRESS
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import BadRow, BadRows, excerpt, shortened
from omnigraph.write.convert import ID
from omnigraph.write.integrity import (
    UniqueGroup,
    cardinality_violations,
    committed_clashes,
    duplicate_tuples,
    missing_endpoints,
    surviving_rows,
    tuple_keys,
    unique_groups,
)

_SIDES: tuple[tuple[Literal["src", "dst"], str], ...] = (("src", "source"), ("dst", "target"))
_NO_TEXTS = pa.array([], pa.utf8())

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken by one loaded row; `place` is None when no loaded row is to blame."""

    place: int | None
    table_key: str
    bad: BadRow


@dataclass(slots=True)
class IdOutcome:
    """What the ids of one bucket of one table say.

    `lost` are places of rows that a later record of the same id replaces. `replaced` are the
    committed rows that a merge takes away: their addresses, and the columns later checks need.
    """

    table_key: str
    repeated: list[Violation] = field(default_factory=list)
    repeated_total: int = 0
    taken: list[tuple[int, str]] = field(default_factory=list)
    lost: Places = field(default_factory=lambda: np.empty(0, np.int64))
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
    rows = columns.loaded(key, [ID], by=ID)
    ids, places = rows[ID].combine_chunks(), rows[PLACE].to_numpy()
    outcome = IdOutcome(key)
    is_last = _is_last(ids)
    match columns.plan.mode:
        case LoadMode.MERGE:
            outcome.lost = places[~is_last]
            wanted = replaced_columns(entity)
            outcome.replaced = columns.committed(key, wanted, among=pc.unique(ids), by=ID)
        case LoadMode.APPEND:
            outcome.repeated, outcome.repeated_total = _repeated(entity, ids, places, limit)
            committed = columns.committed(key, [ID], among=pc.unique(ids), by=ID)
            taken = pc.is_in(ids, committed[ID].combine_chunks()).to_numpy(zero_copy_only=False)
            found = np.flatnonzero(taken)[:limit]
            outcome.taken = [(int(places[row]), ids[row].as_py()) for row in found.tolist()]
        case LoadMode.OVERWRITE:
            outcome.repeated, outcome.repeated_total = _repeated(entity, ids, places, limit)
    return outcome


def replaced_columns(entity: EntityType) -> list[str]:
    """The columns of a replaced row that later checks look at."""
    names = [ID]
    if isinstance(entity, EdgeType) and not entity.cardinality.is_default:
        names.append("src")
    for group in _other_groups(entity):
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
    entity: EntityType, ids: pa.StringArray, places: Places, limit: int | None
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
        Violation(int(places[row]), entity.table_key, describe(ids[row].as_py()))
        for row in repeats[:limit].tolist()
    ]
    return shown, len(repeats)


# Round two: rules between rows


def check_rules(
    columns: KeyColumns, replaced: dict[str, pa.Table], limit: int | None, threads: int = 1
) -> tuple[list[Violation], int]:
    """Every broken rule of one bucket, up to the limit of each rule, and how many there are.

    `replaced` holds the committed rows a merge takes away.
    """

    def check(number: int) -> tuple[list[Violation], int]:
        one = RuleCheck(columns, replaced, limit)
        return list(one.rules()[number]()), one.total

    count = len(RuleCheck(columns, replaced, limit).rules())
    parts = in_threads(threads, check, range(count))
    return [each for found, _ in parts for each in found], sum(total for _, total in parts)


@dataclass(slots=True)
class RuleCheck:
    """The second round for one bucket, a rule at a time; `total` counts what breaks them."""

    columns: KeyColumns
    replaced: dict[str, pa.Table]
    limit: int | None
    total: int = 0

    @property
    def plan(self) -> CheckPlan:
        return self.columns.plan

    def rules(self) -> list[Callable[[], Iterator[Violation]]]:
        """Everything that has to hold; each looks at columns of its own."""
        loaded = self.plan.loaded_keys()
        found: list[Callable[[], Iterator[Violation]]] = []
        for key in loaded:
            entity = self.plan.entity(key)
            found += [partial(self._uniques, entity, group) for group in _other_groups(entity)]
            if isinstance(entity, EdgeType):
                for side, end in _SIDES:
                    found.append(partial(self._endpoints, entity, side, getattr(entity, end)))
                found.append(partial(self._cardinality, entity))
        if self.plan.mode is LoadMode.OVERWRITE:
            found.append(partial(self._hanging_edges, loaded))
        return found

    def _uniques(self, entity: EntityType, group: UniqueGroup) -> Iterator[Violation]:
        key = entity.table_key
        rows = self._loaded_tuples(entity, group)
        keys = rows[_TUPLE].combine_chunks()
        places = rows[PLACE].to_numpy()
        yield from self._placed(key, duplicate_tuples(group, keys, self.limit), places)
        if self.plan.mode is LoadMode.OVERWRITE or not rows.num_rows:
            return
        first = group.members[0]
        asked = pc.unique(rows[first].combine_chunks().drop_null())
        committed = self.columns_of_all.committed(key, [ID, *group.members], among=asked, by=first)
        survivors, _ = surviving_rows(committed, self._replaced_ids(key))
        known = tuple_keys(entity, group, survivors)
        yield from self._placed(key, committed_clashes(group, keys, known, self.limit), places)

    @property
    def columns_of_all(self) -> KeyColumns:
        """The same columns without the bucket, for a look-up by values that are in it already."""
        return KeyColumns(self.plan, self.columns.tables, Bucket(), self.columns.gone)

    def _loaded_tuples(self, entity: EntityType, group: UniqueGroup) -> pa.Table:
        whole = self.columns_of_all.loaded(entity.table_key, group.members, by=group.members[0])
        if not whole.num_rows:
            return whole.append_column(_TUPLE, pa.array([], pa.utf8()))
        tagged = whole.append_column(_TUPLE, tuple_keys(entity, group, whole))
        return self.columns.bucket.of(tagged, _TUPLE)

    def _replaced_ids(self, table_key: str) -> pa.Array:
        replaced = self.replaced.get(table_key)
        return _NO_TEXTS if replaced is None else replaced[ID].combine_chunks()

    def _endpoints(
        self, edge: EdgeType, side: Literal["src", "dst"], node_name: str
    ) -> Iterator[Violation]:
        rows = self.columns.loaded(edge.table_key, [side], by=side)
        ends = rows[side].combine_chunks()
        live = self._live_nodes(node_name, ends)
        bad = missing_endpoints(edge, side, ends, live, self.limit)
        yield from self._placed(edge.table_key, bad, rows[PLACE].to_numpy())

    def _live_nodes(self, node_name: str, asked: pa.Array) -> pa.Array:
        """The ids in this bucket, as far as asked for, that name a node after the load."""
        key = f"node:{node_name}"
        new = self.columns.loaded(key, [ID], by=ID)[ID].combine_chunks()
        if self.plan.mode is LoadMode.OVERWRITE and key in self.plan.loaded_keys():
            return new
        unknown = pc.unique(asked)
        unknown = unknown.filter(pc.invert(pc.is_in(unknown, new)))
        committed = self.columns.committed(key, [ID], among=unknown, by=ID)
        return pa.concat_arrays([new, committed[ID].combine_chunks()])

    def _cardinality(self, edge: EdgeType) -> Iterator[Violation]:
        if edge.cardinality.is_default:
            return
        key = edge.table_key
        rows = self.columns.loaded(key, ["src"], by="src")
        written = rows["src"].combine_chunks()
        lost = surviving = _NO_TEXTS
        if self.plan.mode is not LoadMode.OVERWRITE:
            if (replaced := self.replaced.get(key)) is not None:
                lost = self.columns.bucket.of(replaced, "src")["src"].combine_chunks()
            touched = pc.unique(pa.chunked_array([written, lost]))
            committed = self.columns.committed(key, [ID, "src"], among=touched, by="src")
            survivors, _ = surviving_rows(committed, self._replaced_ids(key))
            surviving = survivors["src"].combine_chunks()
        touched = pc.unique(pa.chunked_array([written, lost])).drop_null()
        found = cardinality_violations(
            edge, written=written, surviving=surviving, lost=lost, limit=self.limit
        )
        self.total += found.total
        for bad in found:
            yield from self._per_edge(key, bad, rows, touched[bad.index])

    def _per_edge(
        self, key: str, bad: BadRow, rows: pa.Table, source: pa.Scalar
    ) -> Iterator[Violation]:
        """Blame the last loaded edge of the source, or all of them when they are put aside."""
        places = rows.filter(pc.equal(rows["src"], source))[PLACE].to_pylist()
        if not places:
            yield Violation(None, key, bad)
        for place in places if self.limit is None else places[-1:]:
            yield Violation(place, key, bad)

    def _hanging_edges(self, loaded: list[str]) -> Iterator[Violation]:
        """Committed edges that stay while a node type they end in is replaced."""
        for edge in self.plan.catalog.edges.values():
            if edge.table_key in loaded:
                continue
            for side, end in _SIDES:
                node_key = f"node:{getattr(edge, end)}"
                if node_key not in loaded:
                    continue
                rows = self.columns.committed(edge.table_key, [ID, side], among=None, by=side)
                new = self.columns.loaded(node_key, [ID], by=ID)[ID].combine_chunks()
                ends = rows[side].combine_chunks()
                hanging = missing_endpoints(edge, side, ends, new, self.limit)
                self.total += hanging.total
                for bad in hanging:
                    yield Violation(None, edge.table_key, bad)

    def _placed(self, table_key: str, bad: BadRows, places: Places) -> Iterator[Violation]:
        self.total += bad.total
        for row in bad:
            yield Violation(int(places[row.index]), table_key, row)


_TUPLE = "#tuple"


def _other_groups(entity: EntityType) -> list[UniqueGroup]:
    """The unique groups that ids do not cover already: all but the key."""
    key = entity.key if isinstance(entity, NodeType) else None
    return [
        group for group in unique_groups(entity) if key is None or set(group.members) != set(key)
    ]


def addresses_of(replaced: pa.Table | None) -> np.ndarray:
    """Where the replaced rows lie."""
    if replaced is None:
        return np.empty(0, np.uint64)
    return np.asarray(replaced[ADDRESS].to_numpy(), dtype=np.uint64)
