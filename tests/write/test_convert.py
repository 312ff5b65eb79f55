"""What each type accepts, stores and refuses, through every door a value comes in by."""

from __future__ import annotations

import base64
import io
import json
import math
from datetime import date

import pyarrow as pa
import pyarrow.json
import pytest

from omnigraph.errors import ConstraintError
from omnigraph.types import PropertyType, Scalar
from omnigraph.write.bad_rows import excerpt
from omnigraph.write.convert import (
    Columns,
    columns_from_arrow,
    columns_from_records,
    json_fields,
    scalar_from_value,
)
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
    U32,
    U64,
    enum,
    list_of,
    node,
    optional,
    vector,
)

NOON_DAYS = (date(2026, 4, 14) - date(1970, 1, 1)).days
NOON_MS = NOON_DAYS * 86_400_000 + 12 * 3_600_000

ACCEPTED = [
    (STRING, "", ""),
    (STRING, "a\x00b'\"\\\n→𝄞", "a\x00b'\"\\\n→𝄞"),
    (enum("a", "b"), "a", "a"),
    (BOOL, True, True),
    (I32, -(2**31), -(2**31)),
    (I32, 2**31 - 1, 2**31 - 1),
    (I64, -(2**63), -(2**63)),
    (I64, 2**63 - 1, 2**63 - 1),
    (U32, 2**32 - 1, 2**32 - 1),
    (U64, 2**64 - 1, 2**64 - 1),
    (F32, 0.1, 0.10000000149011612),
    (F32, 3, 3.0),
    (F64, 0.1, 0.1),
    (F64, 2**60 + 1, float(2**60)),
    (F64, 10**300, 1e300),
    (DATE, "2026-04-14", NOON_DAYS),
    (DATE, -1, -1),
    (DATE, "0001-01-01", -719162),
    (DATE, "9999-12-31", 2932896),
    (DATETIME, "2026-04-14T12:00:00Z", NOON_MS),
    (DATETIME, "2026-04-14T14:30:00+02:30", NOON_MS),
    (DATETIME, "2026-04-14T12:00:00", NOON_MS),
    (DATETIME, "2026-04-14", NOON_DAYS * 86_400_000),
    (DATETIME, "2026-04-14T12:00:00.1239Z", NOON_MS + 123),
    (DATETIME, "1969-12-31T23:59:59.9999Z", -1),
    (DATETIME, NOON_MS + 1, NOON_MS + 1),
    (vector(3), [1, -2.5, 0.1], [1.0, -2.5, 0.10000000149011612]),
    (list_of(STRING), ["a", "b"], ["a", "b"]),
    (list_of(I32), [], []),
    (list_of(F64), [1, 2.5], [1.0, 2.5]),
    (list_of(BOOL), [True, False], [True, False]),
    (list_of(DATE), ["2026-04-14", "1970-01-01"], [NOON_DAYS, 0]),
    (list_of(DATETIME), ["2026-04-14T12:00:00Z"], [NOON_MS]),
    (list_of(enum("a", "b")), ["b"], ["b"]),
    (BLOB, "base64:aGk=", b"hi"),
    (BLOB, "base64:", b""),
]

