"""Stage: one range of input becomes checked rows, in files that no table version names yet.

A runner maps `stage_range` over all ranges, in this process or in Spark workers. It holds one block
at a time; what it returns is small.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.errors import BadRequestError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.pipeline.blocks import LinesBlock, read_blocks
from omnigraph.pipeline.embed import FillCounts, add_counts
from omnigraph.pipeline.exchange import decode_table
from omnigraph.pipeline.groups import Group
from omnigraph.pipeline.input_files import is_object
from omnigraph.pipeline.model import (
    LineRange,
    LoadPlan,
    OnError,
    Ordinals,
    Range,
    RangeResult,
    RangeTask,
    RowsRange,
    StagedPart,
    StreamRange,
)
from omnigraph.pipeline.parse import parse_block
from omnigraph.pipeline.rows import Faults, GoodRows, good_rows
from omnigraph.storage.location import table_path
from omnigraph.storage.objects import read_object
from omnigraph.storage.scratch import refuse_gone
from omnigraph.storage.unattached import UnattachedFragment, write_unattached
from omnigraph.write.bad_rows import SHOWN_MAX

_FILES = (LineRange, StreamRange, RowsRange)


def stage_range(plan: LoadPlan, task: RangeTask) -> RangeResult:
    """Parse, check and write the records of one range."""
    try:
        return _stage_range(plan, task)
    except BadRequestError as error:
        given, found = task.range, _find_input(plan, task)
        if isinstance(given, _FILES) and isinstance(found, _FILES):
            # The file by the name that its user gave it.
            error.change_text(lambda text: text.replace(found.path, given.path))
        raise


def _stage_range(plan: LoadPlan, task: RangeTask) -> RangeResult:
    seen: dict[str, int] = defaultdict(int)
    dropped = _list_dropped(plan, task)
    parts: list[StagedPart] = []
    faults = Faults()
    lines = 0
    vectors: list[FillCounts] = []
    for block in read_blocks(_find_input(plan, task), plan.part_bytes, plan.input_options):
        parsed = parse_block(block, plan.catalog, ignores_members=plan.ignores_members)
        if parsed.needs_document:
            return RangeResult(task.index, needs_document=True)
        if isinstance(block, LinesBlock):
            lines += block.data.count(b"\n")
        faults.add_unknown(parsed)
        for group in parsed.groups:
            key = group.entity.table_key
            good = good_rows(group, plan, seen[key], dropped.get(key), faults)
            seen[key] += len(group.lines)
            vectors.append(good.vectors)
            if good.table.num_rows:
                parts.append(_stage_part(plan, task, group, good))
                hit(Failpoint.LOAD_AFTER_STAGED_PART)
    findings = sorted(faults.findings, key=lambda finding: finding.line)
    return RangeResult(
        task.index,
        lines=lines,
        parts=tuple(parts),
        findings=tuple(findings[:SHOWN_MAX]),
        findings_total=faults.total,
        rejected=tuple(faults.rejected) if plan.on_error is OnError.QUARANTINE else (),
        vectors=add_counts(vectors),
    )


def _find_input(plan: LoadPlan, task: RangeTask) -> Range:
    """The range with the whole path of its file: an executor has a directory of its own."""
    match task.range:
        case LineRange(path) | StreamRange(path) | RowsRange(path) if not is_object(path):
            return replace(task.range, path=os.path.join(plan.directory, path))
        case _:
            return task.range


def _list_dropped(plan: LoadPlan, task: RangeTask) -> dict[str, Ordinals]:
    """The records to leave out, by table key."""
    dropped = dict(task.dropped)
    for uri in task.dropped_in:
        data = read_object(uri, plan.storage_options)
        assert data is not None, uri
        records = decode_table(data)
        for key in pc.unique(records["table_key"]).to_pylist():
            named = records.filter(pc.equal(records["table_key"], key))["ordinal"].to_numpy()
            dropped[key] = np.concatenate([dropped.get(key, named[:0]), named])
    return dropped


def read_records(
    plan: LoadPlan, task: RangeTask, wanted: dict[str, Ordinals]
) -> list[_LocatedRecord]:
    """Read a range again for some of its records: where each is, and its text."""
    seen: dict[str, int] = defaultdict(int)
    found: list[_LocatedRecord] = []
    for block in read_blocks(_find_input(plan, task), plan.part_bytes, plan.input_options):
        parsed = parse_block(block, plan.catalog, ignores_members=plan.ignores_members)
        for group in parsed.groups:
            key = group.entity.table_key
            found += _among(group, key, seen[key], wanted.get(key))
            seen[key] += len(group.lines)
    return found


_LocatedRecord = tuple[str, int, int, str]
"""Table key, ordinal, line, text."""


def _among(group: Group, key: str, first: int, wanted: Ordinals | None) -> Iterator[_LocatedRecord]:
    if wanted is None:
        return
    for ordinal in wanted[(wanted >= first) & (wanted < first + len(group.lines))].tolist():
        row = ordinal - first
        yield key, ordinal, int(group.lines[row]), group.text(row)


def _stage_part(plan: LoadPlan, task: RangeTask, group: Group, good: GoodRows) -> StagedPart:
    rows = good.table
    first = int(good.ordinals[0])
    is_whole = bool(np.array_equal(good.ordinals, np.arange(first, first + rows.num_rows)))
    fragments = _write_fragments(plan, group.entity, good)
    return StagedPart(
        range_index=task.index,
        table_key=group.entity.table_key,
        row_count=rows.num_rows,
        has_made_ids=good.has_made_ids,
        first_ordinal=first,
        ordinals=None if is_whole else good.ordinals,
        rows=rows if fragments is None else None,
        fragments=fragments or (),
    )


def _write_fragments(
    plan: LoadPlan, entity: EntityType, good: GoodRows
) -> tuple[UnattachedFragment, ...] | None:
    if plan.scratch_uri is None:
        return None
    refuse_gone(plan.scratch_uri)
    uri = f"{plan.scratch_uri}/{table_path(entity.kind, entity.name)}"
    return tuple(write_unattached(uri, good.table, arrow_schema(entity), plan.storage_options))
