"""After a power cut: files of the control tables that were named but never on the disk.

A torn version of `__manifest` is a publish that was not acknowledged, so the version before it is
the graph. That is believed only while nothing says otherwise: a version that the commit history
knows of was read by someone, and its loss is damage.

    read-write open    moves torn files to `_damaged/`
    read-only open     looks past them
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow.compute as pc

from omnigraph.errors import StorageError
from omnigraph.manifest.model import MAIN
from omnigraph.storage.control import ControlTable
from omnigraph.storage.queues import WriterQueues

_TORN_KEY = ("__torn__", None)

log = logging.getLogger("omnigraph.manifest")


def set_torn_aside(
    manifest: ControlTable, others: Sequence[ControlTable], queues: WriterQueues
) -> None:
    """Move away what a power cut has torn in the control tables; the first of `others` is history.

    Raises:
        StorageError: A torn version was known to be published.
    """
    tables = [manifest, *others]
    if not any(table.torn_files() for table in tables):
        return
    # Two opens at once: the second looks again, and finds a version written since to be whole.
    with queues.acquire_many([_TORN_KEY]):
        refuse_known_commits(manifest, others[0])
        for table in tables:
            for place in table.set_torn_aside():
                log.warning("a write was cut off by a loss of power; its file is now '%s'", place)


def refuse_known_commits(manifest: ControlTable, history: ControlTable) -> None:
    """Refuse a graph whose newest publish is torn though its commit is known.

    Raises:
        StorageError: It is.
    """
    torn = manifest.torn_heads()
    if not torn or not history.exists():
        return
    known = history.read(columns=["manifest_branch", "manifest_version"]).rows
    for branch, (version, path) in torn.items():
        name = pc.fill_null(known["manifest_branch"], MAIN)
        same = known.filter(pc.equal(name, branch or MAIN))
        if same.num_rows and pc.max(same["manifest_version"]).as_py() >= version:
            raise StorageError(
                f"the file '{path}' is cut off, and it held commits that were published: it was "
                "damaged after it was written — restore it from a backup; nothing was changed"
            )
