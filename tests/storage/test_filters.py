"""Filter text and mask keep the same rows, whatever the values are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import BadRequestError
from omnigraph.storage import filters, masks
from omnigraph.storage.counters import counting
from omnigraph.storage.filters import is_pushable, to_lance
from omnigraph.storage.handles import IndexKind, IndexSpec, TableHandle
from omnigraph.storage.location import graph_root
from omnigraph.storage.masks import PreparedMask, to_mask
from omnigraph.storage.predicates import (
    And,
    Compare,
    CompareOp,
    IsIn,
    IsNull,
    ListContains,
    Not,
    Or,
    Predicate,
    TextContains,
    TextStartsWith,
)
from omnigraph.storage.tables import TableStorage
from tests.depth import depth, sample

ROWS = 24
TEXTS = [
    "",
    "'",
    "''",
    "\\",
    "\\'",
    "a\0b",
    "a\nb",
    "`",
    '"',
    "%",
    "_",
    "--",
    "é",
    "e\u0301",
    "😀",
    "a",
]
SINGLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 1.0, 2.0**24, 1e-45, 3.4028234663852886e38]
DOUBLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, 5e-324, 1.7976931348623157e308, 2.0**53]

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.utf8(), TEXTS),
    "Text": (pa.utf8(), ["a", "A", ""]),
    "flag": (pa.bool_(), [True, False]),
    "i32": (pa.int32(), [-(2**31), -(2**31) + 1, -1, 0, 1, 2, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -(2**63) + 1, -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1]),
    "u32": (pa.uint32(), [0, 1, 2, 2**32 - 1]),
    "u64": (pa.uint64(), [0, 1, 2, 2**53 + 1, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), SINGLES),
    "f64": (pa.float64(), DOUBLES),
    "day": (pa.date32(), [-(2**31), -1, 0, 1, 19_000, 2**31 - 1]),
    "moment": (pa.date64(), [-86_400_001, -1, 0, 1, 86_400_000, 86_399_999, 10**14, -(10**14)]),
}
LISTS = {f"{name}_list": values for name, values in VALUES.items()}
NUMBERS = ["i32", "i64", "u32", "u64", "f32", "f64"]
DATES = ["day", "moment"]


def array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """Dates are given as their ticks: Python's own dates do not reach as far."""
    element = data_type.value_type if pa.types.is_list(data_type) else data_type
    if not pa.types.is_date(element):
        return pa.array(values, data_type)
    ticks = pa.int32() if pa.types.is_date32(element) else pa.int64()
    return pa.array(values, pa.list_(ticks) if element != data_type else ticks).cast(data_type)


def scalar(value: Any, data_type: pa.DataType) -> pa.Scalar:
    return array([value], data_type)[0]


def edge_rows() -> pa.Table:
    """Every edge value of every type, with nulls and lists of all shapes between them."""
    columns = {"id": pa.array([str(number) for number in range(ROWS)])}
    for name, (data_type, values) in VALUES.items():
        cells = [None if row % 7 == 6 else values[row % len(values)] for row in range(ROWS)]
        columns[name] = array(cells, data_type)
    for name, (data_type, values) in LISTS.items():
        lists = [_cell(values, row) for row in range(ROWS)]
        columns[name] = array(lists, pa.list_(data_type))
    fields = [
        pa.field(name, column.type, nullable=name != "id") for name, column in columns.items()
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _cell(values: list[Any], row: int) -> list[Any] | None:
    if row % 9 == 8:
        return None
    return [values[row % len(values)], None, values[(row + 1) % len(values)]][: row % 4]


TABLE = edge_rows()
SCHEMA = TABLE.schema


@pytest.fixture(scope="module", params=[False, True], ids=["scanned", "indexed"])
def table_on_disk(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TableStorage, TableHandle]:
    """The edge rows in a table, once without and once with a BTREE on every column."""
    root = graph_root(str(tmp_path_factory.mktemp("edges")))
    storage = TableStorage(root, durability="process")
    location = root.table("nodes/edges")
    storage.create_table(location, SCHEMA)
    staged = storage.rows.stage_append(storage.open_at(location, 1), TABLE)
    handle = storage.open_at(location, storage.commit_staged(staged).version)
    if request.param:
        specs = [IndexSpec(name, IndexKind.BTREE) for name in VALUES]
        built = storage.indexes.stage_create(handle, specs).transaction
        assert built is not None
        handle = storage.open_at(location, storage.commit_staged(built).version)
    return storage, handle


def sources(column: str) -> list[str]:
    """The types of value a column may be compared with."""
    families = [family for family in (NUMBERS, DATES) if column in family]
    return families[0] if families else [column]


def all_leaves() -> Iterator[Predicate]:
    """Every column against every edge value of every type it may meet."""
    for column in VALUES:
        for source in sources(column):
            data_type, values = VALUES[source]
            for value in [*values, None]:
                for op in CompareOp:
                    yield Compare(column, op, scalar(value, data_type))
                yield IsIn(column, array([value, values[0]], data_type))
                yield ListContains(f"{column}_list", scalar(value, data_type))
        yield IsNull(column)
    for text in TEXTS:
        yield TextContains("text", text)
        yield TextStartsWith("text", text)


LEAVES = list(all_leaves())
PREDICATES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=6,
)


