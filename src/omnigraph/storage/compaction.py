"""Compaction: fewer, larger fragments with the same rows and the same row ids.

Staged as one `Rewrite` transaction of our own, so that it has a UUID minted beforehand and makes
exactly one version, like every other write. Lance's own commit of a compaction makes two versions
and names neither. The price: BTREE and zone map coverage of the rewritten fragments is dropped
(answers stay right; the caller restages those indexes), while full-text and vector indexes keep
theirs.

Which fragments are merged is decided here as well: Lance would keep fragments apart whenever the
segments of any index differ, so that a table that is indexed and written to in turns would never
come together. Only full-text and vector segments may keep fragments apart; a group that one of
them covers in part is one that Lance refuses.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from lance import LanceDataset, LanceFragment
from lance.dataset import LanceOperation
from lance.optimize import Compaction, CompactionTask, RewriteResult

from omnigraph.dataclass import dataclass
from omnigraph.storage.fragments import count_deleted, count_live, list_field_ids
from omnigraph.storage.handles import BY_PLACE, StagedTransaction, StageKind, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import max_fragment_id
from omnigraph.storage.transactions import Stager

if TYPE_CHECKING:
    from omnigraph.storage.table_tasks import TableTasks

TARGET_ROWS_PER_FRAGMENT = 1_048_576
DELETED_SHARE_MAX = 0.1
"""A fragment with more rows deleted than this is rewritten even on its own."""


@dataclass(frozen=True, slots=True)
class CompactionStaging:
    """Rewrites fragments without moving HEAD."""

    stager: Stager

    def stage(
        self,
        handle: TableHandle,
        target_rows: int = TARGET_ROWS_PER_FRAGMENT,
        without: Collection[str] = (),
        tasks: TableTasks | None = None,
    ) -> StagedTransaction | None:
        """Stage the compaction of the table; None when it has nothing to gain.

        The indexes named in `without` are dropped before this is committed. With `tasks`, those
        write the new fragments of a large table.
        """
        with lance_errors("compacting", handle.location):
            groups = list(_groups(handle._dataset, target_rows, without))
            if not groups:
                return None
            plans = _describe(handle._dataset, groups, target_rows)
        if tasks is not None and tasks.takes(handle):
            written = tasks.run(handle, rewrite_by_task, plans, "compacting")
        else:
            written = [_rewrite(handle, each) for each in plans]
        # The type information of Lance does not know that results have a JSON form.
        result_type: Any = RewriteResult
        results = [result_type.from_json(each) for each in written]
        operation = LanceOperation.Rewrite(_rewrite_groups(handle, groups, results), [])
        rows = sum(
            fragment.physical_rows for result in results for fragment in result.new_fragments
        )
        return self.stager.stage(handle, StageKind.COMPACTION, operation, rows=rows)

    def rebase(self, staged: StagedTransaction, handle: TableHandle) -> StagedTransaction | None:
        """The same compaction of a later version; None unless rows were only added meanwhile.

        Lance keeps fragments in the order of their ids, so those that were added get new ids as
        well: their rows stay behind the others, in the files that they are in.
        """
        operation = staged._operation
        assert isinstance(operation, LanceOperation.Rewrite)
        if handle.location != staged.location:
            return None
        with lance_errors("compacting", handle.location):
            before, now = staged._dataset, handle._dataset
            has_columns = before.schema.equals(now.schema, check_metadata=True)
            if not has_columns or list_field_ids(before) != list_field_ids(now):
                return None
            old = {each.fragment_id: each.metadata.to_json() for each in before.get_fragments()}
            there = [each.metadata for each in now.get_fragments()]
            if {each.id: each.to_json() for each in there if each.id in old} != old:
                return None
            added = [each for each in there if each.id not in old]
            moved = [LanceOperation.RewriteGroup([each], [each]) for each in added]
            groups = _with_new_ids(now, [*operation.groups, *moved])
        return replace(
            staged,
            read_version=handle.version,
            _dataset=now,
            _operation=LanceOperation.Rewrite(groups, []),
        )


def _groups(
    dataset: LanceDataset, target_rows: int, without: Collection[str]
) -> Iterator[list[LanceFragment]]:
    """Neighbours that fit into one fragment together, and fragments with much deleted."""
    covering = _covering_segments(dataset, without)
    group: list[LanceFragment] = []
    rows, segments = 0, frozenset[str]()
    for fragment in dataset.get_fragments():
        own_rows, own_segments = count_live(fragment), covering(fragment.fragment_id)
        if group and (own_segments != segments or rows + own_rows > target_rows):
            yield from _worthwhile(group)
            group, rows = [], 0
        group.append(fragment)
        rows, segments = rows + own_rows, own_segments
    yield from _worthwhile(group)


def _worthwhile(group: list[LanceFragment]) -> Iterator[list[LanceFragment]]:
    if len(group) > 1 or any(
        count_deleted(each) > DELETED_SHARE_MAX * each.metadata.physical_rows for each in group
    ):
        yield group


def _covering_segments(dataset: LanceDataset, without: Collection[str]) -> Any:
    kept = [
        (segment.uuid, frozenset(segment.fragment_ids))
        for index in dataset.describe_indices()
        if index.index_type.lower() not in BY_PLACE and index.name not in without
        for segment in index.segments
    ]
    return lambda fragment_id: frozenset(uuid for uuid, ids in kept if fragment_id in ids)


def _describe(
    dataset: LanceDataset, groups: list[list[LanceFragment]], target_rows: int
) -> list[str]:
    """The rewriting of each group, as Lance's own task in JSON."""
    # The type information of Lance does not know that plans and tasks have a JSON form.
    asked: Any = Compaction.plan(dataset, {"target_rows_per_fragment": target_rows})
    plan = json.loads(asked.json())
    # Lance plans other groups of mostly the same fragments, and is quicker to describe them.
    known = {each["id"]: each for task in plan["tasks"] for each in task["fragments"]}
    return [
        json.dumps(
            {
                "task": {
                    "fragments": [
                        known.get(each.fragment_id) or each.metadata.to_json() for each in group
                    ]
                },
                "read_version": dataset.version,
                "options": plan["options"],
            }
        )
        for group in groups
    ]