REFUSED = [
    (DATE, "99999-01-01", "exceeds Date range: years 0001 to 9999"),
    (DATETIME, "-0044-03-15T12:00:00Z", "exceeds DateTime range: years 0001 to 9999"),
    (STRING, 1, "expects String, got a number"),
    (STRING, {"a": 1}, "expects String, got an object"),
    (STRING, "\ud800", "lone surrogate"),
    (enum("a", "b"), True, "expects String, got a boolean"),
    (BOOL, 1, "expects Bool, got a number"),
    (BOOL, "true", "expects Bool, got a string"),
    (I32, 2**31, "exceeds Int32 range"),
    (I32, -(2**31) - 1, "exceeds Int32 range"),
    (I64, 2**63, "exceeds Int64 range"),
    (I64, 10**400, "exceeds Int64 range"),
    (I64, 1e30, "exceeds Int64 range"),
    (U32, -1, "exceeds UInt32 range"),
    (U32, 2**32, "exceeds UInt32 range"),
    (U64, 2**64, "exceeds UInt64 range"),
    (U64, -1, "exceeds UInt64 range"),
    (I32, 1.0, "not an integer"),
    (I32, math.nan, "not an integer"),
    (I64, True, "expects I64, got a boolean"),
    (I64, "1", "expects I64, got a string"),
    (F32, 1e300, "exceeds Float32 range"),
    (F32, "1", "expects F32, got a string"),
    (F64, 10**400, "exceeds Float64 range"),
    (F64, math.nan, "expects a finite F64"),
    (F64, -math.inf, "expects a finite F64"),
    (F64, False, "expects F64, got a boolean"),
    (DATE, "2026-02-30", 'invalid Date literal "2026-02-30": there is no such day'),
    (DATE, "0000-01-01", 'invalid Date literal "0000-01-01": there is no such day'),
    (DATE, "2026-04-14T00:00:00Z", "invalid Date literal"),
    (DATE, " 2026-04-14", "invalid Date literal"),
    (DATE, 1.5, "expects a Date"),
    (DATE, True, "expects a Date"),
    (DATE, 2**40, "exceeds Date range"),
    (DATETIME, "yesterday", "invalid DateTime literal"),
    (DATETIME, "2026-04-14T24:00:00Z", "invalid DateTime literal"),
    (DATETIME, "0001-01-01T00:00:00+01:00", "invalid DateTime literal"),
    (DATETIME, 1.5, "expects a DateTime"),
    (DATETIME, 2**62, "exceeds DateTime range"),
    (vector(3), [1, 2], "expects 3 dimensions, got 2"),
    (vector(2), [1, "x"], "elements must be numeric"),
    (vector(2), [1, True], "elements must be numeric"),
    (vector(2), [1, None], "elements must be numeric"),
    (vector(2), [1, math.inf], "elements must be finite"),
    (vector(2), [1, 1e39], "elements must be finite"),
    (vector(2), "1,2", "expects a JSON array"),
    (list_of(I32), [1, None], "must not be null"),
    (list_of(I32), [1, 2**31], "element 1: 2147483648 exceeds Int32 range"),
    (list_of(STRING), ["a", 1], "element 1: expects String"),
    (list_of(STRING), "a", "expects a JSON array"),
    (list_of(DATE), ["2026-04-14", "x"], "invalid Date literal"),
    (BLOB, "base64:aGk", "invalid base64 payload"),
    (BLOB, "base64:aG k=", "invalid base64 payload"),
    (BLOB, "base64:é", "invalid base64 payload"),
    (BLOB, "s3://bucket/key", "is an external URI, which is not allowed"),
    (BLOB, 7, "expects Blob"),
]


def _type_id(value: object) -> str:
    return str(value) if isinstance(value, PropertyType) else excerpt(value)


def _store(column: pa.ChunkedArray, type_: PropertyType) -> object:
    """The one value of a column as a plain value: instants as the number that is stored."""
    raw = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}.get(type_.scalar)
    array = column.combine_chunks()
    if raw is not None and type_.is_list:
        return array.flatten().view(raw).to_pylist()
    return (array if raw is None else array.view(raw)).to_pylist()[0]


def _read_json(types: dict[str, PropertyType], lines: list[dict[str, object]]) -> Columns:
    thing = node(types)
    text = "\n".join(json.dumps(line) for line in lines).encode()
    table = pyarrow.json.read_json(
        io.BytesIO(text),
        parse_options=pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(list(json_fields(thing))), unexpected_field_behavior="infer"
        ),
    )
    return columns_from_arrow(thing, table)


