"""Rows: the records of one type, as rows in stored form, with what is wrong with the others.

The rules are those of every write (`omnigraph.write`); here they meet one group of records.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import EdgeType, arrow_schema
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.embed import FillCounts
from omnigraph.pipeline.groups import Group, Parsed
from omnigraph.pipeline.model import Finding, LoadMode, LoadPlan, OnError, Ordinals, Rejected
from omnigraph.write.bad_rows import SHOWN_MAX, BadRows
from omnigraph.write.convert import ID, Columns, columns_from_arrow, columns_from_records
from omnigraph.write.embedding import embed_columns
from omnigraph.write.integrity import last_by_id
from omnigraph.write.keys import edge_rows, node_rows
from omnigraph.write.validate import constraint_violations, null_violations

_ORDINAL = "#ordinal"


@dataclass(slots=True)
class GoodRows:
    """Rows of one table that may be stored, and which record each of them was."""

    table: pa.Table
    ordinals: Ordinals
    has_made_ids: bool
    vectors: FillCounts = field(default_factory=dict)


@dataclass(slots=True)
class Faults:
    """What is wrong with the records of a block: the first findings, the count, and the records."""

    findings: list[Finding] = field(default_factory=list)
    total: int = 0
    rejected: list[Rejected] = field(default_factory=list)

    def add_unknown(self, parsed: Parsed) -> None:
        """Count what is no record of the schema."""
        for finding, text in parsed.unknown:
            self.findings.append(finding)
            self.total += 1
            bad = finding.bad
            self.rejected.append(Rejected(finding.line, text, (bad.describe(),), bad.type_name))

    def add(self, group: Group, bad: BadRows, ids: pa.ChunkedArray | None = None) -> None:
        """Count the bad rows of a group, of which these are the ids."""
        self.total += bad.total
        reasons: dict[int, list[str]] = {}
        for row in bad:
            self.findings.append(Finding(int(group.lines[row.index]), row))
            reasons.setdefault(row.index, []).append(row.describe())
        for index, texts in reasons.items():
            line, name = int(group.lines[index]), group.entity.name
            id_ = None if ids is None else ids[index].as_py()
            self.rejected.append(Rejected(line, group.text(index), tuple(texts), name, id_))


def good_rows(
    group: Group, plan: LoadPlan, first_ordinal: int, dropped: Ordinals | None, faults: Faults
) -> GoodRows:
    """Convert and check a group; bad records go to `faults`.

    Unless bad rows are quarantined, a group with one has no good rows: the load will be refused.
    """
    limit = None if plan.on_error is OnError.QUARANTINE else SHOWN_MAX
    columns = _columns(group, limit)
    if columns.bad and group.reread is not None:
        reread = group.reread()
        faults.add_unknown(reread)
        # The same lines again, one by one: they are all of one type.
        if not reread.groups:
            return _none(group)
        return good_rows(reread.groups[0], plan, first_ordinal, dropped, faults)
    entity = group.entity
    if isinstance(entity, EdgeType):
        assert group.ends is not None
        made = edge_rows(entity, columns, *group.ends, limit)
    else:
        made = node_rows(entity, columns, limit)
    bad = BadRows.of_batch([made.bad, constraint_violations(entity, made.table, limit)], limit)
    if bad and limit is not None:
        faults.add(group, bad)
        return _none(group)
    faults.add(group, bad, made.table[ID])
    is_generated = columns.explicit_ids.null_count == len(columns.explicit_ids)
    has_made_ids = is_generated and entity.key is None
    good = GoodRows(made.table, np.arange(len(group.lines)) + first_ordinal, has_made_ids)
    if bad:
        kept = np.delete(np.arange(len(group.lines)), [row.index for row in bad])
        good.table, good.ordinals = made.table.take(kept), kept + first_ordinal
    last = _deduplicate(_embed(group, good, plan, first_ordinal, faults), plan)
    # Only now: a record that lost to one which is dropped must not come back instead of it.
    return _without(last, dropped)


def _columns(group: Group, limit: int | None) -> Columns:
    names = [column.name for column in embed_columns(group.entity)]
    if group.columns is not None:
        return columns_from_arrow(group.entity, group.columns, deferred=names, limit=limit)
    return columns_from_records(group.entity, group.records, deferred=names, limit=limit)


def _none(group: Group) -> GoodRows:
    return GoodRows(arrow_schema(group.entity).empty_table(), np.empty(0, np.int64), False)


def _without(good: GoodRows, dropped: Ordinals | None) -> GoodRows:
    if dropped is not None:
        kept = np.flatnonzero(~np.isin(good.ordinals, dropped))
        good.table, good.ordinals = good.table.take(kept), good.ordinals[kept]
    return good


def _embed(
    group: Group, good: GoodRows, plan: LoadPlan, first_ordinal: int, faults: Faults
) -> GoodRows:
    """Fill vectors from their source text; a required vector that stays empty is a fault."""
    table_key = group.entity.table_key
    if table_key not in plan.embed.columns or not good.table.num_rows or plan.is_preview:
        return good
    filled = plan.embed.fill(table_key, good.table)
    good.table = filled.rows
    good.vectors = {(table_key, name): count for name, count in filled.counts.items()}
    missing = null_violations(group.entity, good.table, limit=None)
    if missing:
        rows = [row.index for row in missing]
        in_group = good.ordinals - first_ordinal
        bad = tuple(replace(row, index=int(in_group[row.index])) for row in missing)
        faults.add(group, BadRows(bad, missing.total))
        kept = np.delete(np.arange(good.table.num_rows), rows)
        good.table, good.ordinals = good.table.take(kept), good.ordinals[kept]
    return good


def _deduplicate(good: GoodRows, plan: LoadPlan) -> GoodRows:
    """In a merge the last record of an id wins, here already within one block."""
    if plan.mode is not LoadMode.MERGE or good.has_made_ids:
        return good
    ids = good.table[ID]
    if pc.count_distinct(ids).as_py() == len(ids):
        return good
    tagged = last_by_id(good.table.append_column(_ORDINAL, pa.array(good.ordinals)))
    good.ordinals = tagged[_ORDINAL].to_numpy()
    good.table = tagged.drop_columns([_ORDINAL])
    return good
