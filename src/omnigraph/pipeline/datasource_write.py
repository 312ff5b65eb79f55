"""Writing to the data source: executors write files; when all are there, one process loads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.pipeline.frames import ParquetParts, fresh_spool, partition_number, table_key
from omnigraph.pipeline.spool import Spool
from omnigraph.pipeline.streaming import BATCH, STREAM, last_batch

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.pipeline.datasource import Target


@dataclass()
class _Part(WriterCommitMessage):
    """One file that a task has written to a spool, None when its partition had no rows."""

    path: str | None
    spool: Spool


class _Files:
    """The files of one write, and the load of them."""

    def __init__(self, target: Target, overwrite: bool) -> None:
        self.target = target
        self.branch = dict(target.selection).get("branch", "main")
        self._mode = target.load_mode or ("overwrite" if overwrite else "append")
        with target.open("r") as graph:
            self._key = table_key(graph.branch_catalog(self.branch), target.type_name)
            self._spool = fresh_spool(graph.uri, dict(target.storage_options))

    def write(self, batches: Iterator[pa.RecordBatch]) -> _Part:
        self._spool.make()
        return _Part(self._spool.write(batches, partition_number()), self._spool)

    def load(
        self, graph: Graph, messages: Sequence[Any], properties: Mapping[str, str] | None = None
    ) -> None:
        paths = sorted(each.path for each in messages if each is not None and each.path)
        graph.load_dataframes(
            {self._key: ParquetParts(tuple(paths))},
            mode=self._mode,
            branch=self.branch,
            engine="inline",
            properties=properties,
        )

    def remove(self, messages: Sequence[Any]) -> None:
        """Remove the files. Spark commits a stream by another writer than the one that wrote."""
        written = {each.spool.uri: each.spool for each in messages if each is not None}
        for spool in [self._spool, *written.values()]:
            spool.remove()


class BatchWriter(DataSourceArrowWriter):
    """Writes a frame as one commit."""

    def __init__(self, target: Target, overwrite: bool) -> None:
        self._files = _Files(target, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._files.write(iterator)

    def commit(self, messages: list[Any]) -> None:
        try:
            with self._files.target.open("rw") as graph:
                self._files.load(graph, messages)
        finally:
            self._files.remove(messages)

    def abort(self, messages: list[Any]) -> None:
        self._files.remove(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a stream as one commit, which names the batch: one time only."""

    def __init__(self, target: Target, overwrite: bool) -> None:
        if not target.stream:
            raise BadRequestError(
                "writing a stream needs the option `stream`, a name that it has for good: a batch "
                "that Spark repeats is recognised by it"
            )
        self._stream = target.stream
        self._files = _Files(target, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._files.write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803, the name in Spark
        properties = {STREAM: self._stream, BATCH: str(batchId)}
        try:
            with self._files.target.open("rw") as graph:
                if batchId > last_batch(graph, self._stream, self._files.branch):
                    self._files.load(graph, messages, properties)
        finally:
            self._files.remove(messages)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
        self._files.remove(messages)
