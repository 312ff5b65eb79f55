"""Exchange of rules: the second round of the checks of a large load, with the results of check.py.

rule        keys        meet in a bucket
@unique     the tuple   loaded rows; committed rows that stay
endpoints   the end     ends of loaded edges; nodes after the load
orphans     the end     ends of committed edges; nodes after the load
@card       the source  loaded edges; committed edges that stay; those that are replaced
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.buckets import bucket_numbers
from omnigraph.pipeline.check import list_changed_types, list_edge_types
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan, KeyColumns
from omnigraph.pipeline.exchange import Block, cut_blocks, join_blocks
from omnigraph.pipeline.exchange_ids import REPEATED, TAKEN
from omnigraph.pipeline.key_items import (
    CommittedRows,
    KeyItem,
    LoadedRows,
    find_keys,
    list_committed,
    list_loaded,
    open_columns,
    read_addresses,
    read_item,
    split_replaced,
)
from omnigraph.pipeline.occurrences import KEY, NO_ROW, Numbers, Occurrences, to_array
from omnigraph.pipeline.suspects import Suspects
from omnigraph.write.convert import ID
from omnigraph.write.integrity import NO_IDS, is_among, is_out_of_bounds
from omnigraph.write.rules import (
    CardinalityRule,
    EndpointsRule,
    OrphansRule,
    Rule,
    UniqueRule,
    ValuesRule,
    list_rules,
)

MISSING, COUNTED = "missing", "counted"
_LOST_ORDER = 1 << 62
"""Sources that have only lost edges are named after all others."""

Tables: TypeAlias = dict[str, pa.Table]


def list_load_rules(plan: CheckPlan) -> tuple[Rule, ...]:
    """The rules between rows that a load could break, in the order of reports."""

    def can_break(rule: Rule) -> bool:
        match rule:
            case ValuesRule():
                return False  # values were checked when records were read
            case OrphansRule(edge, _, node_name):
                is_node_overwritten = plan.is_overwritten(f"node:{node_name}")
                return is_node_overwritten and not plan.is_overwritten(edge.table_key)
            case _:
                return True

    rules = list_rules(list_changed_types(plan), list_edge_types(plan))
    return tuple(rule for rule in rules if can_break(rule))


@dataclass(frozen=True, slots=True)
class _Use:
    """Keys of an item that a bucket needs: under which kind, and of which columns."""

    kind: str
    members: tuple[str, ...]
    is_counted: bool = True
    is_split: bool = False


@dataclass(frozen=True, slots=True)
class RuleExchange:
    """The two functions of the exchange."""

    plan: CheckPlan
    rules: tuple[Rule, ...]
    count: int
    limit: int | None

    def list_items(
        self, columns: KeyColumns, replaced: Iterable[CommittedRows] = ()
    ) -> list[KeyItem]:
        """All rows that a rule looks at. `replaced` are those items of which rows are replaced."""
        with_files = {(item.table_key, item.first): item for item in replaced}
        items: list[KeyItem] = []
        for key in self.plan.list_table_keys():
            items += [each for each in list_loaded(self.plan, key) if self._list_uses(each)]
        for key in self.plan.entries:
            if self._list_uses(CommittedRows(key, (), 0)):
                found = list_committed(columns, key)
                items += [with_files.get((key, each.first), each) for each in found]
        return items

    def emit(self, item: KeyItem) -> Iterator[Block]:
        uses = self._list_uses(item)
        names = list(dict.fromkeys(name for use in uses for name in use.members))
        gone = read_addresses(self.plan, item) if isinstance(item, CommittedRows) else None
        for chunk in read_item(open_columns(self.plan), item, names):
            if gone is None or len(gone) == 0:
                for use in uses:
                    yield from self._cut(use.kind, use, item, chunk)
                continue
            stays, lost = split_replaced(chunk, gone)
            for use in uses:
                yield from self._cut(use.kind, use, item, stays if use.is_split else chunk)
                if use.is_split and use.is_counted:
                    yield from self._cut(f"{use.kind} lost", use, item, lost)

    def _cut(self, kind: str, use: _Use, item: KeyItem, rows: pa.Table) -> Iterator[Block]:
        keys = find_keys(self.plan, item, use.members, rows)
        if not use.is_counted:
            distinct = pc.unique(keys).drop_null()
            yield from cut_blocks(
                kind, pa.table({KEY: distinct}), bucket_numbers(distinct, self.count)
            )
            return
        found = Occurrences.of(keys, rows[ROW_NUMBER].to_numpy())
        yield from cut_blocks(kind, found.to_table(), bucket_numbers(found.keys, self.count))

    def _list_uses(self, item: KeyItem) -> list[_Use]:
        """What the rules need of an item."""
        key, is_new = item.table_key, isinstance(item, LoadedRows)
        stays = not is_new and not self.plan.is_overwritten(key)
        uses: list[_Use] = []
        for number, rule in enumerate(self.rules):
            match rule:
                case UniqueRule(entity, group) if entity.table_key == key and (is_new or stays):
                    kind = f"{number} {'new' if is_new else 'held'}"
                    uses.append(_Use(kind, group.members, is_counted=is_new, is_split=stays))
                case EndpointsRule(edge, side, _) if edge.table_key == key and is_new:
                    uses.append(_Use(f"{number} new", (side,)))
                case OrphansRule(edge, side, _) if edge.table_key == key and stays:
                    uses.append(_Use(f"{number} new", (side,)))
                case CardinalityRule(edge) if edge.table_key == key and (is_new or stays):
                    kind = f"{number} {'new' if is_new else 'held'}"
                    uses.append(_Use(kind, ("src",), is_split=stays))
                case _:
                    pass
        if (is_new or stays) and self._needs_nodes(key):
            uses.append(_Use(f"live {key}", (ID,), is_counted=False))
        return uses

    def _needs_nodes(self, table_key: str) -> bool:
        return any(
            isinstance(rule, EndpointsRule | OrphansRule) and table_key == f"node:{rule.node_name}"
            for rule in self.rules
        )

    def reduce(self, blocks: Iterable[Block]) -> list[Suspects]:
        tables = join_blocks(blocks)
        found = [
            suspects
            for number, rule in enumerate(self.rules)
            for suspects in self._check(number, rule, tables)
        ]
        return [each for each in found if each is not None]

    def _check(self, number: int, rule: Rule, tables: Tables) -> Iterator[Suspects | None]:
        new = Occurrences.read(tables.get(f"{number} new"))
        match rule:
            case UniqueRule():
                repeats = new.count - 1
                yield self._pick((number, REPEATED), new, repeats > 0, new.second, repeats)
                is_taken = is_among(new.keys, _keys(tables, f"{number} held"))
                yield self._pick((number, TAKEN), new, is_taken, new.first, new.count)
            case EndpointsRule(node_name=node_name) | OrphansRule(node_name=node_name):
                is_missing = ~is_among(new.keys, _keys(tables, f"live node:{node_name}"))
                yield self._pick((number, MISSING), new, is_missing, new.first, new.count)
            case CardinalityRule(edge):
                held = Occurrences.read(tables.get(f"{number} held"))
                lost = Occurrences.read(tables.get(f"{number} held lost"))
                yield self._check_counts(number, edge, new, held, lost)
            case _:
                pass

    def _check_counts(
        self, number: int, edge: EdgeType, new: Occurrences, held: Occurrences, lost: Occurrences
    ) -> Suspects | None:
        """Sources with too many or too few edges; `last` is the loaded edge that is to blame."""
        lost = lost.select(~is_among(lost.keys, new.keys))
        keys = pa.concat_arrays([new.keys, lost.keys])
        none = np.full(len(lost.keys), NO_ROW)
        counts = np.concatenate([new.count, np.zeros(len(none), np.int64)]) + _counts(keys, held)
        touched = Occurrences(
            keys,
            np.concatenate([new.first, none]),
            np.concatenate([new.second, none]),
            np.concatenate([new.last, none]),
            counts,
        )
        order = np.concatenate([new.first, _LOST_ORDER + lost.first])
        is_bad = is_out_of_bounds(edge, counts)
        return self._pick((number, COUNTED), touched, is_bad, order, np.ones_like(counts))

    def _pick(
        self,
        rule: tuple[int | str, str],
        found: Occurrences,
        is_bad: np.ndarray,
        order: Numbers,
        rows: Numbers,
    ) -> Suspects | None:
        return Suspects.pick(rule, found, is_bad, order, rows, self.limit)


def _keys(tables: Tables, kind: str) -> pa.StringArray:
    return to_array(tables[kind][KEY]) if kind in tables else NO_IDS


def _counts(keys: pa.StringArray, held: Occurrences) -> Numbers:
    """How many held rows each key has."""
    places: Numbers = pc.index_in(keys, value_set=held.keys).fill_null(-1).to_numpy()
    return np.append(held.count, 0)[places]
