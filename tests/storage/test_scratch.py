"""What dead loads left is swept, on every store; what may be alive is not."""

from __future__ import annotations

import time

import pytest
from ulid import ULID

from omnigraph.storage.scratch import ABANDONED_SECONDS, DIRECTORY, FRAMES_PREFIX, sweep
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.text import open_text_store
from tests.storage.conftest import Store


@pytest.mark.parametrize("prefix", ["", FRAMES_PREFIX])
def test_scratch_of_a_dead_load_on_an_object_store_is_swept(s3_store: Store, prefix: str) -> None:
    texts = open_text_store(s3_store.root, s3_store.storage_options)
    tables = TableStorage(s3_store.root, s3_store.storage_options)
    old = ULID.from_timestamp(time.time() - 2 * ABANDONED_SECONDS)
    top = s3_store.root.child(DIRECTORY)
    for each in (old, ULID()):
        texts.write_text(f"{top}/{prefix}{each}/part.jsonl", "{}")
    texts.write_text(f"{top}/{prefix}of somebody else/part.jsonl", "{}")

    assert sweep(tables, s3_store.storage_options) == 1

    assert not texts.exists(f"{top}/{prefix}{old}")
    assert len(texts.list_folders(top)) == 2
