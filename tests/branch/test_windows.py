"""Windows: a diff and a feed of any size are the same in windows, and hold one of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.branch import compare_windows, row_batches, windows
from omnigraph.branch.changes import ChangeSet
from omnigraph.branch.windows import Source, WindowedDifferences, read_window
from omnigraph.server.json_parts import encode_parts
from omnigraph.storage.counters import counting
from tests.branch.bulk import appending, upserting, write_bulk

SCHEMA = "node Doc { slug: String @key  n: I64? }\nnode Note { slug: String @key }"
IDS = pa.schema([("id", pa.utf8())])


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        yield graph


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_ROWS", 16)
    monkeypatch.setattr(windows, "COMPARED_ROWS", 4)
    monkeypatch.setattr(compare_windows, "TAKEN_ROWS_MAX", 4)


def make_docs(numbers: range, shift: int = 0) -> pa.Table:
    """Docs in no order of their ids."""
    order = random.Random(1).sample(numbers, len(numbers))
    ids = [f"d{each:05d}" for each in order]
    return pa.table({"id": ids, "slug": ids, "n": [each + shift for each in order]})


def write_docs(graph: og.Graph) -> str:
    """Docs, and on top of them a commit that inserts, updates, leaves alone; one that deletes."""
    write_bulk(graph, "node:Doc", appending(make_docs(range(60)).to_batches()))
    write_bulk(graph, "node:Doc", upserting(make_docs(range(30, 100), shift=1)))
    graph.mutate("query q() { delete Doc where n < 20 }")
    return str(graph.commits()[-2].commit_id)


@given(
    parts=st.lists(st.lists(st.lists(st.text("abc", max_size=3))), min_size=1, max_size=3),
    most=st.integers(8, 20),
)
def test_windows_give_every_row_once_and_in_order(parts: Any, most: int) -> None:
    parts = [[each[:2] for each in one] for one in parts]  # an id is in a source a few times
    unique = [[pa.table([sorted(set(each))], schema=IDS) for each in one] for one in parts]
    sources = [Source(IDS, one.__iter__) for one in unique]

    start: str | None = None
    found: list[str] = []
    while True:
        window = read_window(sources, start, most * 4)
        ids = sorted(each for one in window.tables for each in one["id"].to_pylist())
        assert not found or not ids or found[-1] < ids[0]
        found += ids
        if window.end is None:
            break
        assert ids, "a window that goes on has rows"
        start = window.end

    assert found == sorted(
        each for one in unique for part in one for each in part["id"].to_pylist()
    )


def test_a_window_holds_no_more_than_twice_its_size() -> None:
    held: list[int] = []

    def read() -> Iterator[pa.Table]:
        for first in range(10_000, 0, -50):  # the worst order: each part is below all before it
            before = pa.total_allocated_bytes()
            yield pa.table([[f"{each:06d}" for each in range(first - 50, first)]], schema=IDS)
            held.append(pa.total_allocated_bytes() - before)

    whole = pa.table([[f"{each:06d}" for each in range(10_000)]], schema=IDS).nbytes
    window = read_window([Source(IDS, read)], None, 100)

    assert window.tables[0].num_rows == 100
    assert window.end == "000100"
    assert max(sum(held[: end + 1]) for end in range(len(held))) < whole / 8


@pytest.mark.slow
@pytest.mark.parametrize("which", ["history", "branches", "columns", "one side"])
def test_a_diff_in_windows_is_the_diff(graph: og.Graph, small: None, which: str) -> None:
    first = write_docs(graph)
    from_: Any = first
    if which == "branches":
        graph.create_branch("side")
        write_bulk(graph, "node:Doc", upserting(make_docs(range(50, 120), shift=5)), "side")
        write_bulk(graph, "node:Doc", upserting(make_docs(range(90, 130), shift=9)))
        from_ = "side"
    elif which == "columns":
        graph.apply_schema(SCHEMA.replace("n: I64?", "n: I64?  more: String?"))
    elif which == "one side":
        graph.apply_schema(SCHEMA + "\nnode More { slug: String @key  n: I64? }")
        write_bulk(graph, "node:More", appending(make_docs(range(50)).to_batches()))

    found = graph.diff(from_, "main")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "WINDOW_ROWS", 10_000)
        expected = graph.diff(from_, "main")
    assert any(isinstance(each.rows, WindowedDifferences) for each in found.table_changes)
    assert list(found) == list(expected)
    assert found.to_json() == expected.to_json()
    assert (found.stats, len(found)) == (expected.stats, len(expected))
    assert b"".join(encode_parts(found.to_stream())) == b"".join(encode_parts(expected.to_stream()))
    updates = graph.diff(from_, "main", ops=["update"])
    assert updates.stats.updates == expected.stats.updates
    assert len(updates) == expected.stats.updates


def test_the_first_bytes_of_a_diff_are_there_before_its_last_row_is_read(
    graph: og.Graph, small: None
) -> None:
    write_bulk(graph, "node:Doc", appending(make_docs(range(400)).to_batches()))
    write_bulk(graph, "node:Doc", upserting(make_docs(range(400), shift=1)))
    before, after = (graph.commits()[at].commit_id for at in (1, 0))

    with counting() as counters:
        parts = encode_parts(graph.diff(before, after).to_stream())
        while b"d00000" not in next(parts):
            pass
        first = counters.rows_taken
        for _ in parts:
            pass

    assert first <= 4 * 4, "one part, compared and then shown, on both sides"
    assert counters.rows_taken == 4 * 400


@pytest.mark.slow
def test_pages_of_a_large_commit_read_their_own_rows_only(
    graph: og.Graph, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bulk(graph, "node:Doc", appending(make_docs(range(400)).to_batches()))
    write_bulk(graph, "node:Doc", upserting(make_docs(range(400), shift=1)))
    start = f"after:{graph.commits()[1].commit_id}"
    whole: list[int] = []
    monkeypatch.setattr(ChangeSet, "__len__", lambda self: whole.append(1))

    with counting() as counters:
        page = graph.poll_changes(start=start, limit=10)
        first = counters.rows_taken
        found = [each["id"] for block in page.blocks for each in block.changes]
        while page.next_page_token is not None:
            page = graph.poll_changes(page_token=page.next_page_token, limit=10)
            found += [each["id"] for block in page.blocks for each in block.changes]

    assert found == [f"d{each:05d}" for each in range(400)]
    assert first <= 4 * 16
    assert counters.rows_taken <= 4 * 400 * 2
    assert not whole, "a page counted all changes"


@pytest.mark.slow
def test_a_small_page_shows_no_more_rows_than_it_has_room_for(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are compared a part at a time; of a part only what a page shows is read again."""
    monkeypatch.setattr(windows, "WINDOW_ROWS", 256)
    monkeypatch.setattr(windows, "COMPARED_ROWS", 128)
    write_bulk(graph, "node:Doc", appending(make_docs(range(512)).to_batches()))
    write_bulk(graph, "node:Doc", upserting(make_docs(range(512), shift=1)))
    commit, sides, pages = graph.commits()[0].commit_id, 2, 0

    with counting() as counters:
        page = graph.commit_changes(commit, limit=10)
        while page.next_page_token is not None:
            pages += 1
            page = graph.commit_changes(commit, limit=10, page_token=page.next_page_token)

    compared, shown = 512, 12 * (pages + 1 + 512 // 128)
    assert counters.rows_taken <= sides * (compared + shown)


def test_a_page_of_wide_rows_reads_what_it_has_room_for(tmp_path: Path) -> None:
    """Not 8,192 rows of whatever size: readers that begin at once hold a page each, not a table."""
    rows = 4_000
    with og.init(tmp_path / "w", schema="node Doc { slug: String @key  text: String? }") as wide:
        ids = [f"d{each:05d}" for each in range(rows)]
        docs = pa.record_batch({"id": ids, "slug": ids, "text": ["x" * 4_000] * rows})
        write_bulk(wide, "node:Doc", appending([docs]))
        with counting() as counters:
            page = wide.poll_changes(start="beginning", limit=8_192)
            shown = sum(len(block.changes) for block in page.blocks)
        assert counters.rows_taken <= shown * 1.2


def test_batches_are_as_large_as_the_rows_allow() -> None:
    size = row_batches.BatchSize(most=5_000)
    assert size.rows == 1_024, "nothing is known of the rows"
    for width, expected in ((10, 5_000), (4_000, 1_048), (4 << 20, 1), (10, 8), (10, 64)):
        size.learn(pa.record_batch({"text": pa.array([b"x" * width], pa.binary(width))}))
        assert size.rows == expected


def test_very_many_rows_are_found_by_one_pass_over_their_row_ids(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.storage import reads, row_addresses

    monkeypatch.setattr(reads, "LOOKUP_ROWS_MAX", 50)
    monkeypatch.setattr(reads, "LOOKUP_TABLE_ROWS_MIN", 50)
    monkeypatch.setattr(row_addresses, "LOOKUP_TABLE_ROWS_MIN", 50)
    expanded: list[int] = []
    monkeypatch.setattr(row_addresses, "to_addresses", lambda *given: expanded.append(1))
    write_docs(graph)
    write_bulk(graph, "node:Doc", upserting(make_docs(range(100), shift=7)))
    before, after = (graph.commits()[at].commit_id for at in (1, 0))

    found = list(graph.diff(before, after))

    assert [(each.after or {})["n"] for each in found] == [each + 7 for each in range(100)]
    assert not expanded
