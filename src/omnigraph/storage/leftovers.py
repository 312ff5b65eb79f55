"""Leftovers: files under a temporary name, which their writer has yet to rename, or never will.

    <name>#<digits>               a text object of ours, or a version or ref of Lance
    <branch>.json.tmp.<hex>       a ref of Lance, before the link that gives it its name
    .tmp<six characters>          any other file of Lance

Nothing reads them, and copies of a graph leave them out. They are removed a day after their last
change, since a younger one may belong to a writer that is about to rename it. Object stores have
none.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress

from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.location import GraphRoot

LEFTOVER_SECONDS = 24 * 3600
_TEMPORARY = re.compile(r"#\d+$|\.json\.tmp\.[0-9a-f]+$|(^|/)\.tmp[A-Za-z0-9]{6}$")


def is_temporary(path: str) -> bool:
    """Whether a file has the name of one that is not whole yet."""
    return _TEMPORARY.search(path) is not None


def remove_leftovers(root: GraphRoot) -> int:
    """Remove what killed writers left under temporary names; returns how many files went."""
    if not root.is_local:
        return 0
    removed = 0
    with lance_errors("removing leftovers", root.uri):
        for path in list(_leftovers(root.local_path)):
            with suppress(FileNotFoundError):
                os.unlink(path)
                removed += 1
    return removed


def _leftovers(top: str) -> Iterator[str]:
    newest = time.time() - LEFTOVER_SECONDS
    for directory, _, names in os.walk(top):
        for name in filter(is_temporary, names):
            path = os.path.join(directory, name)
            with suppress(FileNotFoundError):
                if os.lstat(path).st_mtime < newest:
                    yield path
