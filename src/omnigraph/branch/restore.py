"""Restore: make types, or single nodes and edges, what they were in an earlier state.

What the state does not have is removed. The whole must keep the rules of the schema, as after any
write: an edge is not restored to nodes that are not there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.branch.commit_changes import refuse_foreign_schema
from omnigraph.branch.descent import open_entry
from omnigraph.branch.replay import Change
from omnigraph.branch.virtual_base import ABSENT, BaseTable
from omnigraph.dataclass import dataclass
from omnigraph.errors import CommitStateGone, NotFoundError
from omnigraph.manifest import Coordinator, ManifestState, Snapshot
from omnigraph.storage.tables import TableStorage


@dataclass(frozen=True, slots=True)
class Restoration:
    """A state to go back to, of these tables, and of these ids when there are some."""

    tables: TableStorage
    coordinator: Coordinator
    state: Snapshot
    table_keys: Sequence[str]
    ids: Collection[str] | None

    def find_changes(self, target: ManifestState) -> list[Change]:
        """What leads from the branch to that state.

        Raises:
            NotFoundError: Neither has one of the ids.
            CommitStateGone: A cleanup has removed tables of the state.
        """
        now, head = target.snapshot(), self.state.head
        chosen = {key: self.state.entries[key] for key in self.table_keys}
        stored = {key: each for key, each in chosen.items() if each.version}
        if not self.coordinator.commit_states.has_tables(replace(self.state, entries=stored)):
            raise CommitStateGone(head.commit_id, head.manifest_version, head.branch)
        refuse_foreign_schema(self.coordinator, target, [self.state])
        after = replace(self.state, entries={**now.entries, **chosen})
        self._require_ids(now)
        return [Change(now, after)]

    def _require_ids(self, now: Snapshot) -> None:
        if self.ids is None:
            return
        missing = set(self.ids)
        for key in self.table_keys:
            for state in (now, self.state):
                asked = pa.array(sorted(missing), pa.utf8())
                if len(asked):
                    found = BaseTable(self.tables, key, lambda _: now).find_in(
                        open_entry(self.tables, state.entries[key]), asked
                    )
                    there = zip(asked.to_pylist(), found.numbers.tolist(), strict=True)
                    missing -= {each for each, number in there if number != ABSENT}
        if missing:
            commit_id = self.state.head.commit_id
            raise NotFoundError(
                f"there is no '{min(missing)}' to restore: neither branch '{now.branch}' nor "
                f"commit '{commit_id}' has it in {', '.join(self.table_keys)} — nothing was written"
            )
