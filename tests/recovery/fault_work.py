"""Every writer there is, for tests in which the system fails under it.

Each runs alone in a process that strace watches, over two tables where it can.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.write.sidecar import WriterKind
from tests.recovery import work
from tests.recovery.work import BRANCH

WIDER = work.SCHEMA.replace("age: I32?", "age: I32?  email: String?").replace(
    "node Tag {", 'node Label @rename_from("Tag") { color: String? '
)
INDEXED = work.SCHEMA.replace("age: I32?", "age: I32? @index")


@dataclass(frozen=True)
class FaultWriter:
    """What it starts from, what it does, and the kind its sidecar names."""

    template: str
    run: Callable[[Graph], object]
    kind: WriterKind | None = None


def _of_work(name: str, template: str, kind: WriterKind | None) -> FaultWriter:
    return FaultWriter(template, lambda graph: work.WRITERS[name](graph, 2), kind)


WRITERS: dict[str, FaultWriter] = {
    "insert": _of_work("insert", "plain", WriterKind.MUTATION),
    "update": _of_work("update", "plain", WriterKind.MUTATION),
    "delete": _of_work("delete", "plain", WriterKind.MUTATION),
    "conditional": _of_work("conditional", "plain", WriterKind.MUTATION),
    "group": _of_work("group", "plain", WriterKind.MUTATION_GROUP),
    "load append": _of_work("load append", "plain", WriterKind.LOAD),
    "load merge": _of_work("load merge", "plain", WriterKind.LOAD),
    "load overwrite": _of_work("load overwrite", "plain", WriterKind.LOAD),
    "branch insert": _of_work("branch insert", "branch", WriterKind.MUTATION),
    "branch create": _of_work("branch create", "plain", None),
    "branch delete": _of_work("branch delete", "forked2", None),
    "branch reset": _of_work("branch reset", "twice2", None),
    "merge": FaultWriter("forked2", lambda graph: graph.merge(BRANCH), WriterKind.BRANCH_MERGE),
    "merge both": FaultWriter("both", lambda graph: graph.merge(BRANCH), WriterKind.BRANCH_MERGE),
    "apply schema": FaultWriter(
        "plain", lambda graph: graph.apply_schema(WIDER), WriterKind.SCHEMA_APPLY
    ),
    "ensure indices": FaultWriter(
        "indexed", lambda graph: graph.ensure_indices(), WriterKind.ENSURE_INDICES
    ),
    "optimize": FaultWriter("fragments", lambda graph: graph.optimize(), WriterKind.OPTIMIZE),
    "cleanup": FaultWriter("fragments", lambda graph: graph.cleanup(keep=1, confirm=True)),
}


def build(path: str, writer: str) -> None:
    """Make the graph that a writer starts from."""
    match WRITERS[writer].template:
        case "both":
            work.build_by_copy(path, "forked2")
            work.WRITERS["insert"](work.open_graph(path), 2)
        case "indexed":
            work.build_by_copy(path, "plain")
            work.open_graph(path).apply_schema(INDEXED)
        case template:
            work.build_by_copy(path, template)


def shown(path: str) -> object:
    """All that a reader sees."""
    graph = work.open_graph(path, mode="r")
    return graph.schema, work.rows_of(graph)


def write_durably(path: str, writer: str, durability: str = "power") -> str:
    """One write that waits for the disk; what it ended with, in a line."""
    try:
        WRITERS[writer].run(work.open_graph(path, durability=durability))
    except og.errors.OmnigraphError as error:
        return f"{type(error).__name__}: {error}"
    with suppress(OSError):  # a fault may come as late as this, after the write
        Path(f"{path}.acknowledged").mkdir()
    return "acknowledged"
