"""Result: the rows of a read that runs on Spark, brought here when they are first looked at."""

from __future__ import annotations

from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omnigraph.executor.result import QueryResult

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.pipeline.spark_query.execute import SparkAnswer


class SparkQueryResult(QueryResult):
    """A result whose rows are on Spark until they are asked for. `to_spark` never brings them."""

    _answer: SparkAnswer
    _lock: Lock
    _rows: pa.Table | None

    def __init__(self, answer: SparkAnswer, **facts: Any) -> None:
        for name, value in {**facts, "_answer": answer, "_rows": None, "_lock": Lock()}.items():
            object.__setattr__(self, name, value)

    @property
    def table(self) -> pa.Table:
        with self._lock:
            if self._rows is None:
                started = perf_counter()
                object.__setattr__(self, "_rows", self._answer.to_arrow())
                waited = 1_000 * (perf_counter() - started)
                object.__setattr__(self, "elapsed_ms", self.elapsed_ms + waited)
            return self._rows

    @property
    def columns(self) -> list[str]:
        return list(self._answer.schema.names)

    def to_spark(self) -> Any:
        return self._answer.to_spark()

    def __repr__(self) -> str:
        return f"<QueryResult {self.query_name} on Spark: {', '.join(self.columns)}>"
