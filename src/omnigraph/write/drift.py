"""Drift: refuse to write to a table whose HEAD is not its pin, and say what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.errors import ConflictError, InvariantViolated, OmnigraphError, RecoveryRequired
from omnigraph.manifest import TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.sidecar_files import list_sidecars, read_sidecar_if_exists


class UnfinishedWrite(RecoveryRequired):
    """A table is as an unfinished write left it: recovery is pending. Nothing was done."""


def check_heads(
    environment: WriteEnvironment, branch: str, entries: Mapping[str, TableEntry]
) -> None:
    """Refuse to write on a table whose HEAD is not its pin: unfinished work is there.

    Raises:
        UnfinishedWrite: A sidecar names the table: run recovery, then check again.
        ConflictError: No sidecar names it: something else wrote there.
        InvariantViolated: HEAD is behind its pin.
    """
    for key, entry in sorted(entries.items()):
        if not owns_lineage(branch, entry.table_branch):
            continue
        head = read_head(environment.tables, entry)
        if head > entry.version:
            drift = (
                f"table '{key}' has Lance HEAD version {head} ahead of manifest version "
                f"{entry.version}; "
            )
            raise _explain_drift(environment, entry, drift)


def read_head(tables: TableStorage, entry: TableEntry) -> int:
    """The HEAD version of a pinned table.

    Raises:
        InvariantViolated: It is behind the pin.
    """
    location = tables.root.table(entry.table_path, entry.table_branch)
    head = tables.head_version(location, expected=entry.version)
    if head < entry.version:
        raise InvariantViolated(
            f"table '{entry.table_key}' has Lance HEAD version {head} behind manifest version "
            f"{entry.version} — files are missing; restore them from a backup"
        )
    return head


def _explain_drift(environment: WriteEnvironment, entry: TableEntry, drift: str) -> OmnigraphError:
    """The error for a HEAD that is ahead: a write that recovery has to undo, or real drift."""
    try:
        for operation_id in list_sidecars(environment.texts):
            sidecar = read_sidecar_if_exists(environment.texts, operation_id)
            if sidecar is not None and any(
                (pin.table_key, pin.table_branch) == (entry.table_key, entry.table_branch)
                for pin in sidecar.pins
            ):
                return UnfinishedWrite(
                    f"{drift}a pending recovery sidecar requires rollback — {_advice(environment)}",
                    operation_id=operation_id,
                )
    except OmnigraphError as error:
        return ConflictError(
            f"{drift}recovery sidecars could not be read ({error}) — {_advice(environment)}, or "
            "run `omnigraph repair` when no sidecar is pending"
        )
    return ConflictError(f"{drift}run `omnigraph repair` before writing")


def _advice(environment: WriteEnvironment) -> str:
    if environment.has_system_locks:
        return "nothing was written; try again, or run `omnigraph verify` if this persists"
    # Without locks of the system a live handle cannot know that no other process is at work.
    return "reopen the graph read-write (e.g. restart the server) to recover"