@pytest.mark.accepts("S-032", "S-059", "S-060")
@pytest.mark.parametrize(("type_", "value", "stored"), ACCEPTED, ids=_type_id)
def test_a_value_of_its_type_is_stored_from_a_record(
    type_: PropertyType, value: object, stored: object
) -> None:
    columns = columns_from_records(node({"p": type_}), [{"p": value}])

    assert not columns.bad
    assert columns.table.schema == pa.schema([type_.arrow_field("p")])
    assert _store(columns.table["p"], type_) == stored


@pytest.mark.accepts("S-032")
@pytest.mark.parametrize(("type_", "value", "stored"), ACCEPTED, ids=_type_id)
def test_a_value_of_its_type_becomes_a_typed_scalar(
    type_: PropertyType, value: object, stored: object
) -> None:
    scalar = scalar_from_value(type_, value)

    assert scalar.type == type_.arrow_type()
    assert _store(pa.chunked_array([pa.array([scalar], scalar.type)]), type_) == stored


@pytest.mark.parametrize(("type_", "value", "stored"), ACCEPTED, ids=_type_id)
def test_a_value_of_its_type_is_stored_from_the_json_reader(
    type_: PropertyType, value: object, stored: object
) -> None:
    """The reader refuses instants given as numbers; such a batch is read as records."""
    if type_.scalar in (Scalar.DATE, Scalar.DATETIME) and isinstance(value, int):
        with pytest.raises(pa.ArrowInvalid):
            _read_json({"p": type_}, [{"p": value}])
        return

    columns = _read_json({"p": type_}, [{"p": value}])

    assert not columns.bad
    assert _store(columns.table["p"], type_) == stored


@pytest.mark.accepts("S-032", "S-059", "S-060")
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(("type_", "value", "reason"), REFUSED, ids=_type_id)
def test_a_wrong_value_is_a_bad_row_even_when_null_would_do(
    type_: PropertyType, value: object, reason: str, nullable: bool
) -> None:
    thing = node({"p": optional(type_) if nullable else type_})

    columns = columns_from_records(thing, [{"p": value}])

    [bad] = columns.bad
    assert (bad.index, bad.type_name, bad.property) == (0, "Thing", "p")
    assert reason in bad.reason
    assert columns.table["p"].null_count == 1


@pytest.mark.accepts("S-032")
@pytest.mark.parametrize(("type_", "value", "reason"), REFUSED, ids=_type_id)
def test_a_wrong_value_is_no_scalar(type_: PropertyType, value: object, reason: str) -> None:
    with pytest.raises(ConstraintError) as refused:
        scalar_from_value(type_, value, name="p")

    assert reason in str(refused.value)
    assert "property 'p'" in str(refused.value)


@pytest.mark.accepts("S-059")
@pytest.mark.parametrize(("type_", "value", "_stored_value"), ACCEPTED, ids=_type_id)
def test_null_is_taken_exactly_where_the_type_says_so(
    type_: PropertyType, value: object, _stored_value: object
) -> None:
    required = columns_from_records(node({"p": type_}), [{"p": value}, {"p": None}, {}])
    nullable = columns_from_records(node({"p": optional(type_)}), [{"p": value}, {"p": None}, {}])

    assert [bad.index for bad in required.bad] == [1, 2]
    reason = "non-nullable property 'p' has null or invalid values"
    assert {bad.reason for bad in required.bad} == {reason}
    assert not nullable.bad
    assert nullable.table["p"].null_count == 2
    assert scalar_from_value(optional(type_), None).as_py() is None
    with pytest.raises(ConstraintError, match=reason):
        scalar_from_value(type_, None, name="p")


def test_a_deferred_property_may_be_missing_but_not_wrong() -> None:
    thing = node({"p": vector(2)})

    columns = columns_from_records(thing, [{}, {"p": [1]}], deferred={"p"})

    assert [bad.reason for bad in columns.bad] == ["expects 2 dimensions, got 1"]


