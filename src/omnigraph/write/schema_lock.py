"""The lock of schema changes: while one is under way, no other writer writes.

The lock is a branch of the manifest that no list shows, so that it holds on every kind of store.
On a local disk its holder also has a queue, which the system releases when the holder dies: then
the lock is stale, and the next writer removes it.
"""

from __future__ import annotations

from omnigraph.errors import ConflictError
from omnigraph.manifest.branch_names import SCHEMA_APPLY_LOCK
from omnigraph.manifest.contract import STATE_FILE, staging_name
from omnigraph.manifest.schema_files import catch_up_files, has_staging, reconcile_staging
from omnigraph.storage.queues import SCHEMA_APPLY_KEY
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.sidecar_files import list_sidecars, read_sidecar_if_exists

LOCK_REF = f"__manifest/_refs/branches/{SCHEMA_APPLY_LOCK}.json"


def refuse_while_applying(environment: WriteEnvironment) -> None:
    """Refuse to go on while a schema change is under way. Costs one request to the store.

    Raises:
        ConflictError: One is.
    """
    if not environment.texts.exists(LOCK_REF):
        return
    if environment.tables.root.is_local:
        try:
            guard = environment.queues.acquire_many([SCHEMA_APPLY_KEY], timeout_seconds=0.0)
        except ConflictError:
            pass
        else:
            with guard:
                clear_dead_apply(environment)
            return
    # Without locks of the system nothing tells a slow schema change from a dead one.
    died = "" if environment.has_system_locks else "; if its process has died, reopen the graph"
    raise ConflictError(f"a schema change is in progress — try again when it is done{died}")


def has_staged_schema(environment: WriteEnvironment) -> bool:
    """Whether a schema is laid down in full and waits to be accepted. Costs one request."""
    return environment.texts.exists(staging_name(STATE_FILE))


def recover_dead_apply(environment: WriteEnvironment) -> None:
    """At an open or refresh: remove what a schema change left that no sidecar names."""
    if not environment.texts.exists(LOCK_REF) and not has_staging(environment.texts):
        return
    with environment.queues.acquire_many([SCHEMA_APPLY_KEY]):
        clear_dead_apply(environment)


def clear_dead_apply(environment: WriteEnvironment) -> None:
    """Remove or promote staging files and the lock. The caller holds the schema queue."""
    texts = environment.texts
    pending = (read_sidecar_if_exists(texts, each) for each in list_sidecars(texts))
    # A change with a sidecar is left to recovery, which has to decide before the files move.
    if not any(each and each.changes_schema for each in pending):
        reconcile_staging(texts, environment.coordinator)
        catch_up_files(texts, environment.coordinator)
    environment.coordinator.unlisted.unlock_schema()
