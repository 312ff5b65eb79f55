"""Canonical strings, the ids made of them, and generated ids."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ulid import ULID

from omnigraph.catalog.layout import arrow_schema
from omnigraph.errors import ConstraintError
from omnigraph.types import PropertyType
from omnigraph.write.convert import columns_from_records
from omnigraph.write.keys import canonical_strings, edge_rows, json_arrays, make_ids, node_rows
from omnigraph.write.ulids import new_ulids
from tests.write.shapes import (
    BLOB,
    BOOL,
    DATE,
    DATETIME,
    F32,
    F64,
    I32,
    I64,
    STRING,
    U64,
    edge,
    list_of,
    node,
    vector,
)


def _column(type_: PropertyType, values: list[Any]) -> pa.Array:
    return pa.array(values, type_.arrow_type())


@pytest.mark.parametrize(
    ("type_", "value", "spelled"),
    [
        (STRING, "as it is", "as it is"),
        (BOOL, True, "true"),
        (BOOL, False, "false"),
        (I32, -7, "-7"),
        (U64, 2**64 - 1, "18446744073709551615"),
        (DATE, 20557, "20557"),
        (DATETIME, 1776168000123, "1776168000123"),
        (F64, 1.0, "1"),
        (F64, 0.1, "0.1"),
        (F64, -0.0, "0"),
        (F64, 0.0, "0"),
        (F64, 1e22, "1e+22"),
        (F64, 1e-7, "1e-7"),
        (F32, 0.1, "0.1"),
        (F32, -0.0, "0"),
    ],
    ids=str,
)
def test_a_scalar_has_one_canonical_spelling(
    type_: PropertyType, value: object, spelled: str
) -> None:
    spelled_column = canonical_strings(_column(type_, [value, None]), type_)

    assert spelled_column.to_pylist() == [spelled, None]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_a_double_is_read_back_from_its_spelling(values: list[float]) -> None:
    spelled = canonical_strings(_column(F64, values), F64).to_pylist()

    assert [float(text) for text in spelled] == values


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_a_single_is_spelled_at_its_own_width(values: list[float]) -> None:
    spelled = canonical_strings(_column(F32, values), F32).to_pylist()

    assert [struct.unpack("f", struct.pack("f", float(text)))[0] for text in spelled] == values
    digits = [re.sub("e.*|[-.]", "", text).strip("0") for text in spelled]
    assert all(len(text) <= 9 for text in digits)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_has_no_spelling(value: float) -> None:
    with pytest.raises(ConstraintError, match="finite"):
        canonical_strings(_column(F64, [1.0, value]), F64)


@pytest.mark.parametrize("type_", [list_of(STRING), vector(2), BLOB], ids=str)
def test_a_type_without_a_spelling_is_refused(type_: PropertyType) -> None:
    with pytest.raises(ConstraintError, match="unsupported column type"):
        canonical_strings(pa.nulls(1, type_.arrow_type()), type_)


_HOSTILE = st.text(st.characters(codec="utf-8") | st.sampled_from('"\\,[]\x00\x1f\n\x7f'))


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(_HOSTILE, _HOSTILE), max_size=8))
def test_a_composite_id_is_compact_json_that_no_text_can_imitate(
    pairs: list[tuple[str, str]],
) -> None:
    members = [pa.array([pair[at] for pair in pairs], pa.utf8()) for at in (0, 1)]

    ids = json_arrays(members).to_pylist()

    assert [tuple(json.loads(text)) for text in ids] == pairs
    assert ids == [
        json.dumps(list(pair), ensure_ascii=False, separators=(",", ":")) for pair in pairs
    ]


def _ids_of(thing: Any, records: list[dict[str, object]]) -> Any:
    columns = columns_from_records(thing, records)
    assert not columns.bad
    return make_ids(thing, columns.table, columns.explicit_ids)


def test_the_key_makes_the_id() -> None:
    venue = node({"code": STRING, "year": I64}, key=("code", "year"))
    number = node({"n": I64}, key=("n",))

    assert _ids_of(venue, [{"code": "KDD", "year": 2024}]).ids.to_pylist() == ['["KDD","2024"]']
    assert _ids_of(number, [{"n": 7}, {"n": -1}]).ids.to_pylist() == ["7", "-1"]


@pytest.mark.parametrize(
    ("type_", "value", "given_id"),
    [
        (STRING, "a", "a"),
        (I64, 7, "007"),
        (F64, 1e10, "10000000000"),
        (BOOL, True, "true"),
        (DATE, "1970-01-02", "1970-01-02"),
        (DATE, "1970-01-02", "1"),
        (DATETIME, "1970-01-01T00:00:01Z", "1970-01-01T01:00:01+01:00"),
    ],
    ids=str,
)
def test_a_supplied_id_may_spell_the_key_another_way(
    type_: PropertyType, value: object, given_id: str
) -> None:
    made = _ids_of(node({"k": type_}, key=("k",)), [{"k": value, "id": given_id}])

    assert not made.bad


@pytest.mark.parametrize(
    ("type_", "value", "given_id"),
    [
        (STRING, "a", "A"),
        (STRING, "7", "07"),
        (I64, 7, "8"),
        (I64, 7, "seven"),
        (I64, 7, "9" * 5000),
        (BOOL, True, "yes"),
        (DATE, "1970-01-02", "soon"),
        (F64, 1.0, "nan"),
    ],
    ids=str,
)
def test_a_supplied_id_of_another_key_does_not_match(
    type_: PropertyType, value: object, given_id: str
) -> None:
    made = _ids_of(node({"k": type_}, key=("k",)), [{"k": value}, {"k": value, "id": given_id}])

    [bad] = made.bad
    assert bad.index == 1
    assert "does not match" in bad.reason


def test_a_composite_id_is_compared_member_by_member() -> None:
    venue = node({"code": STRING, "year": I64}, key=("code", "year"))
    given_ids = ['["KDD","2024"]', '[ "KDD", 2024 ]', '["KDD","2025"]', '["KDD"]', "KDD", "{}"]
    records: list[dict[str, object]] = [
        {"code": "KDD", "year": 2024, "id": given_id} for given_id in given_ids
    ]

    assert [bad.index for bad in _ids_of(venue, records).bad] == [2, 3, 4, 5]


def test_an_unkeyed_node_keeps_its_id_or_gets_a_fresh_one() -> None:
    made = _ids_of(node({}), [{"id": "mine"}, {}, {}])

    assert made.ids[0].as_py() == "mine"
    fresh = made.ids.to_pylist()[1:]
    assert fresh == sorted(set(fresh))
    assert all(str(ULID.from_str(text)) == text for text in fresh)


def test_fresh_ids_are_distinct_rising_and_of_now() -> None:
    first, second = new_ulids(100_000).to_pylist(), new_ulids(100_000).to_pylist()

    assert first == sorted(first)
    assert len({*first, *second}) == 200_000
    assert abs(ULID.from_str(first[0]).timestamp - ULID().timestamp) < 60
    assert new_ulids(0).to_pylist() == []


def test_edge_ids_are_kept_where_given() -> None:
    ids = _ids_of(edge({}), [{"id": "a"}, {}, {"id": "c"}]).ids

    assert (ids[0].as_py(), ids[2].as_py()) == ("a", "c")
    assert len(ids[1].as_py()) == 26


def test_the_key_of_an_edge_begins_with_its_ends() -> None:
    """A quote in an end, a missing end, and ids that spell the key or another one."""
    pays = edge({"day": DATE}, key=("src", "dst", "day"))
    given: list[dict[str, object]] = [
        {"day": 1},
        {"day": 2, "id": '["a", "b", "1970-01-03"]'},
        {"day": 3, "id": "mine"},
        {"day": 4},
    ]
    ends = pa.array(['a"', "a", "a", None]), pa.array(["b", "b", "b", "b"])

    made = edge_rows(pays, columns_from_records(pays, given), *ends)

    assert made.table["id"].to_pylist() == [
        '["a\\"","b","1"]',
        '["a","b","2"]',
        '["a","b","3"]',
        None,
    ]
    assert [(bad.index, bad.property) for bad in made.bad] == [(2, "id"), (3, "from")]


def test_rows_have_the_stored_schema() -> None:
    author = node({"slug": STRING, "age": I32}, key=("slug",))
    wrote = edge({"since": DATE})
    nodes = columns_from_records(author, [{"slug": "ada", "age": 3}])
    edges = columns_from_records(wrote, [{"since": 1}, {"since": 2}])

    node_table = node_rows(author, nodes)
    edge_table = edge_rows(wrote, edges, pa.array(["ada", None]), pa.array(["p", "p"]))

    assert node_table.table.schema == arrow_schema(author)
    assert node_table.table.to_pylist() == [{"id": "ada", "age": 3, "slug": "ada"}]
    assert edge_table.table.schema == arrow_schema(wrote)
    assert [(bad.index, bad.property) for bad in edge_table.bad] == [(1, "from")]