def by_mask(predicate: Predicate) -> list[str]:
    found: list[str] = TABLE.filter(to_mask(predicate, TABLE)).column("id").to_pylist()
    return found


def by_scan(table_on_disk: tuple[TableStorage, TableHandle], predicate: Predicate) -> list[str]:
    storage, handle = table_on_disk
    found: list[str] = storage.reads.scan(handle, ["id"], predicate).column("id").to_pylist()
    return found


@settings(
    max_examples=depth(50, 1_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(predicate=PREDICATES)
@example(predicate=Not(And((IsIn("i64", pa.array([0])), Not(IsIn("i64", pa.array([0])))))))
@example(predicate=Not(Not(Not(And((IsIn("i64", pa.array([0])), IsIn("i64", pa.array([1]))))))))
def test_filter_text_and_mask_keep_the_same_rows(
    table_on_disk: tuple[TableStorage, TableHandle], predicate: Predicate
) -> None:
    """Over every scalar type, hostile strings, NaN, infinities, nulls and all of logic."""
    assert by_scan(table_on_disk, predicate) == by_mask(predicate), to_lance(predicate, SCHEMA)


@pytest.mark.parametrize("column", ["f32", "f64"])
def test_floats_have_one_total_order(
    table_on_disk: tuple[TableStorage, TableHandle], column: str
) -> None:
    """NaN equals itself and is the greatest, and -0.0 is 0.0: here as in Lance."""
    values = [math.nan, math.inf, -math.inf, 0.0, -0.0]

    for value in values:
        for op in CompareOp:
            predicate = Compare(column, op, pa.scalar(value))
            assert by_scan(table_on_disk, predicate) == by_mask(predicate), to_lance(
                predicate, SCHEMA
            )
    same = Compare(column, CompareOp.EQ, pa.scalar(math.nan))
    above = Compare(column, CompareOp.GT, pa.scalar(math.inf))
    assert by_mask(same) == by_mask(above) != []


@pytest.mark.slow
def test_every_column_agrees_on_every_edge_value(
    table_on_disk: tuple[TableStorage, TableHandle],
) -> None:
    """The same, without chance: all leaves (`make test`: every tenth), plain and negated."""
    wrong = [
        to_lance(predicate, SCHEMA)
        for leaf in sample(LEAVES, 10)
        for predicate in (leaf, Not(leaf))
        if by_scan(table_on_disk, predicate) != by_mask(predicate)
    ]

    assert wrong == []


@pytest.mark.parametrize(
    "leaf", [leaf for leaf in LEAVES if not isinstance(leaf, ListContains)][::41]
)
def test_what_looks_pushable_is_pushed(leaf: Predicate) -> None:
    """Otherwise the tests above would compare the mask with itself."""
    assert is_pushable(leaf, SCHEMA)


def numbers(*values: float | int | None, data_type: pa.DataType) -> pa.Table:
    return pa.table({"n": pa.array(values, data_type)})


def keep_values(predicate: Predicate, table: pa.Table) -> list[Any]:
    found: list[Any] = table.filter(to_mask(predicate, table)).column(0).to_pylist()
    return found


def test_an_integer_column_never_equals_a_fraction() -> None:
    table = numbers(2, 3, None, data_type=pa.int32())

    assert keep_values(Compare("n", CompareOp.EQ, pa.scalar(2.7)), table) == []
    assert keep_values(Compare("n", CompareOp.NE, pa.scalar(2.7)), table) == [2, 3]
    assert keep_values(Compare("n", CompareOp.LT, pa.scalar(2.7)), table) == [2]
    assert keep_values(Compare("n", CompareOp.GE, pa.scalar(2.7)), table) == [3]


def test_an_unsigned_column_meets_a_negative_number_by_value() -> None:
    table = numbers(0, 2**64 - 1, data_type=pa.uint64())

    assert keep_values(Compare("n", CompareOp.GT, pa.scalar(-1)), table) == [0, 2**64 - 1]
    assert keep_values(Compare("n", CompareOp.LT, pa.scalar(-1)), table) == []


@pytest.mark.parametrize("wanted", [pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
@pytest.mark.parametrize("given_as", [pa.int64(), pa.uint64(), pa.float64()])
def test_whole_numbers_in_a_list_meet_a_column_by_value(
    wanted: pa.DataType, given_as: pa.DataType
) -> None:
    """Those that its type does not have equal nothing: none wraps around."""
    values = [0, 7, None, 2**31, 2**32 + 7, 2**53]
    extremes = {pa.int64(): [-1, -(2**63)], pa.uint64(): [2**64 - 1]}.get(given_as, [])
    least, most = (-(2**31), 2**31 - 1) if wanted == pa.int32() else (0, 2**32 - 1)
    held = [0, 7, least, most]
    if wanted.bit_width == 64:
        held += [2**31, 2**53, *(each for each in extremes if each >= 0 or wanted == pa.int64())]
        held = [each for each in held if each < 2**63 or wanted == pa.uint64()]
    table = numbers(*held, data_type=wanted)

    found = keep_values(IsIn("n", pa.array([*values, *extremes], given_as)), table)

    assert found == [each for each in held if each in {*values, *extremes}]


def test_a_list_that_is_too_long_to_spell_is_compared_in_memory(
    table_on_disk: tuple[TableStorage, TableHandle], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = IsIn("i64", pa.array([0, 1, 2]))
    expected = by_scan(table_on_disk, few)
    monkeypatch.setattr(filters, "VALUES_MAX", 2)

    assert not is_pushable(few, SCHEMA)
    assert not is_pushable(Not(Or((few, IsNull("text")))), SCHEMA)
    assert by_scan(table_on_disk, few) == expected != []
    storage, handle = table_on_disk
    assert storage.reads.count_rows(handle, few) == len(expected)
    assert storage.reads.scan(handle, [], few, with_row_id=True).num_rows == len(expected)


def test_a_float_literal_is_rounded_to_the_width_of_its_column() -> None:
    table = numbers(0.1, math.inf, data_type=pa.float32())

    assert len(keep_values(Compare("n", CompareOp.EQ, pa.scalar(0.1)), table)) == 1
    assert keep_values(Compare("n", CompareOp.EQ, pa.scalar(1e300)), table) == []
    assert keep_values(Compare("n", CompareOp.GT, pa.scalar(1e300)), table) == [math.inf]


def test_a_large_integer_is_not_rounded_to_the_next_double() -> None:
    table = numbers(2.0**53, data_type=pa.float64())

    assert keep_values(Compare("n", CompareOp.EQ, pa.scalar(2**53 + 1)), table) == []
    assert keep_values(Compare("n", CompareOp.LT, pa.scalar(2**53 + 1)), table) == [2.0**53]


def test_a_null_is_unknown_also_under_not() -> None:
    table = numbers(1, None, data_type=pa.int64())

    assert keep_values(Not(Compare("n", CompareOp.EQ, pa.scalar(2))), table) == [1]
    assert keep_values(Not(Compare("n", CompareOp.EQ, pa.scalar(None, pa.int64()))), table) == []


def test_a_long_chain_is_pushed_as_a_shallow_tree(
    table_on_disk: tuple[TableStorage, TableHandle],
) -> None:
    """Lance parses a flat chain into a tree as deep as it is long, and refuses deep nesting."""
    either = Or(tuple(Compare("i64", CompareOp.EQ, pa.scalar(number)) for number in range(2_000)))

    assert is_pushable(either, SCHEMA)
    assert by_scan(table_on_disk, either) == by_mask(either)


def test_deep_nesting_is_not_pushed_and_still_right(
    table_on_disk: tuple[TableStorage, TableHandle],
) -> None:
    predicate: Predicate = Compare("i64", CompareOp.EQ, pa.scalar(1))
    for _ in range(60):
        predicate = Not(And((predicate, Not(IsNull("id")))))

    assert not is_pushable(predicate, SCHEMA)
    assert by_scan(table_on_disk, predicate) == by_mask(predicate)


def test_a_strange_column_name_is_not_pushed_and_still_right(tmp_path: Path) -> None:
    """Only plain names are spelled in filter text; the others are filtered in memory."""
    schema = pa.schema(
        [pa.field("id", pa.utf8(), nullable=False), pa.field("naïve column", pa.int64())]
    )
    root = graph_root(str(tmp_path))
    storage = TableStorage(root, durability="process")
    location = root.table("nodes/strange")
    storage.create_table(location, schema)
    rows = pa.table({"id": ["x", "y"], "naïve column": [1, 2]}, schema=schema)
    staged = storage.rows.stage_append(storage.open_at(location, 1), rows)
    handle = storage.open_at(location, storage.commit_staged(staged).version)
    predicate = Compare("naïve column", CompareOp.EQ, pa.scalar(2))

    assert not is_pushable(predicate, schema)
    assert storage.reads.scan(handle, ["id"], predicate).column("id").to_pylist() == ["y"]
    assert storage.reads.count_rows(handle, predicate) == 1
    assert storage.commit_staged(storage.rows.stage_delete(handle, predicate)).row_count == 1  # type: ignore[arg-type]


def test_an_unknown_column_is_refused() -> None:
    """Lance would resolve a name of another case without a word."""
    with pytest.raises(BadRequestError, match="TEXT"):
        to_lance(IsNull("TEXT"), SCHEMA)


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(BadRequestError, match="cannot meet"):
        to_lance(Compare("text", CompareOp.EQ, pa.scalar(1)), SCHEMA)


@pytest.mark.parametrize("column", VALUES)
def test_a_prepared_set_finds_what_arrow_finds(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN, both zeros, dates, flags and nulls; plain and negated."""
    monkeypatch.setattr(masks, "PREPARED_MIN", 1)
    data_type, values = VALUES[column]
    (batch,) = TABLE.combine_chunks().to_batches()
    lists = [values[:1], values[1:], values[::2], [*values, *values]]

    for each in lists:
        for predicate in (
            IsIn(column, array(each, data_type)),
            Not(IsIn(column, array(each, data_type))),
        ):
            kept = PreparedMask(predicate, SCHEMA).filter(batch).column("id").to_pylist()
            assert kept == by_mask(predicate)


@pytest.mark.parametrize("column", ["text", "i64"])
def test_a_list_too_long_to_push_is_prepared_once_per_scan(
    table_on_disk: tuple[TableStorage, TableHandle], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the batches are, as those of wide rows."""
    monkeypatch.setattr(filters, "VALUES_MAX", 1_000)
    storage, handle = table_on_disk
    data_type, values = VALUES[column]
    others: list[Any] = list(range(100, 1_100))
    others = others if column == "i64" else [f"{each} of many" for each in others]
    listed = IsIn(column, array([*values[:2], *others], data_type))
    assert not is_pushable(listed, SCHEMA)

    with counting() as counters:
        batches = list(storage.reads.scan_stream(handle, ["id"], listed, batch_rows=4))

    assert len(batches) == ROWS // 4
    assert counters.value_sets == 1
    found = [each for batch in batches for each in batch.column("id").to_pylist()]
    assert found == by_mask(listed) != []
