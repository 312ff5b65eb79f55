"""Reading committed and pending rows together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequestError
from omnigraph.storage.predicates import Compare, CompareOp, Predicate
from tests.storage.conftest import People, people

YOUNG: Predicate = Compare("age", CompareOp.LT, pa.scalar(3))


@pytest.fixture
def full_table(any_table: People) -> People:
    any_table.append(0, 5)
    return any_table


@pytest.mark.accepts("S-021")
def test_pending_rows_follow_the_committed_ones(full_table: People) -> None:
    rows = full_table.storage.reads.scan_with_pending(full_table.head(), people(8, 10), ["id"])

    assert rows.column("id").to_pylist() == ["p0", "p1", "p2", "p3", "p4", "p8", "p9"]


@pytest.mark.accepts("S-021")
def test_one_filter_applies_to_both_sides(full_table: People) -> None:
    pending = people(1, 10).to_batches(max_chunksize=2)

    rows = full_table.storage.reads.scan_with_pending(
        full_table.head(), pending, ["age", "id"], YOUNG
    )

    assert rows.column_names == ["age", "id"]
    assert rows.column("id").to_pylist() == ["p0", "p1", "p2", "p1", "p2"]


@pytest.mark.accepts("S-021")
def test_a_pending_image_hides_its_committed_row(full_table: People) -> None:
    """Also when the pending image itself does not match: a stale value must not."""
    pending = pa.table({"id": ["p1", "p4", "new"], "age": [99, 2, 1]})

    rows = full_table.storage.reads.scan_with_pending(
        full_table.head(), pending, ["id", "age"], YOUNG, "id"
    )

    found = dict(zip(rows["id"].to_pylist(), rows["age"].to_pylist(), strict=True))
    assert found == {"p0": 0, "p2": 2, "p4": 2, "new": 1}


def test_a_projection_without_the_key_is_refused(full_table: People) -> None:
    with pytest.raises(BadRequestError, match="has to include the key 'id'"):
        full_table.storage.reads.scan_with_pending(
            full_table.head(), people(0, 1), ["age"], None, "id"
        )


def test_names_keep_their_case_on_both_sides(full_table: People) -> None:
    predicate = Compare("camelCase", CompareOp.EQ, pa.scalar("c1"))

    rows = full_table.storage.reads.scan_with_pending(
        full_table.head(), people(7, 8), ["id", "camelCase"], predicate
    )

    assert rows.column("id").to_pylist() == ["p1", "p4", "p7"]


# Committed: p0 to p4 with ages 0 to 4. An image of p1 that is not young, one of p4 that is, and
# one new row of each kind.
IMAGES = pa.table({"id": ["p1", "p4", "new", "old"], "age": [99, 2, 1, 50]})


@pytest.mark.accepts("S-022")
def test_a_count_is_of_committed_rows_that_stay_and_of_pending_ones(full_table: People) -> None:
    head, batches = full_table.head(), IMAGES.to_batches(max_chunksize=3)
    counts = [
        (None, None, 5 + 4),
        (None, "id", 3 + 4),  # p0 p2 p3, and all images
        (YOUNG, None, 3 + 2),  # p0 p1 p2, and p4 new
        (YOUNG, "id", 2 + 2),  # p0 p2, and p4 new
    ]

    for predicate, key, count in counts:
        for pending in (IMAGES, batches):
            rows = full_table.storage.reads.scan_with_pending(head, pending, ["id"], predicate, key)
            assert rows.num_rows == count, (predicate, key)
    for predicate, count in ((None, 5), (YOUNG, 3)):
        for key in (None, "id"):
            rows = full_table.storage.reads.scan_with_pending(head, [], ["id"], predicate, key)
            assert rows.num_rows == count


def test_no_pending_rows_is_a_plain_scan(full_table: People) -> None:
    rows = full_table.storage.reads.scan_with_pending(full_table.head(), [], None, YOUNG, "id")

    assert rows.column("id").to_pylist() == ["p0", "p1", "p2"]
