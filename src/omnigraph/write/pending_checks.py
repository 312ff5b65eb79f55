"""Pending checks: those that a write has to pass before it counts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.manifest import ManifestState, PublishDelta
from omnigraph.manifest.checks import Check, apply_check_notes
from omnigraph.manifest.freshness import apply_delta
from omnigraph.manifest.model import Change, GraphCommit
from omnigraph.manifest.schema_files import load_accepted_contract
from omnigraph.manifest.schemas import load_schema, read_schema
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.intent import Intent
from omnigraph.write.sidecar import WriterKind

_CHECKED = (
    WriterKind.BRANCH_MERGE,
    WriterKind.MUTATION,
    WriterKind.MUTATION_GROUP,
    WriterKind.LOAD,
)


def find_checks(environment: WriteEnvironment, intent: Intent) -> PendingChecks | None:
    """The checks that a write has to pass; None for most writes, which costs nothing.

    A merge is held to all checks of its branch and to those that it brings along, another commit
    to those of every commit.
    """
    if intent.commit is None or intent.kind not in _CHECKED:
        return None
    state = environment.coordinator.last_seen(intent.branch)
    commits = _to_commits(state, intent)
    checks = apply_check_notes(state.checks, commits)
    is_merge = intent.kind is WriterKind.BRANCH_MERGE
    held = tuple(each for each in checks.values() if is_merge or each.every_commit)
    return PendingChecks(environment, state, commits, held, intent.schema_id) if held else None


@dataclass(frozen=True)
class PendingChecks:
    """Checks of a write that is under way on a branch whose state is `before`."""

    environment: WriteEnvironment
    before: ManifestState
    commits: tuple[GraphCommit, ...]
    checks: tuple[Check, ...]
    schema_id: str | None
    """The schema that the write brings; None when the branch stays in its own."""

    @cached_property
    def catalog(self) -> Catalog:
        texts = self.environment.texts
        kept = None if self.schema_id is None else load_schema(texts, self.schema_id)
        if kept is not None:
            return kept.catalog
        current = load_accepted_contract(texts, self.environment.coordinator, None)
        return read_schema(texts, self.before, current).catalog

    @property
    def read_versions(self) -> Mapping[str, int]:
        """What the checks read, as it is now: a publish insists that it stays so."""
        from omnigraph.write.checks import list_read_tables

        keys = list_read_tables(self.checks, self.catalog)
        return {key: self.before.latest_version(key) for key in sorted(keys)}

    def require(self, changes: tuple[Change, ...]) -> None:
        """Refuse the write unless its checks hold after these changes.

        Raises:
            ChecksFailed: One does not.
        """
        from omnigraph.write.checks import require_checks

        state = self.before
        delta = PublishDelta(state.branch, state.branch_id, state.version, changes, self.commits)
        after = apply_delta(state, delta).snapshot()
        tables, cache = self.environment.tables, self.environment.check_cache
        require_checks(self.checks, after, self.catalog, tables, cache)


def _to_commits(state: ManifestState, intent: Intent) -> tuple[GraphCommit, ...]:
    """The commits of a write as they would stand in the history."""
    assert intent.commit is not None
    return tuple(
        GraphCommit(
            each.commit_id,
            intent.branch,
            state.version + 1,
            state.head.commit_id,
            each.merged_parent_id,
            each.actor,
            each.created_at,
            each.properties,
        )
        for each in (*intent.earlier, intent.commit)
    )
