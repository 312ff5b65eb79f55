"""Row ids as fragments say them are those that a scan gives."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import InvariantViolated
from omnigraph.storage import row_addresses, row_ids
from omnigraph.storage.handles import TableHandle
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.reads import Reads
from omnigraph.storage.row_ids import (
    UnknownSequence,
    encode_row_ids,
    locate_row_ids,
    physical_row_ids,
)
from tests.storage.conftest import People, people

ROWS = 600


def scan_addresses(handle: TableHandle) -> tuple[np.ndarray, np.ndarray]:
    scanner = handle._dataset.scanner(columns=[], with_row_id=True, with_row_address=True)
    rows = scanner.to_table()
    return rows["_rowid"].to_numpy(), rows["_rowaddr"].to_numpy()


def change(table: People, choice: random.Random) -> None:
    known = table.ids()
    some = choice.sample(known, min(len(known), choice.choice([1, 7, 120])))
    numbers = [int(each[1:]) for each in some]
    storage, head = table.storage, table.head()
    match choice.randrange(5):
        case 0:
            first = max((int(each[1:]) for each in known), default=0) + 1
            table.append(first, first + choice.choice([1, 50]))
        case 1:
            rows = pa.concat_tables([people(number, number + 1, age=1) for number in numbers])
            table.commit(storage.rows.stage_merge_insert(head, rows))
        case 2:
            table.commit(storage.rows.stage_delete(head, IsIn("id", pa.array(some))))
        case 3:
            batches = [people(number, number + 1).to_batches()[0] for number in numbers]
            table.commit(storage.rows.stage_replace_rows(head, batches, table.row_ids(*some)))
        case _:
            staged = storage.compaction.stage(head)
            if staged is not None:
                table.commit(staged)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_found_where_a_scan_finds_them(
    table: People, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = random.Random(seed)
    table.append(0, ROWS)
    for _ in range(14):
        change(table, choice)
        head = table.head()
        ids, addresses = scan_addresses(head)
        order = np.random.default_rng(seed).permutation(len(ids))[:80]

        assert row_addresses.to_addresses(head, ids[order]).tolist() == addresses[order].tolist()

        by_lance = _take(head, ids[order])
        with monkeypatch.context() as patch:
            patch.setattr(row_addresses, "LOOKUP_TABLE_ROWS_MIN", 0)
            assert _take(head, ids[order]) == by_lance


def _take(head: TableHandle, ids: np.ndarray) -> list[dict[str, Any]]:
    batches = Reads().take_stream(head, ids, batch_rows=1_000)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.slow
def test_every_form_of_a_sequence_is_met(table: People, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges, ranges with holes, with many holes, and lists in order: each is read right."""
    met: set[int] = set()
    original = row_ids._locate

    def locate(message: bytes | int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        assert isinstance(message, bytes)
        met.add(next(row_ids._fields(message))[0])
        return original(message, wanted)

    monkeypatch.setattr(row_ids, "_locate", locate)
    storage = table.storage
    table.append(0, 4_000)
    row_addresses.to_addresses(table.head(), scan_addresses(table.head())[0])
    for share in (97, 3, 2):
        gone = [each for each in table.ids() if int(each[1:]) % share == 0]
        table.commit(storage.rows.stage_delete(table.head(), IsIn("id", pa.array(gone))))
        table.append(4_000 + 10 * share, 4_010 + 10 * share)
        table.commit(storage.compaction.stage(table.head()))
        ids, addresses = scan_addresses(table.head())
        assert row_addresses.to_addresses(table.head(), ids).tolist() == addresses.tolist()
    moved = pa.concat_tables([people(n, n + 1) for n in range(3_999, 100, -97) if n % 97])
    table.commit(storage.rows.stage_merge_insert(table.head(), moved))
    ids, addresses = scan_addresses(table.head())
    assert row_addresses.to_addresses(table.head(), ids).tolist() == addresses.tolist()

    assert {row_ids._RANGE, row_ids._HOLES, row_ids._BITMAP} <= met


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"\x0a\x04\x0a\x02\x10\x03", [0, 1, 2]),
        (b"\x0a\x0c\x22\x0a\x0a\x08\x08\x05\x12\x04\x00\x00\x02\x00", [5, 7]),
        (b"\x0a\x0e\x2a\x0c\x1a\x0a\x12\x08\x09" + b"\0" * 7, [9]),
    ],
)
def test_a_sequence_is_read(message: bytes, expected: list[int]) -> None:
    assert physical_row_ids(_Metadata(message, len(expected))).tolist() == expected

    wanted = np.unique(np.array([0, 6, *expected, 99], dtype=np.uint64))
    which, positions = locate_row_ids(message, len(expected), wanted)
    found = dict(zip(wanted[which].tolist(), positions.tolist(), strict=True))
    assert found == {each: at for at, each in enumerate(expected)}
    assert len(locate_row_ids(message, len(expected), wanted[:0])[0]) == 0


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a",
        b"\x0a\x05\x0a\x02\x10\x03",
        b"\x0a\x04\x0a\x02\x10",
        b"\x0d\x00\x00\x00\x00",
        b"\x0a\x03\x32\x01\x00",
        b"",
    ],
)
def test_a_sequence_in_another_form_is_not_guessed(message: bytes) -> None:
    with pytest.raises(UnknownSequence):
        physical_row_ids(_Metadata(message, 3))
    with pytest.raises(UnknownSequence):
        locate_row_ids(message, 3, np.arange(9, dtype=np.uint64))


def test_without_a_sequence_the_row_ids_are_scanned(
    table: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(0, 20)
    ids, addresses = scan_addresses(table.head())

    def unknown(*_: object) -> np.ndarray:
        raise UnknownSequence

    monkeypatch.setattr(row_addresses, "locate_row_ids", unknown)

    assert row_addresses.to_addresses(table.head(), ids[::-1]).tolist() == addresses[::-1].tolist()


def test_a_row_that_is_gone_cannot_be_replaced(table: People) -> None:
    table.append(0, 20)
    gone = table.row_ids("p3")
    table.commit(table.storage.rows.stage_delete(table.head(), IsIn("id", pa.array(["p3"]))))

    with pytest.raises(InvariantViolated, match="that are not there"):
        table.storage.rows.stage_replace_rows(table.head(), people(3, 4).to_batches(), gone)


@pytest.mark.parametrize(
    "expected",
    [[0], [7], [3, 4, 5], [5, 7], [70_000, 70_002], [1, 65_536], [1, 65_537], [9, 2**33], [2**40]],
)
def test_a_sequence_that_is_made_is_read_again(expected: list[int]) -> None:
    message = encode_row_ids(np.array(expected, dtype=np.uint64))

    assert physical_row_ids(_Metadata(message, len(expected))).tolist() == expected


class _Metadata:
    def __init__(self, message: bytes, rows: int) -> None:
        self._message = message
        self.physical_rows = rows

    def to_json(self) -> dict[str, Any]:
        return {"row_id_meta": {"Inline": list(self._message)}}
