"""Purged paths: the tables that a schema change removes for good, and what stands in the way.

A type may have lain at several paths: a merge gives main a table of its own, and the states of a
deleted branch show the one that the branch had. All of them hold what is dropped.

    refused while               because
    a tag keeps one             it promises that its state can be read
    another branch has one      its rows would go, or had one: it may still be merged
    a merge compares with one   both sides could not be told from what they come from
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.branch.commit_dag import find_reached_commits, possible_bases, read_dag
from omnigraph.branch.line_segments import SCHEMA_NOTE
from omnigraph.catalog import Catalog, EntityType, unify
from omnigraph.errors import ConflictError
from omnigraph.manifest import ManifestState, Snapshot, load_accepted_contract
from omnigraph.manifest.rows import commits_newest_first
from omnigraph.manifest.schemas import find_catalog
from omnigraph.write.environment import WriteEnvironment


def find_purged_paths(
    environment: WriteEnvironment,
    accepted: Catalog,
    state: ManifestState,
    losing: Sequence[EntityType],
) -> tuple[str, ...]:
    """Every path at which the branch, or a kept commit of a deleted one, shows one of the types."""
    if not losing:
        return ()
    types = {each.type_id for each in losing}
    found = {state.entries[each.table_key].table_path for each in losing}
    current = load_accepted_contract(environment.texts, environment.coordinator, None)
    for snapshot in _list_earlier(environment, state):
        own = find_catalog(environment.texts, snapshot, current)
        for entity in () if own is None else unify(accepted, own)(own).entities():
            entry = snapshot.entries.get(entity.table_key)
            if entity.type_id in types and entry is not None:
                found.add(entry.table_path)
    return tuple(sorted(found))


def _list_earlier(environment: WriteEnvironment, state: ManifestState) -> Iterator[Snapshot]:
    """States in which a type may lie elsewhere: those that a schema change left, and kept ones."""
    coordinator = environment.coordinator
    yield from coordinator.retained
    for commit in commits_newest_first(state.commit_rows):
        if SCHEMA_NOTE in commit.properties:
            snapshot = coordinator.commit_states.find(commit)
            if snapshot is not None:
                yield snapshot


def refuse_needed(environment: WriteEnvironment, branch: str, purged: Sequence[str]) -> None:
    """Refuse to remove for good what something else needs.

    Raises:
        ConflictError: A tag, another branch or a merge does.
    """
    if not purged:
        return
    _refuse_tagged(environment, purged)
    branches = environment.coordinator.branches()
    for other in branches:
        if other != branch:
            _refuse_shared(environment.coordinator.fresh(other), purged)
    if len(branches) > 1:
        _refuse_compared(environment, branches, purged)


def _refuse_tagged(environment: WriteEnvironment, purged: Sequence[str]) -> None:
    for tag, state in environment.coordinator.tags:
        for key, entry in state.entries.items():
            if entry.table_path in purged:
                raise ConflictError(
                    f"the tag '{tag.name}' keeps rows of '{key}' that this change would remove for "
                    "good — delete the tag first, or drop without data loss"
                )


def _refuse_shared(other: ManifestState, purged: Sequence[str]) -> None:
    if not {*other.paths.values(), *other.hidden_paths}.isdisjoint(purged):
        raise ConflictError(
            f"branch '{other.branch}' has rows that this change would remove for good — merge and "
            "delete that branch first, or drop without data loss"
        )


def _refuse_compared(
    environment: WriteEnvironment, branches: Sequence[str], purged: Sequence[str]
) -> None:
    coordinator = environment.coordinator
    states = [coordinator.fresh(each) for each in branches]
    heads = [each.head for each in states]
    dag = read_dag(coordinator, states)
    for commit in possible_bases(dag, heads).values():
        shown = coordinator.commit_states.find(commit)
        paths = {entry.table_path for entry in shown.entries.values()} if shown else set()
        others = [head for head in heads if head.commit_id != commit.commit_id]
        # A head is no base by itself: only where another one comes from it.
        if paths.isdisjoint(purged) or not find_reached_commits(dag, others, [commit]):
            continue
        raise ConflictError(
            f"a merge of branches compares with commit '{commit.commit_id}', which has rows that "
            "this change would remove for good — delete the other branches first, or drop "
            "without data loss"
        )
