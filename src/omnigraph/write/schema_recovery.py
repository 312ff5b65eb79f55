"""Recovery of schema changes: decide first, then move files.

A schema change of main lays its three files down after its last table and before its publish. So
files that are there in full, under the hash that the sidecar names, prove that every table is
ready. One of another branch has no such files, and a merge writes them afterwards: their sidecars
are confirmed instead. The commit that the sidecar names, found in the manifest, proves that the
publish happened.

    the commit is published                     move the files, write it up
    ready, every table past its pin             publish, move the files
    anything else                               restore the tables, remove files and new tables
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from omnigraph.errors import OmnigraphError
from omnigraph.manifest import MAIN, ManifestState, RegisterTable
from omnigraph.manifest.model import Change
from omnigraph.manifest.schema_files import (
    catch_up_files,
    discard,
    has_staging,
    promote,
    read_staged_hash,
)
from omnigraph.write.classify import Decision, decide
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.evidence import Found, has_commit
from omnigraph.write.pins import handle_to_pin
from omnigraph.write.sidecar import Sidecar, SidecarTable

log = logging.getLogger("omnigraph.recovery")


def is_published(state: ManifestState, sidecar: Sidecar) -> bool:
    """Whether the commit that the sidecar announced is in the history of its branch."""
    return sidecar.commit_id is not None and has_commit(state, sidecar.commit_id)


def decide_schema_change(
    environment: WriteEnvironment,
    state: ManifestState,
    sidecar: Sidecar,
    found: Sequence[Found],
    *,
    is_stale: bool,
) -> Decision:
    """What to do with a schema change that was interrupted."""
    decision = decide(
        [each.table_class for each in found],
        has_advanced=any(each.seen.pin > each.seen.expected for each in found),
        is_published=is_published(state, sidecar),
        is_stale=is_stale,
    )
    if decision is Decision.ROLL_FORWARD and not _is_complete(environment, sidecar):
        return Decision.ROLL_BACK
    return decision


def _is_complete(environment: WriteEnvironment, sidecar: Sidecar) -> bool:
    if not sidecar.stages_schema_files:
        return sidecar.is_confirmed
    if sidecar.schema.schema_hash is None:
        return has_staging(environment.texts)
    return read_staged_hash(environment.texts) == sidecar.schema.schema_hash


def schema_changes(
    environment: WriteEnvironment, state: ManifestState, sidecar: Sidecar
) -> Iterator[Change]:
    """What the publish of a schema change holds besides the tables it rewrote."""
    # A key is given up before it is taken, in the order of the writer.
    yield from (each for each in sidecar.schema.tombstones if each.table_key in state.entries)
    for table in sidecar.schema.registrations:
        entry = state.entries.get(table.table_key)
        if entry is None or entry.table_path != table.table_path:
            yield RegisterTable(table.table_key, table.table_path)
            location = environment.tables.root.table(table.table_path, table.table_branch)
            version = table.version or environment.tables.head_version(location)
            handle = environment.tables.open_at(location, version, incarnation=sidecar.operation_id)
            yield handle_to_pin(table.table_key, handle)


def complete_schema_change(environment: WriteEnvironment, sidecar: Sidecar) -> None:
    """The change is published: its files go into place, and what was to go for good, goes."""
    if not sidecar.stages_schema_files:
        if sidecar.branch is None:
            catch_up_files(environment.texts, environment.coordinator)
        _purge(environment, sidecar)
        return
    # Some files moved while the rest waits: finish that. A whole set is another change's.
    is_half_moved = has_staging(environment.texts) and read_staged_hash(environment.texts) is None
    if is_half_moved or _is_complete(environment, sidecar):
        promote(environment.texts)
    _purge(environment, sidecar)


def _purge(environment: WriteEnvironment, sidecar: Sidecar) -> None:
    if sidecar.schema.purged:
        from omnigraph.write.purge import purge_history  # only a change that died needs it

        state = environment.coordinator.fresh(sidecar.branch or MAIN)
        purge_history(environment.tables, sidecar.schema.purged, state.entries.values())


def undo_schema_change(
    environment: WriteEnvironment, state: ManifestState, sidecar: Sidecar
) -> None:
    """The change did not happen: its files go, and so do tables that no manifest ever named."""
    if sidecar.stages_schema_files:
        discard(environment.texts)
    known = {*state.paths.values(), *state.hidden_paths}
    for table in sidecar.schema.registrations:
        # One with a version was there before, and one that is known was to have another name.
        if table.version is None and table.table_path not in known:
            _remove_table(environment, table)


def _remove_table(environment: WriteEnvironment, table: SidecarTable) -> None:
    try:
        environment.tables.delete_table(environment.tables.root.child(table.table_path))
    except OmnigraphError as error:
        # The next attempt writes over it.
        log.warning("the unfinished table '%s' stays: %s", table.table_key, error)
