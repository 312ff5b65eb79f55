"""Streaming: each micro-batch of a Structured Streaming query becomes one commit, exactly once.

Spark repeats a batch when it cannot know whether it was written. The commit names its stream and
batch, in the same publish that shows the rows, so a repeated batch is recognised and left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.graph import Graph

STREAM = "stream"
BATCH = "stream_batch"


def sink(
    graph: Graph,
    *,
    stream: str,
    type: str | None = None,  # noqa: A002 — the word of the API
    edge: str | None = None,
    mode: str = "append",
    branch: str = "main",
    **options: Any,
) -> Callable[[Any, int], None]:
    """A function for `writeStream.foreachBatch`. `stream` names the stream for good."""

    def write(frame: Any, batch_id: int) -> None:
        if batch_id <= last_batch(graph, stream, branch):
            return
        graph.load_dataframe(
            frame,
            type=type,
            edge=edge,
            mode=mode,
            branch=branch,
            properties={STREAM: stream, BATCH: str(batch_id)},
            **options,
        )

    return write


def last_batch(graph: Graph, stream: str, branch: str = "main") -> int:
    """The newest batch of a stream that a branch holds; -1 when it holds none."""
    for commit in graph.commits(branch):
        if commit.properties.get(STREAM) == stream:
            return int(commit.properties[BATCH])
    return -1
