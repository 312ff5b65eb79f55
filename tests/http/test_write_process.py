"""Long writes run in a process of their own: the same answers, and its death is no disaster."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import omnigraph as og
from omnigraph.failpoints import ENVIRONMENT_VARIABLE, Failpoint
from omnigraph.pipeline.engine import MASTER_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.server import write_process
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.jobs import LONG_BYTES
from omnigraph.server.settings import ServedGraph
from tests.depth import IS_TORTURE, sample
from tests.http.serving import INSERT, Client, Served, make_graph, ndjson, served, single
from tests.http.test_process import started
from tests.http.warm_writes import start_from_nothing

pytestmark = pytest.mark.slow

COUNT = "query count() { match { $p: Person } return { count($p) as n } }"
PADDING = "x" * 200
TOKENS = {"act-writer": "secret-writer", "act-reader": "secret-reader"}
POLICY = """
version: 1
groups: { writers: [act-writer], readers: [act-reader] }
rules:
  - { id: read, allow: { actors: { group: readers }, actions: [read] } }
  - { id: all, allow: { actors: { group: writers }, actions: [read, change] } }
"""


def people(prefix: str, count: int = 400) -> list[dict[str, Any]]:
    """Records that make a body long enough to be sent to the other process."""
    found = [
        {"type": "Person", "data": {"slug": f"{prefix}{n}", "name": PADDING}} for n in range(count)
    ]
    assert len(ndjson(found)) > LONG_BYTES
    return found


def count_of(client: Client, branch: str = "main") -> int:
    found: int = client.rows(COUNT, branch=branch)[0]["n"]
    return found


def long_writes(client: Client, place: str) -> int:
    """How many long writes the server says it has run, apart or here."""
    return _long_writes(client.http.get("/metrics").text, place)


def _long_writes(metrics: str, place: str) -> int:
    name = f'omnigraph_long_writes_total{{place="{place}"}}'
    lines = [line for line in metrics.splitlines() if line.startswith(name)]
    return int(float(lines[0].split()[-1])) if lines else 0


def workers_of(pid: int) -> list[psutil.Process]:
    children = psutil.Process(pid).children(recursive=True)
    return [each for each in children if "omnigraph.server.write_worker" in each.cmdline()]


@pytest.fixture(autouse=True)
def _from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control for those that other tests fork."""
    monkeypatch.setattr(write_process, "start_process", start_from_nothing)


# One worker of the suite runs the tests that share one second process.
share_process = pytest.mark.xdist_group("write process")


@pytest.fixture
def apart(shared: Served) -> Iterator[Client]:
    """A client of a server whose second process is up."""
    shared.serving.write_process.wait()
    with shared.client() as client:
        yield client


@share_process
def test_rows_of_the_write_process_are_visible_immediately(
    apart: Client,
) -> None:
    before, apart_before = count_of(apart), long_writes(apart, "apart")
    loaded = apart.load(people("a"))
    after_load = count_of(apart)
    apart.load(people("b"), branch="side", **{"from": "main"})
    merged = apart.post("/branches/merge", {"source": "side", "delete_branch": True})
    lines = ndjson(people("c")).encode()
    headers = {"Content-Type": "application/x-ndjson"}
    sent = apart.send("POST", "/load/ndjson", content=lines, headers=headers)
    file = {"data": ("people.jsonl", lines.replace(b'"c', b'"d'))}
    uploaded = apart.send("POST", "/load/files", files=file)

    answers = (loaded, merged, sent, uploaded)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert merged.json()["branch_deleted"] is True
    assert after_load == before + 400
    assert count_of(apart) == before + 1_600
    assert long_writes(apart, "apart") == apart_before + 5
    assert long_writes(apart, "here") == 0


@share_process
def test_short_loads_mutations_and_small_merges_stay_in_the_server(apart: Client) -> None:
    """Whatever the size of the tables: a merge counts by the rows that the branches differ in."""
    apart_before = long_writes(apart, "apart")
    loaded = apart.load(people("short")[:2])
    changed = apart.mutate(INSERT, params={"slug": "new"})
    apart.load(people("few")[:2], branch="small", **{"from": "main"})
    merged = apart.post("/branches/merge", {"source": "small"})

    assert (loaded.status_code, changed.status_code, merged.status_code) == (200, 200, 200)
    assert merged.json()["outcome"] == "fast_forward"
    assert long_writes(apart, "apart") == apart_before


