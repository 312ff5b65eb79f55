"""Bad rows: counted in full, kept in part, readable."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from omnigraph.errors import ConstraintError
from omnigraph.write.bad_rows import NO_BAD_ROWS, BadRow, BadRows, BadRowsError, excerpt


def _row(index: int, reason: str = "wrong") -> BadRow:
    return BadRow(index, "Person", "age", '"x"', reason)


def _rows(*indexes: int) -> BadRows:
    return BadRows.at(np.array(indexes, dtype=np.int64), _row)


def test_one_batch_is_ordered_by_row_whatever_check_found_it() -> None:
    joined = BadRows.of_batch([_rows(2, 5), _rows(1, 5)], limit=3)

    assert [row.index for row in joined] == [1, 2, 5]
    assert joined.total == 4


def test_later_batches_come_after_earlier_ones() -> None:
    joined = BadRows.in_order([_rows(7, 8), NO_BAD_ROWS, _rows(0)], limit=2)

    assert [row.index for row in joined] == [7, 8]
    assert joined.total == 3


def test_a_limit_of_none_keeps_all() -> None:
    many = BadRows.at(np.arange(1000), _row, limit=None)

    assert len(many.first) == many.total == 1000


def test_an_error_lists_the_rows_with_their_places_and_says_nothing_was_written() -> None:
    rows = (_row(6), _row(8, "@range violation on Person.age"))
    located = tuple(replace(row, location=f"people.jsonl:{row.index + 1}") for row in rows)

    with pytest.raises(ConstraintError) as refused:
        BadRows(located, 9).raise_if_any()

    assert str(refused.value).splitlines() == [
        "9 problems in the rows:",
        '  people.jsonl:7: Person.age: wrong (value "x")',
        '  people.jsonl:9: @range violation on Person.age (value "x")',
        "  ... and 7 more",
        "nothing was written",
    ]
    assert isinstance(refused.value, BadRowsError)
    assert refused.value.bad_rows == BadRows(located, 9)


def test_a_single_bad_row_is_said_in_one_line() -> None:
    assert str(BadRowsError(_rows(6))) == (
        'row 7: Person.age: wrong (value "x") — nothing was written'
    )


def test_no_bad_row_raises_nothing() -> None:
    NO_BAD_ROWS.raise_if_any()

    assert not NO_BAD_ROWS


def test_bad_rows_travel_between_processes() -> None:
    assert pickle.loads(pickle.dumps(_rows(1, 2))) == _rows(1, 2)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        ("a\n\x1b", '"a\\n\\u001b"'),
        ("\ud800", '"\\ud800"'),
        ("x" * 61, '"' + "x" * 60 + '..."'),
        (10**5000, "an integer of 16610 bits"),
        (True, "true"),
        ([1, None, "a"], '[1, null, "a"]'),
        ({"a": 1}, "an object"),
        (b"abc", "3 bytes"),
        (1.5, "1.5"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_excerpt_is_short_and_printable(value: object, shown: str) -> None:
    assert excerpt(value) == shown
