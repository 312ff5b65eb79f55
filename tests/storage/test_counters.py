"""Counters move after success only, and every open scope sees what happens inside it."""

from __future__ import annotations

import contextvars
import threading

import pyarrow as pa
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.storage import counters as module
from omnigraph.storage.counters import Counters, counting
from omnigraph.storage.handles import IndexKind, IndexSpec
from tests.storage.conftest import People, people


def test_scopes_nest_and_the_process_sees_all(table: People) -> None:
    before = module.PROCESS.stage_append_calls

    with counting() as outer:
        table.append(0, 3)
        with counting() as inner:
            table.append(3, 5)
    table.append(5, 6)

    assert (outer.stage_append_calls, outer.stage_append_rows) == (2, 5)
    assert (inner.stage_append_calls, inner.stage_append_rows) == (1, 2)
    assert inner.commits == 1
    assert module.PROCESS.stage_append_calls - before == 3


@pytest.mark.accepts("S-055")
def test_a_write_that_fails_moves_no_counter(table: People) -> None:
    table.append(0, 3)
    head, storage = table.head(), table.storage
    wrong = pa.table({"id": ["x", "x"]})

    with counting() as counters:
        for attempt in (
            lambda: storage.rows.stage_append(head, people(0, 0)),
            lambda: storage.rows.stage_append(head, pa.table({"nmae": ["x"]})),
            lambda: storage.rows.stage_merge_insert(head, wrong),
            lambda: storage.indexes.stage_create(head, [IndexSpec("photo", IndexKind.BTREE)]),
            lambda: storage.indexes.stage_create(head, [IndexSpec("nmae", IndexKind.VECTOR)]),
        ):
            with pytest.raises(OmnigraphError):
                attempt()

    assert counters == Counters()


def test_a_stage_counts_its_kind_rows_and_bytes(table: People) -> None:
    with counting() as counters:
        table.commit(table.storage.rows.stage_append(table.head(), people(0, 5)))
        table.commit(table.storage.rows.stage_merge_insert(table.head(), people(3, 7)))
        table.commit(table.storage.rows.stage_overwrite(table.head(), people(3, 7)))

    assert counters.stages == {"append": 1, "merge_insert": 1, "overwrite": 1}
    assert (counters.stage_merge_insert_calls, counters.stage_merge_insert_rows) == (1, 4)
    assert counters.bytes_staged > 0
    assert counters.commits == 3


def test_a_scan_counts_when_it_is_read_to_the_end(table: People) -> None:
    table.append(0, 10)

    with counting() as counters:
        batches = table.storage.reads.scan_stream(table.head(), ["id"], batch_rows=3)
        next(batches)
        unread = counters.scans
        list(batches)

    assert (unread, counters.scans, counters.rows_scanned) == (0, 1, 10)


def test_a_thread_counts_in_a_copied_context(table: People) -> None:
    with counting() as counters:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(table.append, 0, 3))
        thread.start()
        thread.join()

    assert counters.stage_append_rows == 3
