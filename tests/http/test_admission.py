"""Admission: how much one actor may have under way, counted and released."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from omnigraph.server.admission import Admission, TooManyRequests
from omnigraph.server.settings import Limits
from omnigraph.storage.location import graph_root
from omnigraph.storage.queues import writer_queues
from tests.http.serving import INSERT, Served, make_graph, served, single

TOKENS = {"act-ada": "ada-token", "act-bob": "bob-token"}
POLICY = """
version: 1
groups: { all: [act-ada, act-bob] }
rules:
  - id: all
    allow: { actors: { group: all }, actions: [read, export, change] }
  - id: all-branches
    allow: { actors: { group: all }, actions: [branch_create] }
"""


def wait_for(server: Served, count: int) -> None:
    """Until so many writes of ada have been admitted."""
    while server.serving.admission.in_flight("act-ada") < count:
        pass


def test_sixteen_writes_of_an_actor_are_admitted_and_the_next_is_refused(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with ExitStack() as stack:
        settings = single(path, tokens=TOKENS, policy_text=POLICY)
        server = stack.enter_context(served(settings))
        pool = stack.enter_context(ThreadPoolExecutor(16))
        ada = stack.enter_context(server.client("ada-token"))
        bob = stack.enter_context(server.client("bob-token"))
        held = writer_queues(graph_root(str(path))).acquire_many([("node:Person", None)])
        with held:
            under_way = [
                pool.submit(ada.mutate, INSERT, params={"slug": f"a{number}"})
                for number in range(16)
            ]
            wait_for(server, 16)
            refused = ada.mutate(INSERT, params={"slug": "late"})
            other = bob.post("/branches", {"name": "bobs"})
            reads = ada.query()

        assert refused.status_code == 429
        assert refused.json()["code"] == "too_many_requests"
        assert refused.json()["error"] == "actor in-flight count cap 16 exceeded"
        assert refused.headers["retry-after"] == "60"
        assert other.status_code == 200
        assert reads.status_code == 200
        assert [each.result().status_code for each in under_way] == [200] * 16
        assert ada.mutate(INSERT, params={"slug": "later"}).status_code == 200
        assert "omnigraph_admission_rejections_total 1.0" in ada.get("/metrics").text


def test_the_bytes_of_an_actor_are_budgeted(graph_path: Path) -> None:
    with (
        served(single(graph_path, limits=Limits(actor_bytes_max=300))) as server,
        server.client() as client,
    ):
        small = client.mutate(INSERT, params={"slug": "x"})
        large = client.mutate(INSERT, params={"slug": "x" * 300})

        assert small.status_code == 200
        assert large.status_code == 429
        assert "actor byte budget exceeded: would use" in large.json()["error"]
        assert "against cap 300" in large.json()["error"]
        assert client.query().status_code == 200


def test_an_admission_slot_is_released_however_the_work_ends() -> None:
    admission = Admission(Limits(actor_requests_max=1))

    for _ in range(2):
        with pytest.raises(ZeroDivisionError), admission.admit("ada", 10):
            print(1 // 0 if admission.in_flight("ada") == 1 else 0)
    with admission.admit(None, 0), pytest.raises(TooManyRequests), admission.admit(None, 0):
        pass

    assert admission.in_flight("ada") == admission.in_flight(None) == 0
