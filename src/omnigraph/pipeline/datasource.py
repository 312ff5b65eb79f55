"""Data source `omnigraph`: one type of a graph as a Spark DataFrame, and a DataFrame as a load.

    spark.read.format("omnigraph").options(path=uri, type="Person").load()
    frame.write.format("omnigraph").options(path=uri, type="Person").mode("append").save()
    stream.writeStream.format("omnigraph").options(path=uri, type="Person", stream="hires").start()

A read is pinned to one snapshot: of `branch`, or of `commit`, `version` or `at`, in the schema of
that commit, or of today with `schema` as `current`. Its partitions are about equally large, and a
narrower schema given by `.schema(...)` reads only those columns. The option `filters` is JSON,
[[column, operator, value], ...], and leaves the other rows in the store. Options `storage.*` go to
the store.

Spark's own push-down of filters is not used. Spark 4.3 keeps what one query pushed down for every
later query over the same frame, which then misses rows (docs/decisions/0015).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.pipeline.datasource_errors import translate_errors
from omnigraph.pipeline.datasource_write import BatchWriter, StreamWriter
from omnigraph.pipeline.model import LoadMode
from omnigraph.pipeline.scan import Part, Pin, cut_parts, open_pinned, require_columns
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    Not,
    Predicate,
    TextStartsWith,
)
from omnigraph.storage.projection import ROW_ADDRESS

if TYPE_CHECKING:
    from omnigraph.graph import Graph

FORMAT = "omnigraph"
_STORAGE_PREFIX = "storage."
_SELECTION = ("branch", "commit", "version", "at", "schema")
_OPTIONS = ("path", "type", "edge", "load_mode", "filters", "stream", *_SELECTION)
_STREAM_OPTIONS = ("checkpointlocation", "queryname")
"""What Spark hands on of the options of a stream."""
_COMPARISONS = {
    "=": CompareOp.EQ,
    ">": CompareOp.GT,
    ">=": CompareOp.GE,
    "<": CompareOp.LT,
    "<=": CompareOp.LE,
}
_OPERATORS = (*_COMPARISONS, "in", "starts with", "is null", "is not null")


Opener: TypeAlias = "Callable[..., Graph]"


def register(spark: Any, opener: Opener) -> None:
    """Make the data source known to a session. `opener` is `omnigraph.open`.

    Spark builds a source anew in other processes, from its class and its options alone; so the
    class itself carries the function that opens a graph.
    """
    source = type("OmnigraphSource", (GraphSource,), {"opener": staticmethod(opener)})
    spark.dataSource.register(source)
    translate_errors(FORMAT)


class GraphSource(DataSource):
    """One type of one graph."""

    opener: ClassVar[Opener]

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(spark_schema(Target.of(self.options, self.opener).table_schema()))

    def reader(self, schema: StructType) -> DataSourceReader:
        nullable = {each.name: each.nullable for each in schema.fields}
        return _Reader(Target.of(self.options, self.opener), nullable)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return BatchWriter(Target.of(self.options, self.opener), overwrite)

    def streamWriter(  # noqa: N802, the name in Spark
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        return StreamWriter(Target.of(self.options, self.opener), overwrite)


@dataclass(frozen=True, slots=True)
class Target:
    """What the options of a data source name."""

    path: str
    type_name: str
    selection: tuple[tuple[str, str], ...]
    load_mode: str | None
    filters: str | None
    stream: str | None
    storage_options: tuple[tuple[str, str], ...]
    opener: Opener

    @classmethod
    def of(cls, options: Any, opener: Opener) -> Target:
        _check_options(options)
        storage = {
            name.removeprefix(_STORAGE_PREFIX): options[name]
            for name in options
            if name.startswith(_STORAGE_PREFIX)
        }
        path = options.get("path")
        type_name = options.get("type") or options.get("edge")
        if not path:
            raise BadRequestError("the data source needs the option `path`, which names a graph")
        if not type_name:
            raise BadRequestError(_missing_type(opener(path, mode="r", storage_options=storage)))
        selection = {name: options[name] for name in _SELECTION if options.get(name)}
        return cls(
            path,
            type_name,
            tuple(selection.items()),
            options.get("load_mode"),
            options.get("filters"),
            options.get("stream"),
            tuple(storage.items()),
            opener,
        )

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


def _missing_type(graph: Graph) -> str:
    with graph:
        known = ", ".join([*graph.catalog.nodes, *graph.catalog.edges])
    return (
        f"the data source reads one type, named by the option `type`: the graph has {known} — "
        "`omnigraph.spark.register(spark, graph)` makes a view of each"
    )


def _check_options(options: Any) -> None:
    """Refuse an option that means nothing here.

    Raises:
        BadRequestError: It has an unknown name, or a value that it cannot have.
    """
    for name in options:
        is_known = name.lower() in (*_OPTIONS, *_STREAM_OPTIONS)
        if not is_known and not name.lower().startswith(_STORAGE_PREFIX):
            problem = f"the data source has no option `{name}`"
            raise BadRequestError(with_suggestion(problem, name.lower(), _OPTIONS))
    version, mode = options.get("version"), options.get("load_mode")
    if version and not version.isdecimal():
        raise BadRequestError(f"the option `version` is '{version}', expected a whole number")
    if mode and mode not in set(LoadMode):
        known = ", ".join(f"'{each}'" for each in LoadMode)
        raise BadRequestError(f"the option `load_mode` is '{mode}', expected one of {known}")


@dataclass()
class _Rows(InputPartition):
    """Some rows of the pinned version of the table."""

    part: Part


class _Reader(DataSourceReader):
    """Reads the columns named in `nullable`, each with the nullability that Spark expects."""

    def __init__(self, target: Target, nullable: Mapping[str, bool]) -> None:
        self._target = target
        self._nullable = dict(nullable)
        self._names = list(nullable)
        with target.open("r") as graph:
            scan = target.scan(graph)
            # From here on this version is read, whatever is written to the branch.
            self._pin: Pin = scan.pin()
            self._schema: pa.Schema = scan.schema
        self._predicates = read_filters(target.filters, self._schema)
        require_columns(self._names, self._schema)

    def partitions(self) -> Sequence[InputPartition]:
        tables, handle = open_pinned(self._pin)
        return [_Rows(part) for part in cut_parts(tables, handle)]

    def read(self, partition: Any) -> Iterator[Any]:
        if partition is None:
            return
        tables, handle = open_pinned(self._pin)
        predicate = And(tuple(self._predicates)) if self._predicates else None
        fields = [
            self._schema.field(name).with_nullable(nullable)
            for name, nullable in self._nullable.items()
        ]
        wanted = spark_schema(pa.schema(fields))
        part: Part = partition.part
        for batch in tables.reads.scan_addresses(
            handle, self._names, predicate, part.fragment_ids, part.places
        ):
            yield spark_batch(batch.drop_columns([ROW_ADDRESS]), wanted)


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
    if pa.types.is_struct(type_):
        return pa.struct([(each.name, _spark_type(each.type)) for each in type_])
    return type_


def spark_batch(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    columns = [_spark_column(batch.column(each.name), each.type) for each in wanted]
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _spark_column(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if pa.types.is_date64(column.type):
        # Date64 counts milliseconds; a cast would cut the time of day off.
        return pc.cast(column.view(pa.timestamp("ms", tz="UTC")), type_)
    if pa.types.is_struct(type_):
        parts = [_spark_column(column.field(n), each.type) for n, each in enumerate(type_)]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=column.is_null())
    if pa.types.is_list(column.type) and column.type != type_:
        values = _spark_column(column.values, type_.value_type)
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(column.offsets, values, mask=mask)
    return column if column.type == type_ else pc.cast(column, type_)


def read_filters(text: str | None, schema: pa.Schema) -> list[Predicate]:
    """The conditions of the option `filters`; a row has to meet them all.

    Raises:
        BadRequestError: They are not conditions, or not on columns of this table.
    """
    if text is None:
        return []
    try:
        given = json.loads(text)
        conditions = [(str(name), str(sign), *rest) for name, sign, *rest in given]
    except (ValueError, TypeError):
        raise BadRequestError(
            f"the option `filters` is {text!r}, expected JSON as in "
            '[["age", ">=", 18], ["name", "is not null"]]'
        ) from None
    return [_predicate(name, sign, rest, schema) for name, sign, *rest in conditions]


def _predicate(name: str, sign: str, rest: list[Any], schema: pa.Schema) -> Predicate:
    require_columns([name], schema)
    type_ = schema.field(name).type
    try:
        match sign, rest:
            case "is null", []:
                return IsNull(name)
            case "is not null", []:
                return Not(IsNull(name))
            case "starts with", [str(value)] if pa.types.is_string(type_):
                return TextStartsWith(name, value)
            case "in", [list(values)]:
                return IsIn(name, pa.array([_value(each, type_) for each in values], type_))
            case _, [value] if sign in _COMPARISONS:
                return Compare(name, _COMPARISONS[sign], pa.scalar(_value(value, type_), type_))
            case _:
                pass
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise BadRequestError(
        f"the filter on '{name}' does not fit a column of {type_} — compare texts, integers and "
        f"dates (as in '2024-02-29') with one of {', '.join(_OPERATORS)}"
    )


def _value(given: Any, type_: pa.DataType) -> Any:
    """A value for a column of texts, integers or dates: what JSON and Lance order alike.

    Raises:
        TypeError: It is of another type.
    """
    if pa.types.is_string(type_) and isinstance(given, str):
        return given
    if pa.types.is_integer(type_) and isinstance(given, int) and not isinstance(given, bool):
        return given
    if pa.types.is_date32(type_) and isinstance(given, str):
        return date.fromisoformat(given)
    raise TypeError(given)
