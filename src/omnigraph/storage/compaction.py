"""Compaction: fewer, larger fragments with the same rows and the same row ids.

Staged as one `Rewrite` transaction of our own, so that it has a UUID minted beforehand and makes
exactly one version, like every other write. Lance's own commit of a compaction makes two versions
and names neither. The price: BTREE coverage of the rewritten fragments is dropped (answers stay
right; the caller restages those indexes), while full-text and vector indexes keep theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lance.dataset import LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, RewriteResult

from omnigraph.storage.datasets import max_fragment_id
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.transactions import Stager

TARGET_ROWS_PER_FRAGMENT = 1_048_576


@dataclass(frozen=True, slots=True)
class CompactionStaging:
    """Rewrites fragments without moving HEAD."""

    stager: Stager

    def stage(
        self, handle: TableHandle, target_rows: int = TARGET_ROWS_PER_FRAGMENT
    ) -> StagedTransaction | None:
        """Stage the compaction of the table; None when it has nothing to gain."""
        with lance_errors("compacting", handle.location):
            plan = Compaction.plan(handle._dataset, {"target_rows_per_fragment": target_rows})
            results = [task.execute(handle._dataset) for task in plan.tasks]
        if not results:
            return None
        operation = LanceOperation.Rewrite(_groups(handle, results), [])
        rows = sum(
            fragment.physical_rows for result in results for fragment in result.new_fragments
        )
        return self.stager.stage(handle, StageKind.COMPACTION, operation, rows=rows)


def _groups(handle: TableHandle, results: list[RewriteResult]) -> list[LanceOperation.RewriteGroup]:
    """Pair old and new fragments, the new ones under ids that were never used.

    Lance derives index coverage from these ids before it would hand out its own, so an id left
    open would claim that indexes cover a fragment which they do not.
    """
    next_id = max_fragment_id(handle._dataset) + 1
    groups = []
    for result in results:
        # The type information of Lance calls this `old_fragments`; that attribute is not there.
        originals = result.original_fragments  # type: ignore[attr-defined]
        fragments: list[FragmentMetadata] = []
        for fragment in result.new_fragments:
            fragments.append(replace(fragment, id=next_id))
            next_id += 1
        groups.append(LanceOperation.RewriteGroup(originals, fragments))
    return groups
