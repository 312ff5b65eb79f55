"""Branches of a graph: make, compare, merge, delete."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, overload

from omnigraph.branch.changes import ChangeSet
from omnigraph.branch.create import create_branch
from omnigraph.branch.delete import delete_branch
from omnigraph.branch.diff import (
    ChangeFilter,
    CommitChanges,
    State,
    Target,
    changes_since,
    diff_states,
    find_snapshot,
)
from omnigraph.branch.html import diff_to_html
from omnigraph.branch.merge import MergePreview, MergeResult, delete_merged, preview_merge
from omnigraph.branch.merge import merge as merge_branches
from omnigraph.branch.resolve import Resolution
from omnigraph.branch.surroundings import changed_subgraph
from omnigraph.graph.handle import Handle
from omnigraph.manifest import (
    MAIN,
    Snapshot,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.upkeep.self_care import compact_if_due
from omnigraph.write.environment import queue_keys
from omnigraph.write.recovery import with_settled_tables


class Branching(Handle):
    """The calls about branches."""

    def branches(self) -> list[str]:
        """Every branch, `main` first."""
        self._checked_contract()
        return self._coordinator.branches()

    def create_branch(self, name: str, from_: str = MAIN, *, actor: str | None = None) -> Snapshot:
        """Make a branch that shows what `from_` shows now; nothing is copied."""
        source, made = canonical_branch(from_), canonical_branch(name)
        self._permit(Action.BRANCH_CREATE, actor=actor, branch=source, target_branch=made)
        self._writable_catalog()
        return create_branch(self._environment(), name, from_).snapshot()

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch and what only it holds."""
        branch = canonical_branch(name)
        self._permit(Action.BRANCH_DELETE, actor=actor, target_branch=branch)
        self._writable_catalog()
        delete_branch(self._environment(), branch)

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[False] = ...,
        resolve: Resolution | None = ...,
    ) -> MergeResult: ...

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[True],
        resolve: Resolution | None = ...,
    ) -> MergePreview: ...

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        actor: str | None = None,
        delete_branch: bool = False,
        preview: bool = False,
        resolve: Resolution | None = None,
    ) -> MergeResult | MergePreview:
        """Bring what `source` did into another branch, as one commit or not at all.

        With `preview` nothing is written and the result says what would be. `resolve` settles
        conflicts: `"ours"` keeps what the target has, `"theirs"` what the source has, and a
        mapping or a list says so row by row.

        Raises:
            MergeConflicts: The branches cannot be joined as they are. The target is unchanged.
            ExpectedVersionMismatch: The target changed meanwhile. Merge again.
        """
        names = canonical_branch(source), canonical_branch(into)
        environment = self._environment()
        if preview:
            catalog = self._checked_contract().catalog
            return preview_merge(environment, catalog, *names, resolution=resolve)
        branch, target = names
        who = self._permit(Action.BRANCH_MERGE, actor=actor, branch=branch, target_branch=target)
        if delete_branch:
            self._permit(Action.BRANCH_DELETE, actor=who, target_branch=branch)
        self._writable_catalog()
        seen = self._coordinator.last_seen(names[1])
        queues = queue_keys(frozenset(seen.entries), seen.branch)
        self._settle(full=False, wait_for=queues)
        catalog = self._writable_catalog()
        result = with_settled_tables(
            environment,
            queues,
            lambda: merge_branches(environment, catalog, *names, actor=who, resolution=resolve),
        )
        if self._self_care:
            compact_if_due(environment, names[1], result.tables)
        return delete_merged(environment, result) if delete_branch else result

    def diff(
        self,
        from_: Target,
        to: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> ChangeSet:
        """What differs between two states: branches, commits, versions or times."""
        before, after = (
            self._state_of(find_snapshot(self._coordinator, each)) for each in (from_, to)
        )
        wanted = ChangeFilter(kinds, types, ops)
        wanted.check([before.catalog, after.catalog])
        return diff_states(self._store.tables, before, after, wanted)

    def _state_of(self, snapshot: Snapshot) -> State:
        """A snapshot with the schema it is in."""
        catalog, shown = self._in_own_schema(snapshot, self._checked_contract())
        return State(shown, catalog)

    def diff_html(
        self,
        from_: Target,
        to: Target,
        *,
        title: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> str:
        """A diff as one page that works offline: what changed, drawn and listed."""
        before, after = (
            self._state_of(find_snapshot(self._coordinator, each)) for each in (from_, to)
        )
        changes = self.diff(before.snapshot, after.snapshot, kinds=kinds, types=types, ops=ops)
        shown = changed_subgraph(changes, before.catalog, after, self._store.tables)
        return diff_to_html(changes, title=title or f"{from_} → {to}", subgraph=shown)

    def changes(
        self,
        since: str,
        *,
        branch: str = MAIN,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Iterator[CommitChanges]:
        """What every commit of a branch changed after `since`, oldest first."""
        self._checked_contract()
        wanted = ChangeFilter(kinds, types, ops)
        return changes_since(
            self._store.tables, self._coordinator, self._state_of, since, branch, wanted
        )