def _rewrite(handle: TableHandle, task: str) -> str:
    """Write the rows of one group as new fragments: what names them, in JSON."""
    task_type: Any = CompactionTask
    with lance_errors("compacting", handle.location):
        result = task_type.from_json(task).execute(handle._dataset)
    return str(result.json())


def rewrite_by_task(_: object, handle: TableHandle, task: str) -> str:
    """The same with the table that a task has opened."""
    return _rewrite(handle, task)


def _rewrite_groups(
    handle: TableHandle, groups: list[list[LanceFragment]], results: list[RewriteResult]
) -> list[LanceOperation.RewriteGroup]:
    """Pair old and new fragments, the new ones under ids that were never used.

    Lance derives index coverage from these ids before it would hand out its own, so an id left
    open would claim that indexes cover a fragment which they do not.
    """
    pairs = [
        LanceOperation.RewriteGroup([each.metadata for each in group], result.new_fragments)
        for group, result in zip(groups, results, strict=True)
    ]
    return _with_new_ids(handle._dataset, pairs)


def _with_new_ids(
    dataset: LanceDataset, groups: Sequence[LanceOperation.RewriteGroup]
) -> list[LanceOperation.RewriteGroup]:
    """The same with the ids that follow the greatest one of a version."""
    ids = count(max_fragment_id(dataset) + 1)
    return [
        LanceOperation.RewriteGroup(
            group.old_fragments, [replace(each, id=next(ids)) for each in group.new_fragments]
        )
        for group in groups
    ]
