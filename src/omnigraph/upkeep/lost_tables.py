"""Lost tables: those that no branch, tag or kept commit names any more, and none will.

The table of a type lies at a path that is used once. It is lost with the branch that added the
type, when that is deleted unmerged or goes back; a schema change that died leaves one too. A table
is made before it is named, so the tables are listed first, and the names are read afterwards: one
that a change is about to name was not listed, or the lock of that change is there. The caller holds
the turn of history, so on one machine there is no such change, and no branch is being received.

    step                      a crash here leaves
    forks, children first     fewer forks of a table that nothing names
    checksums                 files that nothing expects
    everything else           some of them: the next cleanup goes on
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import ForkInUse
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import Snapshot
from omnigraph.storage.checksum_records import DIRECTORY as CHECKSUMS
from omnigraph.storage.garbage import Removed
from omnigraph.storage.listing import Files
from omnigraph.storage.location import VERSIONS
from omnigraph.storage.tables import TableStorage
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.purge import children_first
from omnigraph.write.schema_lock import LOCK_REF


def list_lost_tables(environment: WriteEnvironment, kept: Iterable[Snapshot]) -> list[str]:
    """The paths of tables that no branch has ever shown and no state of `kept` shows."""
    tables, coordinator = environment.tables, environment.coordinator
    there = ["/".join(uri.split("/")[-2:]) for uri in tables.dataset_uris()]
    if environment.texts.exists(LOCK_REF):
        return []
    states = coordinator.fresh_each(coordinator.branches())
    named = {path for state in states for path in state.known_paths}
    named |= {entry.table_path for state in kept for entry in state.entries.values()}
    return [path for path in there if path not in named]


def remove_table(tables: TableStorage, path: str, *, is_dry_run: bool) -> Removed:
    """Remove a lost table; says what it was.

    Raises:
        ForkInUse: Something that is not of this graph stands on a fork of it.
    """
    uri = tables.root.child(path)
    files = Files(uri, tables.storage_options).list()
    versions = [name for name in files if f"/{VERSIONS}/" in f"/{name}"]
    found = Removed(len(versions), sum(each.size for each in files.values()))
    if is_dry_run:
        return found
    forks = children_first(tables.forks.list(uri))
    left = set(forks) - set(tables.forks.delete_unused(uri, forks))
    if left:
        raise ForkInUse(uri, min(left))
    hit(Failpoint.CLEANUP_LOST_TABLE)
    tables.delete_table(f"{uri}/{CHECKSUMS}")
    hit(Failpoint.CLEANUP_LOST_TABLE)
    tables.delete_table(uri)
    return found
