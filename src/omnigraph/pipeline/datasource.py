"""Data source `omnigraph`: one type of a graph as a Spark DataFrame, and a DataFrame as a load.

    spark.read.format("omnigraph").options(path=uri, type="Person").load()
    frame.write.format("omnigraph").options(path=uri, type="Person").mode("append").save()

A read is pinned to one snapshot: of `branch`, or of `commit`, `version` or `at`. Its partitions are
groups of fragments; filters that mean the same in Lance are left to Lance, and a narrower schema
given by `.schema(...)` reads only those columns. Options `storage.*` go to the store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.errors import BadRequestError
from omnigraph.pipeline.frames import ParquetParts, frames_directory, table_key, write_batches
from omnigraph.pipeline.scan import Pin, open_pinned
from omnigraph.storage.loose import ADDRESS
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    Not,
    Predicate,
    TextStartsWith,
)
from omnigraph.storage.predicates import IsNull as NullPredicate

if TYPE_CHECKING:
    from omnigraph.graph import Graph

FORMAT = "omnigraph"
FRAGMENTS_PER_PARTITION = 8
_STORAGE_PREFIX = "storage."
_COMPARISONS = {
    EqualTo: CompareOp.EQ,
    GreaterThan: CompareOp.GT,
    GreaterThanOrEqual: CompareOp.GE,
    LessThan: CompareOp.LT,
    LessThanOrEqual: CompareOp.LE,
}


Opener: TypeAlias = "Callable[..., Graph]"


def register(spark: Any, opener: Opener) -> None:
    """Make the data source known to a session. `opener` is `omnigraph.open`.

    Spark builds a source anew in other processes, from its class and its options alone; so the
    class itself carries the way to open a graph.
    """
    source = type("OmnigraphSource", (GraphSource,), {"opener": staticmethod(opener)})
    spark.dataSource.register(source)
    # Without this a reader that can take filters is refused by Spark.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


class GraphSource(DataSource):
    """One type of one graph."""

    opener: ClassVar[Opener]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(spark_schema(_Target.of(self.options, self.opener).table_schema()))

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(_Target.of(self.options, self.opener), schema.names)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return _Writer(_Target.of(self.options, self.opener), overwrite)


@dataclass(frozen=True, slots=True)
class _Target:
    """What the options of a data source name."""

    path: str
    type_name: str
    selection: tuple[tuple[str, str], ...]
    load_mode: str | None
    storage_options: tuple[tuple[str, str], ...]
    opener: Opener

    @classmethod
    def of(cls, options: Any, opener: Opener) -> _Target:
        path = options.get("path")
        type_name = options.get("type") or options.get("edge")
        if not path or not type_name:
            raise BadRequestError(
                "the data source needs the options `path`, a graph, and `type`, a node or edge type"
            )
        selection = {
            name: options[name]
            for name in ("branch", "commit", "version", "at")
            if options.get(name)
        }
        storage = {
            name.removeprefix(_STORAGE_PREFIX): options[name]
            for name in options
            if name.startswith(_STORAGE_PREFIX)
        }
        mode = options.get("load_mode")
        return cls(path, type_name, tuple(selection.items()), mode, tuple(storage.items()), opener)

    def open(self, mode: Any) -> Graph:
        return self.opener(self.path, mode=mode, storage_options=dict(self.storage_options))

    def scan(self, graph: Graph) -> Any:
        selection: dict[str, Any] = dict(self.selection)
        if "version" in selection:
            selection["version"] = int(selection["version"])
        return graph.scan(self.type_name, **selection)

    def table_schema(self) -> pa.Schema:
        with self.open("r") as graph:
            schema: pa.Schema = self.scan(graph).schema
        return schema


@dataclass
class _Fragments(InputPartition):
    """Some fragments of the pinned version of the table."""

    ids: list[int]


class _Reader(DataSourceReader):
    def __init__(self, target: _Target, names: Sequence[str]) -> None:
        self._target = target
        self._names = list(names)
        self._predicates: list[Predicate] = []
        with target.open("r") as graph:
            scan = target.scan(graph)
            # From here on the very same version, whatever happens to the branch.
            self._pin: Pin = scan.pin()
            self._schema: pa.Schema = scan.schema
        unknown = [name for name in self._names if name not in self._schema.names]
        if unknown:
            raise BadRequestError(
                f"there is no column '{unknown[0]}' — the table has {self._schema.names}"
            )

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 — Spark's name
        for each in filters:
            predicate = _predicate(each, self._schema)
            if predicate is None:
                yield each
            else:
                self._predicates.append(predicate)

    def partitions(self) -> Sequence[InputPartition]:
        tables, handle = open_pinned(self._pin)
        ids = tables.fragment_ids(handle)
        groups = range(0, len(ids), FRAGMENTS_PER_PARTITION)
        return [_Fragments(ids[at : at + FRAGMENTS_PER_PARTITION]) for at in groups]

    def read(self, partition: Any) -> Iterator[Any]:
        if partition is None:
            return
        tables, handle = open_pinned(self._pin)
        predicate = And(tuple(self._predicates)) if self._predicates else None
        wanted = spark_schema(pa.schema([self._schema.field(name) for name in self._names]))
        for batch in tables.scan_addresses(handle, self._names, predicate, partition.ids):
            yield _spark_batch(batch.drop_columns([ADDRESS]), wanted)


@dataclass
class _Part(WriterCommitMessage):
    """One file that a task has written, None when its partition had no rows."""

    path: str | None


class _Writer(DataSourceArrowWriter):
    """Executors write files; when all are there, one process loads them as one commit."""

    def __init__(self, target: _Target, overwrite: bool) -> None:
        self._target = target
        self._mode = target.load_mode or ("overwrite" if overwrite else "append")
        with target.open("r") as graph:
            self._key = table_key(graph.catalog, target.type_name)
            self._directory = frames_directory(graph.uri)
        os.makedirs(self._directory, exist_ok=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        return _Part(write_batches(iterator, self._directory, number))

    def commit(self, messages: list[Any]) -> None:
        paths = sorted(each.path for each in messages if each is not None and each.path)
        branch = dict(self._target.selection).get("branch", "main")
        try:
            with self._target.open("rw") as graph:
                parts = ParquetParts(tuple(paths))
                graph.load_dataframes(
                    {self._key: parts}, mode=self._mode, branch=branch, engine="inline"
                )
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def abort(self, messages: list[Any]) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as Spark can hold it: no unsigned integers, no milliseconds in dates."""
    return pa.schema(
        [pa.field(each.name, _spark_type(each.type), nullable=each.nullable) for each in schema]
    )


