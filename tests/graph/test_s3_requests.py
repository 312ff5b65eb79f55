"""Merge requests on an object store, where one put creates an event and no lock is shared."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.manifest.request_events import RequestEvent
from omnigraph.testing.inside import inside
from tests.graph.reading import SCHEMA, add, names
from tests.storage.conftest import Store

pytestmark = pytest.mark.slow


def test_a_request_is_opened_discussed_listed_and_merged(s3_store: Store) -> None:
    options = s3_store.storage_options
    graph = og.init(s3_store.root.uri, schema=SCHEMA, storage_options=options)
    other = og.open(s3_store.root.uri, storage_options=options)
    graph.create_branch("fix")
    add(graph, "person", branch="fix", name="eve")

    graph.open_merge_request("fix", title="one", actor="ada")
    other.open_merge_request("fix", title="two", actor="bob")
    other.approve_merge_request(1, actor="bob")
    other.close_merge_request(2)
    taken = RequestEvent(2, "commented", 1, "eve", {"text": "late"})
    assert not inside(graph).coordinator.request_events.append(1, taken)
    assert [each.number for each in graph.merge_requests()] == [1]
    done = graph.complete_merge_request(1, delete_branch=True)

    assert names(other) == ["eve"]
    found = other.merge_request(1)
    assert (found.state, found.commit_id) == ("merged", done.commit_id)
    assert [each.number for each in other.merge_requests("all")] == [2, 1]
    assert other.verify().errors == ()
