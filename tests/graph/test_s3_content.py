"""Verification with content on an object store, which vouches for its objects by their ETags."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.storage.recorder import wait_for_records
from tests.graph.reading import SCHEMA, add
from tests.storage.conftest import Store

pytestmark = pytest.mark.slow

BRANCH = "review/x"


@pytest.fixture
def graph(s3_store: Store) -> og.Graph:
    graph = og.init(s3_store.root.uri, schema=SCHEMA, storage_options=s3_store.storage_options)
    add(graph, "pair", a="ann", b="bob")
    graph.create_branch(BRANCH)
    add(graph, "gone", branch=BRANCH, name="bob")
    add(graph, "person", name="cy")
    return graph


def test_a_changed_object_is_found_and_named(graph: og.Graph, s3_store: Store) -> None:
    client = s3_store.client()
    bucket, _, prefix = s3_store.root.uri.removeprefix("s3://").partition("/")
    wait_for_records()
    listed = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")["Contents"]
    keys = [each["Key"] for each in listed]
    assert any(key.endswith(".log") for key in keys)
    sound = graph.verify(content=True)
    assert sound.errors == ()
    assert "checksum" not in str(sound.warnings)

    logs = [key for key in keys if key.endswith(".log")]
    hints = [key for key in keys if key.endswith("latest_version_hint.json")]
    state = [key for key in keys if key.endswith("__schema_state.json")]
    # Where a graph is, the next open finds out by itself.
    hints += [key for key in keys if key.endswith("__location.json")]
    # What says what others should be may hide them once it is damaged itself.
    others = sorted({*keys} - {*logs, *hints, *state})
    missed: list[str] = []
    for batch in [*(others[start::5] for start in range(5)), logs[-1:], state]:
        whole = {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in batch}
        for key, data in whole.items():
            place = len(data) // 2
            flipped = data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]
            client.put_object(Bucket=bucket, Key=key, Body=flipped)
        report = graph.verify(content=True)
        for key, data in whole.items():
            client.put_object(Bucket=bucket, Key=key, Body=data)
        said = " ".join(f"{each.file} {each.message}" for each in report.errors)
        missed += [key for key in batch if key not in said]

    assert missed == []
    assert graph.verify(content=True).errors == ()


def test_cleanup_and_branch_deletion_take_the_records_with_them(graph: og.Graph) -> None:
    graph.delete_branch(BRANCH)
    graph.cleanup(keep=1, confirm=True)

    report = graph.verify(content=True)

    assert report.errors == ()
    assert "checksum" not in str(report.warnings)
    assert "clean-up" not in str(report.warnings)