@share_process
def test_writes_of_both_processes_to_one_table_all_take_effect(apart: Client) -> None:
    """The server inserts while the other process loads; neither loses what the other did."""
    before = count_of(apart)

    def insert(number: int) -> int:
        with httpx.Client(base_url=apart.http.base_url, timeout=60, verify=False) as http:
            body = {"query": INSERT, "params": {"slug": f"single{number}"}}
            return http.post("/mutate", json=body).status_code

    with ThreadPoolExecutor(4) as pool:
        inserted = [pool.submit(insert, number) for number in range(12)]
        loaded = [apart.load(people(f"run{number}-")).status_code for number in range(3)]
        answers = [each.result() for each in inserted]

    assert set(answers) == {200}
    assert loaded == [200, 200, 200]
    assert count_of(apart) == before + 12 + 3 * 400


@pytest.mark.skipif(not IS_TORTURE, reason="part of make torture")
def test_a_large_load_waits_for_the_process_and_runs_on_a_chosen_spark_there(
    own: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never starts Spark in the server, and the next one finds it warm."""
    monkeypatch.setenv(PART_BYTES_VARIABLE, str(LONG_BYTES))
    monkeypatch.setenv(MASTER_VARIABLE, "local[2,4]")
    with own.client() as client:
        before = count_of(client)
        first = client.load(people("a", 1_000))
        [worker] = workers_of(os.getpid())
        java = [each.pid for each in worker.children(recursive=True) if each.name() == "java"]
        second = client.load(people("b", 1_000))

        assert (first.status_code, second.status_code) == (200, 200)
        assert count_of(client) == before + 2_000
        assert long_writes(client, "apart") == 2
        assert len(java) == 1
        found = [each.pid for each in worker.children(recursive=True) if each.name() == "java"]
        assert found == java


def test_long_writes_run_in_the_server_when_no_process_can_be_started(
    own: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with own.client() as client:
        loaded = client.load(people("a"))

        assert loaded.status_code == 200
        assert long_writes(client, "here") == 1


def collect_refusals(client: Client) -> list[tuple[int, Any]]:
    """What a server says to long writes that it cannot do."""
    bad = people("bad")
    bad[7]["data"]["age"] = "old"
    taken = [{"type": "Person", "data": {"slug": "ada"}}, *people("t")]
    deep = b'{"data": "' + b" " * LONG_BYTES + b'", "more": ' + b"[" * 99 + b"]" * 99 + b"}"
    twice = ndjson(people("l")) + '{"type": "Person", "type": "Person", "data": {}}\n'
    as_json = {"Content-Type": "application/json"}
    as_lines = {"Content-Type": "application/x-ndjson"}
    answers = [
        client.load(bad),
        client.load(taken, mode="append"),
        client.load(people("n"), branch="nowhere"),
        client.load(people("n"), mode="sideways"),
        client.send("POST", "/load", content=b" " * LONG_BYTES + b"{", headers=as_json),
        client.send("POST", "/load", content=deep, headers=as_json),
        client.send("POST", "/load/ndjson", content=twice.encode(), headers=as_lines),
        client.post("/branches/merge", {"source": "nowhere"}),
        client.post("/branches/merge", {"source": "clash"}),
    ]
    return [(answer.status_code, answer.json()) for answer in answers]


def clashing(path: Path) -> None:
    """Give a graph a branch that cannot be merged."""
    grow = 'query grow($n: I32) { update Person set { age: $n } where slug = "ada" }'
    with og.open(path) as graph:
        graph.create_branch("clash")
        graph.mutate(grow, params={"n": 1}, branch="clash")
        graph.mutate(grow, params={"n": 2})


def test_errors_of_the_write_process_equal_those_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clashing(make_graph(tmp_path / "graph"))
    monkeypatch.setattr("omnigraph.server.jobs.LONG_ROWS", 0)
    with served(single(tmp_path / "graph")) as server, server.client() as client:
        with monkeypatch.context() as patch:
            patch.setattr(OpenGraph, "is_local", False)
            here = collect_refusals(client)
        server.serving.write_process.wait()
        there = collect_refusals(client)
        places = long_writes(client, "here"), long_writes(client, "apart")

    assert there == here
    assert [status for status, _ in here] == [400, 409, 404, 400, 400, 400, 400, 404, 409]
    assert places == (8, 8), "all but the merge of a branch that is not there"
    assert here[8][1]["merge_conflicts"]


def test_a_denied_load_writes_nothing(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with served(single(path, tokens=TOKENS, policy_text=POLICY)) as server:
        server.serving.write_process.wait()
        with server.client("secret-reader") as reader, server.client("secret-writer") as writer:
            denied = reader.load(people("a"))
            no_branch = writer.load(people("a"), branch="new", **{"from": "main"})
            allowed = writer.load(people("b"))

            assert denied.status_code == 403
            assert no_branch.status_code == 403  # may change, may not make branches
            assert allowed.status_code == 200
            assert count_of(reader) == 2 + 400
            assert long_writes(writer, "apart") == 3


def test_a_graph_in_an_object_store_is_written_by_the_server_alone() -> None:
    """Locks of an object store hold within one process only."""
    local = OpenGraph("a", None, None, ServedGraph("a", "/data/graph"), None)  # type: ignore[arg-type]
    stored = OpenGraph("b", None, None, ServedGraph("b", "s3://bucket/graph"), None)  # type: ignore[arg-type]

    assert local.is_local
    assert not stored.is_local


@pytest.mark.parametrize(
    "point",
    sample(
        [
            Failpoint.COMMIT_AFTER_STAGE,
            Failpoint.COMMIT_AFTER_TABLE,
            Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT,
            Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT,
        ],
        every=3,
    ),
)
def test_a_killed_write_process_leaves_a_whole_graph_and_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Failpoint
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, f"{point}=kill")
    with served(single(make_graph(tmp_path / "graph"))) as server, server.client() as client:
        before = count_of(client)
        server.serving.write_process.wait()
        monkeypatch.delenv(ENVIRONMENT_VARIABLE)
        killed = client.load(people("a"))
        after_kill = count_of(client)
        server.serving.write_process.wait()
        again = client.load(people("a"), mode="merge")

        assert killed.status_code == 503
        assert "may have taken effect" in killed.json()["error"]
        assert after_kill in (before, before + 400)
        assert again.status_code == 200
        assert count_of(client) == before + 400
        assert long_writes(client, "apart") == 2


def test_a_stopping_server_finishes_its_long_write_first(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph")
    gate = tmp_path / "gate"
    point = {ENVIRONMENT_VARIABLE: f"{Failpoint.COMMIT_AFTER_STAGE}=wait:{gate}"}
    with started(tmp_path, "graph", "--unauthenticated", **point) as (process, url):
        loading = _load_apart(url, process.pid, gate)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        gate.touch()
        answer = loading.result(60)
        _, err = process.communicate(timeout=60)

    assert answer.status_code == 200, err
    assert process.returncode == 0
    with og.open(tmp_path / "graph") as graph:
        assert graph.query(COUNT).rows()[0]["n"] == 2 + 3 * 400


def test_the_write_process_of_a_killed_server_ends_its_write_and_itself(tmp_path: Path) -> None:
    make_graph(tmp_path / "graph")
    gate = tmp_path / "gate"
    point = {ENVIRONMENT_VARIABLE: f"{Failpoint.COMMIT_AFTER_STAGE}=wait:{gate}"}
    with started(tmp_path, "graph", "--unauthenticated", **point) as (process, url):
        loading = _load_apart(url, process.pid, gate)
        [worker] = workers_of(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with pytest.raises(httpx.HTTPError):
            loading.result(60)
        assert worker.is_running()
        gate.touch()
        psutil.wait_procs([worker], timeout=60)

    assert not worker.is_running()
    with og.open(tmp_path / "graph") as graph:
        assert graph.query(COUNT).rows()[0]["n"] == 2 + 3 * 400


def _load_apart(url: str, pid: int, gate: Path) -> Future[httpx.Response]:
    """Start a load that runs in the second process and stands still there until `gate` is back."""
    gate.touch()
    deadline = time.monotonic() + 60
    assert _post(url, "a").status_code == 200  # this one starts the process
    while not _long_writes(httpx.get(f"{url}/metrics").text, "apart"):
        assert time.monotonic() < deadline
        assert _post(url, "b").status_code == 200
    assert workers_of(pid)
    reached = gate.with_name(f"{gate.name}.reached")
    gate.unlink()
    reached.unlink()
    loading = ThreadPoolExecutor(1).submit(_post, url, "c")
    while not reached.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return loading


def _post(url: str, prefix: str) -> httpx.Response:
    body = {"data": ndjson(people(prefix)), "mode": "merge"}
    return httpx.post(f"{url}/load", json=body, timeout=60)
