"""Jobs: upkeep over HTTP has an id, says how far it is, and what came of it, whatever dies."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

import omnigraph as og
from omnigraph.failpoints import ENVIRONMENT_VARIABLE, Failpoint
from omnigraph.server import upkeep_runner
from tests.cli.running import run
from tests.depth import depth
from tests.http.serving import INSERT, Client, make_graph, served, single
from tests.http.test_process import started
from tests.http.test_write_process import workers_of

pytestmark = pytest.mark.slow

TOKENS = {"act-ops": "ops-token", "act-bob": "bob-token", "act-eye": "eye-token"}
POLICY = """
version: 1
groups: { ops: [act-ops], writers: [act-bob], watchers: [act-eye] }
rules:
  - { id: ops, allow: { actors: { group: ops }, actions: [optimize, cleanup, repair, verify] } }
  - { id: write, allow: { actors: { group: writers }, actions: [read, change] } }
  - { id: watch, allow: { actors: { group: watchers }, actions: [verify] } }
"""
KINDS: dict[str, dict[str, Any]] = {
    "optimize": {},
    "ensure_indices": {"branch": "main"},
    "cleanup": {"keep": 1, "confirm": True},
    "repair": {"confirm": True},
    "verify": {"content": True},
}


def wait_for(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Ask until a job has ended."""
    while (job := ask())["state"] in ("queued", "running"):
        time.sleep(0.01)
    return job


def ended(client: Client, job_id: str) -> dict[str, Any]:
    return wait_for(lambda: client.get(f"/jobs/{job_id}").json())


