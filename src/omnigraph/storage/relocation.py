"""Relocation: mend the version files of a graph that was moved or copied.

Reads do not need this, see `base_paths.py`. Lance does: its cleanup follows the paths in the
version files of forks, and a fork of a fork copies them from there.

`__location.json` names the root that all version files were last correct for. It is written last,
so an open that finds another root, or none, mends everything; doing so twice changes nothing.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.base_paths import stale_bases
from omnigraph.storage.datasets import Opener
from omnigraph.storage.durability import Durability, sync_paths
from omnigraph.storage.forks import Forks
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.lance_manifest import (
    list_bases,
    manifest_in,
    replace_base_paths,
    with_manifest,
)
from omnigraph.storage.location import VERSIONS, GraphRoot, TableLocation, graph_root
from omnigraph.storage.objects import read_object, replace_object
from omnigraph.storage.recorder import Recorder
from omnigraph.storage.text import TextStore, open_text_store

MARKER = "__location.json"
_FORMAT = 1
_OBJECT_STORE_WORKERS = 16
_WITHOUT_TABLES = frozenset(
    {"__derived", "__jobs", "__load", "__locks", "__quarantine", "__recovery"}
)

log = logging.getLogger("omnigraph.storage")


def read_marker(root: GraphRoot, texts: TextStore) -> str | None:
    """The root that the version files were last correct for; None when it is not known."""
    text = texts.read_text_if_exists(root.child(MARKER))
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text or "")["root"])
    return None


def write_marker(root: GraphRoot, texts: TextStore) -> None:
    """Record that every version file is correct for this root."""
    hit(Failpoint.RELOCATE_BEFORE_MARKER)
    texts.write_text(root.child(MARKER), json.dumps({"format": _FORMAT, "root": root.uri}) + "\n")


def mend_tables(
    root: GraphRoot, storage_options: Mapping[str, str], durability: Durability
) -> set[str]:
    """Mend the forks of every table; returns the roots that their files were written under."""
    texts = open_text_store(root, storage_options, durability)
    former: set[str] = set()
    for relative in _datasets(root, texts):
        found = mend_forks(root.child(relative), storage_options, durability)
        former |= {each.removesuffix(f"/{relative}") for each in found if each.endswith(relative)}
    return former


def mend_forks(
    uri: str, storage_options: Mapping[str, str], durability: Durability = "power"
) -> set[str]:
    """Mend every version file of every fork of a dataset; returns where the dataset was before.

    Safe beside readers and writers: a file is replaced as a whole by one of the same content.
    """
    texts = open_text_store(graph_root(uri), storage_options, durability)
    recorder = Recorder(storage_options)
    forks = Forks(Opener(storage_options), texts, durability, recorder).names(uri)
    files = [
        file
        for fork in sorted(forks)
        for file in texts.list_dir(f"{TableLocation(uri, fork).physical_uri}/{VERSIONS}")
        if file.endswith(".manifest")
    ]

    def mend(file: str) -> set[str]:
        return _mend_file(file, uri, storage_options, durability)

    if "://" not in uri:
        former = set().union(*map(mend, files))
        if former and durability == "power":
            with lance_errors("flushing mended versions", uri):
                sync_paths({os.path.dirname(file) for file in files})
        return former
    with ThreadPoolExecutor(_OBJECT_STORE_WORKERS) as pool:
        return set().union(*pool.map(mend, files))


def _mend_file(
    file: str, uri: str, storage_options: Mapping[str, str], durability: Durability
) -> set[str]:
    data = read_object(file, storage_options)
    if data is None:
        return set()  # its branch was deleted meanwhile
    try:
        manifest = manifest_in(data)
        bases = list_bases(manifest)
    except (ValueError, IndexError) as error:
        # No reader can open it either; `verify` reports which commit it belongs to.
        log.warning("'%s' cannot be mended: %s", file, error)
        return set()
    stale = stale_bases(uri, bases)
    if not stale:
        return set()
    mended = with_manifest(data, replace_base_paths(manifest, stale))
    hit(Failpoint.RELOCATE_BEFORE_VERSION_FILE)
    try:
        # The content stays the same. Nothing else rewrites version files.
        replace_object(file, mended, storage_options, durability)
    except OmnigraphError:
        if read_object(file, storage_options) is not None:
            raise
    return {path.removesuffix(f"/tree/{branch}") for branch, path in bases if path in stale}


def _datasets(root: GraphRoot, texts: TextStore) -> Iterator[str]:
    """Every dataset of a graph by its path below the root: at the top, or one folder down."""
    for folder in sorted(set(texts.list_folders(root.uri)) - _WITHOUT_TABLES):
        inside = set(texts.list_folders(root.child(folder)))
        if VERSIONS in inside:
            yield folder
        else:
            yield from sorted(f"{folder}/{each}" for each in inside)
