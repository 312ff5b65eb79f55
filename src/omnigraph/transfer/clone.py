"""Clone: a second store of a whole graph, with all branches, tags, commits and their ids.

    step                        a crash here leaves
    `__clone.json`              the claim of a location, by the id of the graph
    files that are missing      some of them; the same clone goes on with the others
    the manifest's versions     a graph without its schema, which does not open
    the schema files            as before; `_schema.pg` is the last one, and makes the graph whole
    the claim goes              –

What an earlier attempt copied and the graph does not need any more is removed before the last
step, and only below a location that the claim says is ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from omnigraph.errors import BadRequestError, ConflictError, GraphExists, SourceChanged
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.contract import SOURCE_FILE
from omnigraph.storage.checksum_records import DIRECTORY
from omnigraph.storage.durability import Durability
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.listing import Files
from omnigraph.storage.queues import Guard, QueueKey, writer_queues
from omnigraph.transfer.contents import ATTEMPTS_MAX, Contents, Source, read_contents
from omnigraph.transfer.copying import Copier, record_unrecorded
from omnigraph.transfer.result import TransferResult

CLAIM = "__clone.json"
_FORMAT = 1
_QUEUE: QueueKey = ("__clone__", None)
_LOCKS = "__locks/"
_T = TypeVar("_T")


def clone_graph(
    source: Source,
    target: GraphTexts,
    storage_options: Mapping[str, str],
    durability: Durability,
) -> TransferResult:
    """Copy all of `source` to an empty location.

    Raises:
        GraphExists: There is a graph at the target.
        BadRequestError: There is something else, or the start of a clone of another graph.
        DamagedFile: A file of the source is not what was written. Nothing can be opened.
    """
    files = Files(target.root.uri, storage_options)

    copier = Copier(source.files, files, durability)

    def attempt() -> TransferResult:
        contents = read_contents(source)
        if claim(target, files, contents.graph_id):
            copier.copy_missing(contents.files, files.list())
            complete(target, files, contents)
        return copier.moved + TransferResult(commits=len(contents.commit_ids))

    with clone_turn(target):
        return retry_while_changing(attempt)


def clone_turn(target: GraphTexts) -> Guard:
    """Wait for the turn to make a graph at a location."""
    return writer_queues(target.root).acquire_many([_QUEUE])


def retry_while_changing(attempt: Callable[[], _T]) -> _T:
    """Try again while cleanups and deleted branches take files away at the source."""
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return attempt()
        except SourceChanged:
            continue
    return attempt()


def complete(target: GraphTexts, files: Files, contents: Contents) -> None:
    """Make a graph of files that were copied: remove what is not of it, and write its texts."""
    there, wanted = set(files.list()), contents.paths | {CLAIM}
    records = {path for path in there if f"/{DIRECTORY}/" in path}
    unwanted = {path for path in there - wanted - records if not path.startswith(_LOCKS)}
    if unwanted:
        # What is recorded of them would count as missing: all is recorded again.
        files.remove(unwanted | records)
    record_unrecorded(files, contents.files)
    hit(Failpoint.TRANSFER_BEFORE_TEXTS)
    for path, text in contents.texts.items():
        if path == SOURCE_FILE:
            hit(Failpoint.TRANSFER_BEFORE_CLAIM)
        files.write(path, text)
    target.delete(CLAIM)


def claim(target: GraphTexts, files: Files, graph_id: str) -> bool:
    """Take the location for a copy of this graph, or go on with one that was interrupted.

    False when the copy is whole: it died when nothing was left to do but to take the claim back.
    """
    text = target.read_text_if_exists(CLAIM)
    if target.exists(SOURCE_FILE):
        if text is None:
            raise GraphExists(target.root.uri)
        target.delete(CLAIM)
        return False
    if text is None:
        if any(not path.startswith(_LOCKS) for path in files.list()):
            raise BadRequestError(
                f"'{target.root}' is not empty — nothing was copied; choose another location"
            )
        words = json.dumps({"format": _FORMAT, "graph": graph_id}) + "\n"
        if target.write_text_if_absent(CLAIM, words):
            return True
        text = target.read_text(CLAIM)
    try:
        claimed = str(json.loads(text)["graph"])
    except (ValueError, TypeError, KeyError):
        claimed = "?"
    if claimed != graph_id:
        raise ConflictError(
            f"'{target.root}' has part of a copy of another graph — nothing was copied; remove it, "
            "or choose another location"
        )
    return True