def test_every_kind_of_upkeep_runs_as_a_job(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        client.mutate(INSERT, params={"slug": "a"})
        started_jobs = {
            kind: client.post("/jobs", {"kind": kind, **options}) for kind, options in KINDS.items()
        }
        assert {each.status_code for each in started_jobs.values()} == {202}
        jobs = {kind: ended(client, each.json()["job_id"]) for kind, each in started_jobs.items()}
        listed = client.get("/jobs").json()["jobs"]
        metrics = client.http.get("/metrics").text

        assert {job["state"] for job in jobs.values()} == {"succeeded"}, jobs
        assert all(job["started_at"] <= job["ended_at"] for job in jobs.values())
        assert jobs["optimize"]["report"]["tables"][-1]["table_key"] == "__manifest"
        assert jobs["verify"]["report"]["clean"] is True
        assert {job["kind"] for job in listed} == set(KINDS)
        assert all(job["report"] is None for job in listed)
        assert 'omnigraph_jobs_total{kind="verify",outcome="succeeded"} 1.0' in metrics
        assert len(client.rows()) == 3
    assert not list((graph_path / "__locks").glob("*.alive"))


def test_a_repeated_request_finds_the_job_that_it_started(graph_path: Path) -> None:
    """Its reply may have been lost: the same id and request is the same job, another is refused."""
    with served(single(graph_path)) as server, server.client() as client:
        body = {"kind": "verify", "job_id": "mine"}
        first, again = client.post("/jobs", body), client.post("/jobs", body)
        done = ended(client, "mine")
        after = client.post("/jobs", body)
        other = client.post("/jobs", {"kind": "optimize", "job_id": "mine"})

        assert [each.status_code for each in (first, again, after, other)] == [202, 202, 202, 409]
        assert after.json() == done
        assert len(client.get("/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"kind": "cleanup"}, "needs a policy"),
        ({"kind": "cleanup", "keep": 0}, "keep"),
        ({"kind": "cleanup", "older_than": "soon"}, "soon"),
        ({"kind": "optimize", "keep": 3}, "has no option `keep`"),
        ({"kind": "repair", "force": True}, "`force` needs `confirm`"),
        ({"kind": "verify", "contents": True}, "did you mean `content`"),
        ({"kind": "vacuum"}, "kind"),
        ({"kind": "verify", "job_id": "../x"}, "is not a job id"),
        ({"kind": "verify", "job_id": ""}, "is not a job id"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_at_once(
    client: Client, body: dict[str, Any], text: str
) -> None:
    before = client.get("/jobs").json()

    refused = client.post("/jobs", body)

    assert refused.status_code == 400
    assert text in refused.json()["error"]
    assert client.get("/jobs").json() == before
    assert client.get("/jobs/nope").status_code == 404


def test_only_who_may_start_a_kind_of_job_learns_of_it(graph_path: Path) -> None:
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("ops-token") as ops,
        server.client("bob-token") as bob,
        server.client("eye-token") as eye,
    ):
        ids = {
            kind: ops.post("/jobs", {"kind": kind, **options}).json()["job_id"]
            for kind, options in KINDS.items()
        }
        jobs = {kind: ended(ops, job_id) for kind, job_id in ids.items()}
        assert {job["state"] for job in jobs.values()} == {"succeeded"}, jobs
        assert {job["actor_id"] for job in jobs.values()} == {"act-ops"}
        for kind, options in KINDS.items():
            assert bob.post("/jobs", {"kind": kind, **options}).status_code == 403
            may = kind == "verify"
            assert eye.post("/jobs", {"kind": kind, **options}).status_code == 202 if may else 403
            assert eye.get(f"/jobs/{ids[kind]}").status_code == (200 if may else 404)
        assert eye.post("/jobs", {"kind": "verify", "record": True}).status_code == 403
        assert {job["kind"] for job in eye.get("/jobs").json()["jobs"]} == {"verify"}
        assert [bob.get(path).status_code for path in ("/jobs", "/doctor")] == [403, 403]
        assert [eye.get(path).status_code for path in ("/jobs", "/doctor")] == [200, 200]


def test_a_failure_is_the_outcome_of_its_job(graph_path: Path) -> None:
    with served(single(graph_path)) as server, server.client() as client:
        job = client.post("/jobs", {"kind": "ensure_indices", "branch": "nope"}).json()

        failed = ended(client, job["job_id"])

        assert failed["state"] == "failed"
        assert "branch 'nope' not found" in failed["error"]["error"]
        assert failed["error"]["code"] == "not_found"


def test_the_newest_jobs_are_kept(graph_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.upkeep.job_records.KEPT_MAX", 2)
    with served(single(graph_path)) as server, server.client() as client:
        for number in range(4):
            client.post("/jobs", {"kind": "optimize", "job_id": f"job-{number}"})
            ended(client, f"job-{number}")

        names = [job["job_id"] for job in client.get("/jobs").json()["jobs"]]

    assert names == ["job-3", "job-2", "job-1"]  # pruned when the last one came


def test_too_many_jobs_that_wait_are_refused(
    graph_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_runner, "PENDING_MAX", 0)
    with served(single(graph_path)) as server, server.client() as client:
        refused = client.post("/jobs", {"kind": "optimize"})

        assert refused.status_code == 429
        assert client.get("/jobs").json() == {"jobs": []}


@pytest.mark.parametrize("dies", ["server", "both", "process"][:: depth(2, 1)])
def test_a_job_says_what_happened_after_a_kill(tmp_path: Path, dies: str) -> None:
    """kill -9 in the middle of a cleanup: the job ends with its process, or says that it did not.

    The write process outlives its server and ends the job; without it the job was interrupted, and
    both are said by the next server, and by the store itself.
    """
    path = make_graph(tmp_path / "graph")
    with og.open(path) as graph:
        graph.mutate(INSERT, params={"slug": "new"})
    gate = tmp_path / "gate"
    points = {ENVIRONMENT_VARIABLE: f"{Failpoint.CLEANUP_TABLE_GC.value}=wait:{gate}@2"}
    with started(tmp_path, "graph", "--unauthenticated", **points) as (process, url):
        body = {"kind": "cleanup", "job_id": "mine", "keep": 1, "confirm": True}
        assert httpx.post(f"{url}/jobs", json=body, timeout=60).status_code == 202
        while not gate.with_name("gate.reached").exists():
            time.sleep(0.01)
        running = httpx.get(f"{url}/jobs/mine").json()
        worker = workers_of(process.pid)[0]
        if dies in ("server", "both"):
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            seen = json.loads(run("jobs", "show", "mine", "--json", "--store", str(path)).out)
            assert seen["state"] == "running"  # the other process is still there
        if dies in ("both", "process"):
            worker.kill()
        gate.touch()
        psutil.wait_procs([worker])
        if dies == "process":
            lost = wait_for(lambda: httpx.get(f"{url}/jobs/mine").json())
            assert lost["state"] == "interrupted"

    with started(tmp_path, "graph", "--unauthenticated") as (_, url):
        job = httpx.get(f"{url}/jobs/mine").json()
        shown = run("jobs", "show", "mine", "--server", url)
        stored = run("jobs", "show", "mine", "--json", "--store", str(path))
        checked = run("verify", "--server", url)

    assert running["state"] == "running"
    assert running["progress"]["total"] > 1
    assert json.loads(stored.out) == job
    assert checked.code == 0, checked.out
    if dies == "server":
        assert (job["state"], shown.code) == ("succeeded", 0)
        assert job["report"]["confirm"] is True
    else:
        assert (job["state"], shown.code) == ("interrupted", 1)
        text = job["error"]["error"]
        assert "the process behind it stopped while it ran at step" in text
        assert "what it had removed stays removed; start it again" in text


@pytest.mark.parametrize("point", [Failpoint.JOB_BEFORE_RUN, Failpoint.JOB_BEFORE_OUTCOME])
def test_a_job_that_dies_at_its_ends_is_interrupted(tmp_path: Path, point: Failpoint) -> None:
    """Its process dies before it does anything, or before it could say what it did."""
    make_graph(tmp_path / "graph")
    points = {ENVIRONMENT_VARIABLE: f"{point.value}=kill"}
    with started(tmp_path, "graph", "--unauthenticated", **points) as (_, url):
        httpx.post(f"{url}/jobs", json={"kind": "optimize", "job_id": "mine"}, timeout=60)

        lost = wait_for(lambda: httpx.get(f"{url}/jobs/mine").json())

        assert lost["state"] == "interrupted"
        assert lost["ended_at"] is not None
        assert httpx.get(f"{url}/snapshot").status_code == 200


def test_the_command_waits_through_a_restart(tmp_path: Path) -> None:
    """A server that goes away while a command waits: the command asks the next one."""
    path = make_graph(tmp_path / "graph")
    gate = tmp_path / "gate"
    points = {ENVIRONMENT_VARIABLE: f"{Failpoint.JOB_BEFORE_RUN.value}=wait:{gate}"}
    with (
        started(tmp_path, "graph", "--unauthenticated", **points) as (process, url),
        ThreadPoolExecutor(1) as pool,
    ):
        waiting = pool.submit(run, "optimize", "--server", url, "--json")
        while not gate.with_name("gate.reached").exists():
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        gate.touch()
        with started(tmp_path, "graph", "--unauthenticated", bind=url.removeprefix("http://")):
            outcome = waiting.result()

    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["uri"] == str(path)