def _spark_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_uint32(type_):
        return pa.int64()
    if pa.types.is_uint64(type_):
        return pa.decimal128(20, 0)
    if pa.types.is_date64(type_):
        return pa.timestamp("us", tz="UTC")
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(_spark_type(type_.value_type))
    return type_


def _spark_batch(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    columns = [_spark_column(batch.column(each.name), each.type) for each in wanted]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _spark_column(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_date64(column.type):
        # Date64 counts milliseconds; a cast would cut the time of day off.
        return pc.cast(column.view(pa.timestamp("ms", tz="UTC")), type_)
    return column if column.type == type_ else pc.cast(column, type_)


def _predicate(given: Filter, schema: pa.Schema) -> Predicate | None:
    """The same condition for Lance, or None where Spark has to check it itself."""
    attribute: tuple[str, ...] = getattr(given, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in schema.names:
        return None
    name = attribute[0]
    type_ = schema.field(name).type
    # Spark and Lance agree on these; floats and instants have their own ideas of order.
    if not (pa.types.is_string(type_) or pa.types.is_integer(type_) or pa.types.is_date32(type_)):
        return NullPredicate(name) if isinstance(given, IsNull) else None
    match given:
        case IsNull():
            return NullPredicate(name)
        case IsNotNull():
            return Not(NullPredicate(name))
        case StringStartsWith():
            return TextStartsWith(name, given.value) if pa.types.is_string(type_) else None
        case In():
            return IsIn(name, pa.array([each for each in given.value if each is not None], type_))
        case EqualTo() | GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual():
            try:
                value = pa.scalar(given.value, type_)
            except (pa.ArrowException, OverflowError, TypeError):
                return None
            return Compare(name, _COMPARISONS[type(given)], value)
        case _:
            return None
