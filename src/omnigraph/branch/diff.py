"""Diff: what changed between two states of a graph, or with every commit since one.

    target              names
    "main"              a branch, as it is now
    "01J…"              a commit, on whichever branch it is
    12                  a manifest version of main
    datetime, "2026-…"  main, as the newest commit made by then left it
    "review@12"         a manifest version of a branch; a time after the @ works as well

Tables whose pins are equal are not looked at; of the others, what the filters leave out is not
compared either.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph.branch.changes import ChangeOp, ChangeSet, TableChanges
from omnigraph.branch.compare import Differences, candidates, candidates_of_one, settled
from omnigraph.branch.descent import Descent, open_entry
from omnigraph.branch.images import images
from omnigraph.catalog import Catalog, EntityType
from omnigraph.errors import BadRequestError, BranchNotFound, NotFoundError
from omnigraph.manifest import MAIN, Coordinator, GraphCommit, Snapshot, TableEntry
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.targets import resolve
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.tables import TableStorage

Target: TypeAlias = str | int | datetime | Snapshot

_COMMIT_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_VERSION_DIGITS_MAX = 20
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}.*")


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """What of a diff is wanted; None is everything."""

    kinds: Collection[str] | None = None
    types: Collection[str] | None = None
    ops: Collection[str] | None = None

    def check(self, catalog: Catalog) -> None:
        """Refuse a word that nothing can match.

        Raises:
            BadRequestError: A kind, type or operation that does not exist.
        """
        known_types = [*catalog.nodes, *catalog.edges]
        known = (
            ("kind", self.kinds, ["node", "edge"]),
            ("op", self.ops, [op.value for op in ChangeOp]),
        )
        for word, given, allowed in (*known, ("type", self.types, known_types)):
            if isinstance(given, str):
                raise BadRequestError(f"{word}s is the text {given!r} — give a list")
            for each in given or ():
                if each not in allowed:
                    listed = ", ".join(map(str, allowed))
                    raise BadRequestError(f"there is no {word} '{each}' — expected one of {listed}")

    def wants_table(self, entity: EntityType) -> bool:
        is_kind = self.kinds is None or entity.kind in self.kinds
        return is_kind and (self.types is None or entity.name in self.types)

    def wants(self, op: ChangeOp) -> bool:
        return self.ops is None or op.value in self.ops


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """What one commit changed, against the commit it was made on."""

    commit: GraphCommit
    changes: ChangeSet

    def to_json(self) -> dict[str, Any]:
        cause = {
            "graph_commit_id": self.commit.commit_id,
            "parent_commit_id": self.commit.parent_id,
            "merged_parent_commit_id": self.commit.merged_parent_id,
            "authored_branch": self.commit.branch,
            "actor_id": self.commit.actor,
            "authored_at": self.commit.created_at,
        }
        kept = {"graph_commit_id", "authored_branch", "authored_at"}
        return {
            "cause": {k: v for k, v in cause.items() if v is not None or k in kept},
            "changes": [each.to_json() for each in self.changes],
        }


def find_snapshot(coordinator: Coordinator, target: Target) -> Snapshot:
    """The state that a target names.

    Raises:
        NotFoundError: It names nothing that is there.
    """
    match target:
        case Snapshot():
            return target
        case bool():
            raise BadRequestError(f"{target} names no state of the graph")
        case int():
            return resolve(coordinator, branch=MAIN, version=target)
        case datetime():
            return resolve(coordinator, branch=MAIN, at=target)
    name, at_sign, moment = target.partition("@")
    if at_sign:
        return _at(coordinator, name, moment)
    try:
        return resolve(coordinator, branch=name)
    except (BranchNotFound, BadRequestError):
        if _COMMIT_ID.fullmatch(target):
            return resolve(coordinator, branch=MAIN, commit=target)
        if _TIME.fullmatch(target):
            return resolve(coordinator, branch=MAIN, at=target)
        raise


def _at(coordinator: Coordinator, branch: str, moment: str) -> Snapshot:
    name = branch or MAIN
    if moment.isdecimal() and len(moment) > _VERSION_DIGITS_MAX:
        raise NotFoundError(f"branch '{name}' has no version of {len(moment)} digits")
    if moment.isdecimal():
        return resolve(coordinator, branch=name, version=int(moment))
    return resolve(coordinator, branch=name, at=moment)


def diff_snapshots(
    tables: TableStorage,
    catalog: Catalog,
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
) -> ChangeSet:
    """Every entity that differs between two states."""
    wanted.check(catalog)
    descent = Descent(tables)
    keys = sorted({*before.entries, *after.entries})
    found = (
        _diff_table(descent, catalog, before.entries.get(key), after.entries.get(key), wanted)
        for key in keys
    )
    return ChangeSet(
        tables=tables,
        from_version=before.manifest_version,
        to_version=after.manifest_version,
        branch=after.branch if after.branch == before.branch else None,
        table_changes=tuple(each for each in found if each is not None and len(each.rows)),
    )


def _diff_table(
    descent: Descent,
    catalog: Catalog,
    before: TableEntry | None,
    after: TableEntry | None,
    wanted: ChangeFilter,
) -> TableChanges | None:
    entry = after or before
    assert entry is not None
    entity = catalog.by_table_key(entry.table_key)
    if entity is None or not wanted.wants_table(entity) or _is_same(before, after):
        return None
    tables = descent.tables
    old = open_entry(tables, before) if before is not None else None
    new = open_entry(tables, after) if after is not None else None
    if old is None or new is None:
        rows = candidates_of_one(tables, old, new)
    else:
        rows = _wanted_rows(candidates(descent, old, new), wanted)
        rows = settled(tables, old, new, rows)
    return TableChanges(entity, old, new, _wanted_rows(rows, wanted))


def _is_same(before: TableEntry | None, after: TableEntry | None) -> bool:
    if before is None or after is None:
        return False
    return before.shows_same_rows(after)


def _wanted_rows(rows: Differences, wanted: ChangeFilter) -> Differences:
    if wanted.ops is None:
        return rows
    parts = {
        ChangeOp.INSERT: rows.inserts,
        ChangeOp.UPDATE: rows.updates,
        ChangeOp.DELETE: rows.deletes,
    }
    kept = [part() for op, part in parts.items() if wanted.wants(op)]
    empty = rows.rows.slice(0, 0)
    return Differences(pa.concat_tables([empty, *kept]).sort_by("id").combine_chunks())


def changes_since(
    tables: TableStorage,
    catalog: Catalog,
    coordinator: Coordinator,
    since: str,
    branch: str,
    wanted: ChangeFilter,
) -> Iterator[CommitChanges]:
    """What every commit of a branch changed after `since`, oldest first.

    Follows the line of the branch itself: a merge is one step, with all that it brought.

    Raises:
        NotFoundError: `since` is not a commit on that line.
    """
    wanted.check(catalog)
    state = coordinator.fresh(canonical_branch(branch))
    known = {commit.commit_id: commit for commit in coordinator.commits(state.branch)}
    line: list[GraphCommit] = []
    commit: GraphCommit | None = state.head
    while commit is not None and commit.commit_id != since:
        line.append(commit)
        commit = known.get(commit.parent_id) if commit.parent_id is not None else None
    if commit is None:
        raise NotFoundError(
            f"commit '{since}' is not on the line of branch '{state.branch}' — take one that "
            "`commits` lists for it"
        )
    return _blocks(tables, catalog, coordinator, commit, line[::-1], wanted)


def _blocks(
    tables: TableStorage,
    catalog: Catalog,
    coordinator: Coordinator,
    start: GraphCommit,
    line: list[GraphCommit],
    wanted: ChangeFilter,
) -> Iterator[CommitChanges]:
    before = coordinator.at_version(start.branch, start.manifest_version).snapshot()
    for commit in line:
        after = coordinator.at_version(commit.branch, commit.manifest_version).snapshot()
        yield CommitChanges(commit, diff_snapshots(tables, catalog, before, after, wanted))
        before = after


def entity_at(
    tables: TableStorage, snapshot: Snapshot, table_key: str, entity_id: str
) -> dict[str, Any] | None:
    """One node or edge in a state, None when it is not there."""
    entry = snapshot.entries.get(table_key)
    if entry is None:
        raise NotFoundError(
            f"there is no table '{table_key}' — name one as node:<Type> or edge:<Type>"
        )
    handle = open_entry(tables, entry)
    rows = tables.scan(
        handle, predicate=IsIn("id", pa.array([entity_id], pa.utf8())), limit=1, include_blobs=True
    )
    found = [image for batch in rows.to_batches() for image in images(batch)]
    return found[0] if found else None