def test_good_rows_keep_their_values_beside_bad_ones() -> None:
    """Each column is aligned with its input, whichever path it took."""
    types = {"i": optional(I32), "d": optional(DATE), "v": optional(vector(2))}
    types |= {"l": optional(list_of(I32))}
    records: list[dict[str, object]] = [
        {"i": 1, "d": "1970-01-02", "v": [1, 2], "l": [1]},
        {"i": "x", "d": "x", "v": [1], "l": [None]},
        {"i": None},
        {"i": 2, "d": 2, "v": [3, 4], "l": [2, 3]},
    ]

    columns = columns_from_records(node(types), records)

    assert columns.table["i"].to_pylist() == [1, None, None, 2]
    assert columns.table["d"].to_pylist() == [date(1970, 1, 2), None, None, date(1970, 1, 3)]
    assert columns.table["v"].to_pylist() == [[1, 2], None, None, [3, 4]]
    assert columns.table["l"].to_pylist() == [[1], None, None, [2, 3]]
    assert [(bad.index, bad.property) for bad in columns.bad] == [(1, p) for p in "dilv"]
    columns.table.validate(full=True)


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    records: list[dict[str, object]] = [{"name": "a"}, {"name": "b", "nmae": 3, "_rowid": 1}]

    columns = columns_from_records(node({"name": STRING}), records)

    assert [(bad.index, bad.property) for bad in columns.bad] == [(1, "_rowid"), (1, "nmae")]
    assert columns.bad.first[1].reason == 'Thing has no property "nmae" — did you mean `name`?'


def test_an_unknown_column_is_refused_where_it_holds_something() -> None:
    table = pa.table({"name": ["a", "b"], "more": [None, 1]})

    columns = columns_from_arrow(node({"name": STRING}), table)

    assert [(bad.index, bad.property) for bad in columns.bad] == [(1, "more")]


def test_an_explicit_id_is_a_string_beside_the_properties() -> None:
    records: list[dict[str, object]] = [{"id": "x"}, {}, {"id": 7}]

    columns = columns_from_records(node({}), records)

    assert columns.explicit_ids.to_pylist() == ["x", None, None]
    assert columns.table.num_columns == 0
    assert [(bad.index, bad.property) for bad in columns.bad] == [(2, "id")]


@pytest.mark.accepts("S-060")
def test_a_large_payload_is_decoded_whole_and_never_quoted() -> None:
    payload = bytes(range(256)) * 40_000
    text = "base64:" + base64.b64encode(payload).decode()

    columns = columns_from_records(node({"p": BLOB}), [{"p": text}, {"p": text + "!"}])

    assert columns.table["p"][0].as_py() == payload
    [bad] = columns.bad
    assert bad.index == 1
    assert len(str(bad)) < 300


def test_no_rows_convert_to_no_rows() -> None:
    thing = node({"a": I32, "b": list_of(STRING), "c": vector(2)})

    assert columns_from_records(thing, []).table.num_rows == 0
    assert columns_from_arrow(thing, pa.table({"a": pa.array([], pa.int64())})).table.num_rows == 0


def test_the_first_reasons_are_kept_and_all_are_counted() -> None:
    columns = columns_from_records(node({"p": I32}), [{"p": "x"}] * 1000)

    assert columns.bad.total == 1000
    assert [bad.index for bad in columns.bad] == list(range(100))


def test_dates_beyond_the_calendar_of_python_are_named_by_their_year() -> None:
    thing = node({"day": DATE, "time": DATETIME, "day_time": DATETIME})
    rows = pa.table(
        {
            "day": pa.array([10**7], pa.date32()),
            "time": pa.array([10**16], pa.timestamp("ms")),
            "day_time": pa.array([10**7], pa.date32()),
        }
    )

    bad = columns_from_arrow(thing, rows).bad

    assert {row.property: row.reason.partition(" exceeds")[0] for row in bad} == {
        "day": '"29349-01-26"',
        "time": '"318857-05-20T17:46:40.000"',
        "day_time": '"29349-01-26"',
    }
