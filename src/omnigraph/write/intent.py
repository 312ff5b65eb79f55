"""Intent: everything a writer is about to do, as one value that the protocol carries out.

tables       what moves, in order      TableCommits   versions on top of a pin
                                       NewTable       a table that no manifest names yet
                                       Tombstone      a table that is hidden
pointed      pins that move no HEAD: versions that are there already
ancestors    commits of the source that a merge brings along
expected     what the publish insists on; recovery publishes only while it holds
commit       the graph commit, minted before any effect; None keeps the content of the graph
earlier      the commits of a group (`group.py`) before it, in order
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from omnigraph.dataclass import dataclass
from omnigraph.failpoints import Failpoint
from omnigraph.manifest import GraphCommit, Lineage, ManifestState, Tombstone, UpdatePin
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.storage.handles import StagedTransaction, TableHandle
from omnigraph.ulids import new_ulid
from omnigraph.write.sidecar import (
    SchemaIntent,
    Sidecar,
    SidecarPin,
    SidecarSwitch,
    SidecarTable,
    WriterKind,
)


@dataclass(frozen=True, slots=True)
class CommitStep:
    """One commit on one table. The handle is the table as the step before left it.

    The UUID is minted before anything is written, so that the sidecar can name the transaction.
    A step that finds nothing to do stages None.
    """

    uuid: str
    stage: Callable[[TableHandle], StagedTransaction | None]
    after: Failpoint | None = None


def to_commit_step(staged: StagedTransaction) -> CommitStep:
    """The commit of files that are written already."""
    return CommitStep(staged.uuid, lambda _: staged)


@dataclass(frozen=True, slots=True)
class TableCommits:
    """A table that moves on from its pin, or from a fork of it: `handle` is open exactly there."""

    table_key: str
    handle: TableHandle
    steps: tuple[CommitStep, ...]


@dataclass(frozen=True, slots=True)
class TableAppends:
    """A table that moves on by several appends, each a version; `handle` is open at its pin."""

    table_key: str
    handle: TableHandle
    staged: tuple[StagedTransaction, ...]


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is registered: written from nothing, or there already under another name.

    `write` is given the operation id. `table_branch` and `version` say where a table is shown that
    is there already; without a version, at the latest one of that lineage.
    """

    table_key: str
    table_path: str
    write: Callable[[str], TableHandle]
    table_branch: str | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """One write, ready to be carried out. The caller holds every queue it needs.

    With `confirms` the sidecar is written again when every table is ready: then, and not before,
    a table that takes several commits is known to be complete. `before_publish` makes ready what
    else a publish needs, `after_publish` puts it into place; the latter may be repeated by
    recovery. With `is_checked` nothing of the write counts before it is confirmed, whatever the
    writer. With `syncs_together` the versions of all tables are synced when the last one is
    committed; `unsynced` are staged files that are to be synced with the sidecar. `withdraw` takes
    back what `before_publish` laid down when there is no sidecar.
    """

    kind: WriterKind
    branch: str
    branch_id: str | None
    tables: tuple[TableCommits | TableAppends | NewTable | Tombstone, ...]
    expected: Mapping[str, int]
    commit: Lineage | None = None
    earlier: tuple[Lineage, ...] = ()
    if_commit: str | None = None
    pointed: tuple[UpdatePin, ...] = ()
    ancestors: tuple[GraphCommit, ...] = ()
    source_branch: str | None = None
    schema_hash: str | None = None
    schema_id: str | None = None
    purged: tuple[str, ...] = ()
    confirms: bool = False
    is_checked: bool = False
    syncs_together: bool = False
    unsynced: Sequence[str] = ()
    after_table: Failpoint | None = None
    before_publish: Callable[[], None] = lambda: None
    after_publish: Callable[[ManifestState], None] = lambda _: None
    withdraw: Callable[[], None] = lambda: None


def mint_commit(
    actor: str | None,
    *,
    merged_parent_id: str | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Lineage:
    """A new graph commit, made now."""
    now = time.time_ns() // 1_000
    return Lineage(new_ulid(), actor, now, merged_parent_id, dict(properties or {}))


def build_sidecar(intent: Intent) -> Sidecar:
    """The whole intent, with every id minted, so that recovery can finish exactly this write."""
    commit = intent.commit
    return Sidecar(
        operation_id=new_ulid(),
        writer_kind=intent.kind,
        started_at=commit.created_at if commit is not None else time.time_ns() // 1_000,
        branch=lance_branch(intent.branch),
        actor_id=None if commit is None else commit.actor,
        commit_id=None if commit is None else commit.commit_id,
        branch_id=intent.branch_id,
        merge_source_commit_id=None if commit is None else commit.merged_parent_id,
        merge_source_branch=intent.source_branch,
        read_versions=dict(intent.expected),
        if_commit=intent.if_commit,
        commit_properties={} if commit is None else dict(commit.properties),
        pins=tuple(
            _pin(each) for each in intent.tables if isinstance(each, TableCommits | TableAppends)
        ),
        switches=tuple(
            SidecarSwitch(pin.table_key, pin.version, pin.table_branch) for pin in intent.pointed
        ),
        schema=_schema_of(intent),
        ancestors=intent.ancestors,
        earlier=intent.earlier,
        is_checked=intent.is_checked,
    )


def _pin(table: TableCommits | TableAppends) -> SidecarPin:
    handle = table.handle
    commits = table.steps if isinstance(table, TableCommits) else table.staged
    return SidecarPin(
        table_key=table.table_key,
        table_path=handle.location.uri,
        expected_version=handle.version,
        post_commit_pin=handle.version + len(commits),
        table_branch=handle.location.branch,
        transaction_uuids=tuple(each.uuid for each in commits),
    )


def _schema_of(intent: Intent) -> SchemaIntent:
    return SchemaIntent(
        registrations=tuple(
            SidecarTable(each.table_key, each.table_path, each.table_branch, each.version)
            for each in intent.tables
            if isinstance(each, NewTable)
        ),
        tombstones=tuple(each for each in intent.tables if isinstance(each, Tombstone)),
        schema_hash=intent.schema_hash,
        schema_id=intent.schema_id,
        purged=intent.purged,
    )
