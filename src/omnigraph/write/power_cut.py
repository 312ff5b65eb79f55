"""After a power cut: files of the control tables that had their names but were not on the disk.

A torn version of `__manifest`, or one without its rows, is a publish that was not acknowledged, so
the version before it is the graph. That is believed only while nothing says otherwise: a version
whose commits the history knows has been read, and its loss is damage.

    read-write open    moves torn files to `_damaged/`
    read-only open     looks past them
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pyarrow.compute as pc

from omnigraph.errors import ConflictError, OmnigraphError, StorageError
from omnigraph.manifest import MAIN
from omnigraph.storage.control import ControlTable
from omnigraph.storage.queues import WriterQueues
from omnigraph.write.commit import PUBLISH_QUEUE
from omnigraph.write.sidecar import DIRECTORY, SidecarStore, read_sidecar_if_exists

_TORN_QUEUE = "__torn__"

log = logging.getLogger("omnigraph.recovery")


def set_torn_aside(
    texts: SidecarStore,
    manifest: ControlTable,
    history: ControlTable,
    audit: ControlTable,
    queues: WriterQueues,
) -> None:
    """Move away what a power cut has torn in the control tables.

    Raises:
        StorageError: A torn version was known to be published.
    """
    suspects = {manifest: unfinished_branches(texts), history: {None}, audit: {None}}
    if not any(table.torn_files(branches) for table, branches in suspects.items()):
        return
    # A live writer's files are whole. Of two opens at once the second looks again.
    turns = [(PUBLISH_QUEUE, branch) for branch in suspects[manifest]]
    try:
        with queues.acquire_many([(_TORN_QUEUE, None), *turns], timeout_seconds=0.0):
            refuse_known_commits(manifest, history)
            for table, branches in suspects.items():
                _log(table.set_torn_aside(branches))
    except ConflictError:
        return


def _log(places: Iterable[str]) -> None:
    for place in places:
        log.warning("a write was cut off by a loss of power; its file is now '%s'", place)


def look_past_torn(texts: SidecarStore, manifest: ControlTable, history: ControlTable) -> None:
    """Let a handle that may not write read what was there before the power cut.

    Raises:
        StorageError: A torn version was known to be published.
    """
    manifest.look_past_torn(unfinished_branches(texts))
    refuse_known_commits(manifest, history)


def unfinished_branches(texts: SidecarStore) -> set[str | None]:
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


def refuse_known_commits(manifest: ControlTable, history: ControlTable) -> None:
    """Refuse a graph whose newest publish is torn though its commits are known."""
    torn = manifest.torn_heads()
    if not torn or not history.exists():
        return
    known = history.read(columns=["manifest_branch", "manifest_version"]).rows
    for branch, file in torn.items():
        name = pc.fill_null(known["manifest_branch"], MAIN)
        same = known.filter(pc.equal(name, branch or MAIN))
        if same.num_rows and pc.max(same["manifest_version"]).as_py() >= file.version:
            raise StorageError(
                f"the file '{file.path}' is cut off, and it held commits that were published: it "
                "was damaged after it was written — restore it from a backup; nothing was changed"
            )
