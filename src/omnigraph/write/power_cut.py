"""After a power cut: files of the control tables that had their names but were not on the disk.

A torn version of `__manifest`, or one without its rows, is a publish that was not acknowledged, so
the version before it is the graph. That is believed only of a branch with a sidecar, or a mark that
a commit without one was under way: without either the version had been synced, and is damaged. An
open looks only at `main` and branches with either; others are examined when they are first read.

    read-write open    moves torn files to `_damaged/`
    read-only open     looks past them
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from omnigraph.errors import ConflictError, OmnigraphError
from omnigraph.manifest.history import MARK
from omnigraph.storage.control import ControlTable
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.power_cut import Suspects
from omnigraph.storage.queues import WriterQueues
from omnigraph.write.environment import BRANCHES_QUEUE, PUBLISH_QUEUE
from omnigraph.write.sidecar import DIRECTORY
from omnigraph.write.sidecar_files import read_sidecar_if_exists

_TORN_QUEUE = "__torn__"

log = logging.getLogger("omnigraph.recovery")


def set_torn_aside(
    texts: GraphTexts,
    manifest: ControlTable,
    history: ControlTable,
    audit: ControlTable,
    queues: WriterQueues,
) -> None:
    """Move away what a power cut has torn in the control tables.

    Raises:
        StorageError: A torn version had been acknowledged.
    """
    marked = manifest.power_cut.list_unfinished()
    suspects = _find_suspects(texts, manifest, marked)
    manifest.power_cut.refuse_damaged(None, suspects.written)
    others = Suspects(frozenset({None}))
    found = {manifest: suspects, history: others, audit: others}
    if not marked and not any(table.power_cut.find_torn(each) for table, each in found.items()):
        return
    # A live writer's files are whole, and its mark stays. Of two opens at once the second looks
    # again.
    turns = [(BRANCHES_QUEUE, None), *((PUBLISH_QUEUE, branch) for branch in suspects.written)]
    try:
        with queues.acquire_many([(_TORN_QUEUE, None), *turns], timeout_seconds=0.0):
            for table, each in found.items():
                _log(table.power_cut.quarantine(each))
            manifest.power_cut.clear_unfinished()
    except ConflictError:
        return


def _log(paths: Iterable[str]) -> None:
    for path in paths:
        log.warning("a write was cut off by a loss of power; its file is now '%s'", path)


def look_past_torn(texts: GraphTexts, manifest: ControlTable) -> None:
    """Let a handle that may not write read what was there before the power cut.

    Raises:
        StorageError: A torn version had been acknowledged.
    """
    suspects = _find_suspects(texts, manifest, manifest.power_cut.list_unfinished())
    manifest.power_cut.ignore_torn(suspects)
    manifest.power_cut.refuse_damaged(None, suspects.written)


def _find_suspects(
    texts: GraphTexts, manifest: ControlTable, marked: Collection[str | None]
) -> Suspects:
    """The branches that a dead writer may have left torn.

    Creating a branch is marked as well. It was not in earlier versions: of a graph that only these
    have opened, every branch is looked at.
    """
    is_marking = texts.exists(MARK)
    created = set(filter(None, marked)) if is_marking else manifest.branch_names()
    written = find_unfinished_branches(texts) | set(marked)
    return Suspects(frozenset(written), frozenset(created))


def find_unfinished_branches(texts: GraphTexts) -> set[str | None]:
    """The Lance branches on which a publish may have been under way; recovery also uses main."""
    names = [name for name in texts.list_dir(DIRECTORY) if name.endswith(".json")]
    found: set[str | None] = {None} if names else set()
    for name in names:
        try:
            sidecar = read_sidecar_if_exists(texts, name.removesuffix(".json"))
        except OmnigraphError:
            continue  # recovery names it
        if sidecar is not None:
            found.add(sidecar.branch)
    return found
