"""Rules: what the schema demands of the graph that a write would leave, checked in one place.

A mutation, a merge and a load each provide a view of the graph after their write. `check_rules`
asks it for the rows that matter and returns the broken rules; each writer reports them in its
own way.

    rule        is broken by
    values      a new row with a null or a value that its type does not allow
    @unique     a new row with the tuple of another new row or of a surviving one
    endpoints   a new edge with an end that is no node after the write
    orphans     a surviving edge with an end that is no node after the write
    @card       a source that the write leaves with too many or too few edges

A committed row survives when the write neither replaces nor deletes it. What the write does not
touch kept the rules before and is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.write.bad_rows import SHOWN_MAX, BadRows
from omnigraph.write.convert import ID
from omnigraph.write.integrity import (
    Side,
    UniqueGroup,
    cardinality_violations,
    duplicate_tuples,
    edge_ends,
    find_clashes,
    find_touched_sources,
    groups_besides_key,
    missing_endpoints,
    tuple_keys,
)
from omnigraph.write.validate import value_violations


class GraphAfterWrite(Protocol):
    """The graph as a write would leave it, read only where a rule asks."""

    def list_changed_types(self) -> Sequence[EntityType]:
        """The types whose rows the write adds, replaces or deletes, in the order of reports."""

    def list_edge_types(self) -> Sequence[EdgeType]:
        """Every edge type, in the order of reports."""

    def list_value_columns(self, entity: EntityType) -> Sequence[str]:
        """The columns of new rows whose values are still to be checked."""

    def read_new_rows(self, entity: EntityType, columns: Sequence[str]) -> pa.Table:
        """At least these columns of the rows that the write adds or replaces."""

    def read_surviving_rows(
        self, entity: EntityType, columns: Sequence[str], by: str, values: pa.Array
    ) -> pa.Table:
        """Columns of the surviving rows that have one of `values` in the column `by`."""

    def read_lost_edges(self, edge: EdgeType) -> pa.Table:
        """`id` and `src` of the committed edges that the write replaces or deletes."""

    def read_exposed_edges(self, edge: EdgeType, side: Side, node_name: str) -> pa.Table | None:
        """`id` and `side` of surviving edges that may lose this end; None when none can."""

    def find_live_nodes(self, node_name: str, ids: pa.Array) -> pa.Array:
        """Ids of nodes after the write: all of `ids` that are, and perhaps others."""

    def list_deleted_nodes(self, node_name: str) -> pa.Array | None:
        """The ids of the nodes that the write deletes."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that rows of one type break: a value rule, or one of the kinds below.

    The indexes in `bad` count `rows`.
    """

    entity: EntityType
    rows: pa.Table
    bad: BadRows


@dataclass(frozen=True, slots=True)
class BrokenUnique(BrokenRule):
    """New rows with a tuple that is taken. `keys` are their tuples, `holders` surviving rows."""

    keys: pa.StringArray
    holders: pa.Table
    holder_keys: pa.StringArray


@dataclass(frozen=True, slots=True)
class MissingEndpoints(BrokenRule):
    """New edges with an end that is no node after the write."""

    side: Side
    node_name: str


@dataclass(frozen=True, slots=True)
class OrphanedEdges(MissingEndpoints):
    """Surviving edges with an end that is no node any more."""


@dataclass(frozen=True, slots=True)
class BrokenCardinality(BrokenRule):
    """Sources with too many or too few edges. `rows` are new edges; `bad` counts `sources`."""

    sources: pa.StringArray
    lost: pa.Table
    surviving: pa.Table


@dataclass(frozen=True, slots=True)
class ValuesRule:
    """Each value of a row of this type is allowed by the schema."""

    entity: EntityType


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """No two rows of this type have the same tuple."""

    entity: EntityType
    group: UniqueGroup


@dataclass(frozen=True, slots=True)
class EndpointsRule:
    """A new edge has a node at this end."""

    edge: EdgeType
    side: Side
    node_name: str


@dataclass(frozen=True, slots=True)
class OrphansRule:
    """A surviving edge still has a node at this end."""

    edge: EdgeType
    side: Side
    node_name: str


@dataclass(frozen=True, slots=True)
class CardinalityRule:
    """A source has as many edges as `@card` allows."""

    edge: EdgeType


Rule: TypeAlias = ValuesRule | UniqueRule | EndpointsRule | OrphansRule | CardinalityRule
CheckRule: TypeAlias = Callable[[Rule], BrokenRule | None]
RunRules: TypeAlias = Callable[[CheckRule, list[Rule]], Iterable[BrokenRule | None]]


def list_rules(changed: Sequence[EntityType], edges: Sequence[EdgeType]) -> list[Rule]:
    """Every rule that a write to the `changed` types could break, in the order of reports."""
    rules: list[Rule] = []
    for entity in changed:
        rules.append(ValuesRule(entity))
        rules += [UniqueRule(entity, group) for group in groups_besides_key(entity)]
    for edge in edges:
        is_changed = any(each.table_key == edge.table_key for each in changed)
        for side, node_name in edge_ends(edge):
            if is_changed:
                rules.append(EndpointsRule(edge, side, node_name))
            rules.append(OrphansRule(edge, side, node_name))
        if is_changed and not edge.cardinality.is_default:
            rules.append(CardinalityRule(edge))
    return rules


def check_rules(
    view: GraphAfterWrite, limit: int | None = SHOWN_MAX, run: RunRules = map
) -> Iterator[BrokenRule]:
    """Every rule that the write would break, with up to `limit` bad rows each.

    `run` checks the rules and returns the results in the same order; a load uses threads.
    """
    rules = list_rules(view.list_changed_types(), view.list_edge_types())
    for broken in run(_Rules(view, limit).check, rules):
        if broken is not None and broken.bad:
            yield broken


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules over one view. Each is checked by itself: they share no state."""

    view: GraphAfterWrite
    limit: int | None

    def check(self, rule: Rule) -> BrokenRule | None:
        match rule:
            case ValuesRule(entity):
                return self.values(entity)
            case UniqueRule(entity, group):
                return self.unique(entity, group)
            case EndpointsRule(edge, side, node_name):
                return self.endpoints(edge, side, node_name)
            case OrphansRule(edge, side, node_name):
                return self.orphans(edge, side, node_name)
            case CardinalityRule(edge):
                return self.cardinality(edge)
            case _:
                assert_never(rule)

    def values(self, entity: EntityType) -> BrokenRule | None:
        columns = self.view.list_value_columns(entity)
        rows = self.view.read_new_rows(entity, columns) if columns else None
        if rows is None or rows.num_rows == 0:
            return None
        return BrokenRule(entity, rows, value_violations(entity, rows, self.limit))

    def unique(self, entity: EntityType, group: UniqueGroup) -> BrokenRule | None:
        rows = self.view.read_new_rows(entity, group.members)
        if rows.num_rows == 0:
            return None
        keys, first = tuple_keys(entity, group, rows), group.members[0]
        values = pc.unique(rows[first].combine_chunks().drop_null())
        holders = self.view.read_surviving_rows(entity, [ID, *group.members], first, values)
        holder_keys = tuple_keys(entity, group, holders)
        repeated = duplicate_tuples(group, keys, self.limit)
        taken = find_clashes(group, keys, holder_keys, self.limit)
        bad = BadRows.in_order([repeated, taken], limit=None)
        return BrokenUnique(entity, rows, bad, keys, holders, holder_keys)

    def endpoints(self, edge: EdgeType, side: Side, node_name: str) -> BrokenRule | None:
        rows = self.view.read_new_rows(edge, [side])
        if rows.num_rows == 0:
            return None
        bad = self._find_missing(edge, side, node_name, rows)
        return MissingEndpoints(edge, rows, bad, side, node_name)

    def orphans(self, edge: EdgeType, side: Side, node_name: str) -> BrokenRule | None:
        rows = self.view.read_exposed_edges(edge, side, node_name)
        if rows is None:
            return None
        bad = self._find_missing(edge, side, node_name, rows)
        return OrphanedEdges(edge, rows, bad, side, node_name)

    def _find_missing(self, edge: EdgeType, side: Side, node_name: str, rows: pa.Table) -> BadRows:
        ends = rows[side].combine_chunks()
        live = self.view.find_live_nodes(node_name, ends)
        return missing_endpoints(edge, side, ends, live, self.limit)

    def cardinality(self, edge: EdgeType) -> BrokenRule | None:
        rows, lost = self.view.read_new_rows(edge, ["src"]), self.view.read_lost_edges(edge)
        deleted = self.view.list_deleted_nodes(edge.source)
        sources = find_touched_sources(_sources(rows), _sources(lost), deleted)
        if len(sources) == 0:
            return None
        surviving = self.view.read_surviving_rows(edge, [ID, "src"], "src", sources)
        bad = cardinality_violations(
            edge,
            written=_sources(rows),
            surviving=_sources(surviving),
            lost=_sources(lost),
            deleted_nodes=deleted,
            limit=self.limit,
        )
        return BrokenCardinality(edge, rows, bad, sources, lost, surviving)


def _sources(edges: pa.Table) -> pa.StringArray:
    return edges["src"].combine_chunks()
