"""Reload: tokens, policies and stored queries change under a running server, all or none."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.errors import BadRequestError, ConfigError
from omnigraph.server.boot import Arguments
from omnigraph.server.events import LAST_EVENT
from omnigraph.server.settings import Limits
from omnigraph.server.source import Source
from tests.http.serving import INSERT, PEOPLE, Client, Served, make_graph, served
from tests.http.test_process import started
from tests.http.test_write_process import people

TOKENS = {"act-ada": "ada-1", "act-bob": "bob-1"}
READERS = """
version: 1
groups: { all: [act-ada, act-bob] }
protected_branches: [main]
rules:
  - { id: read, allow: { actors: { group: all }, actions: [read, invoke_query] } }
  - { id: new, allow: { actors: { group: all }, actions: [branch_create] } }
  - { id: side, allow: { actors: { group: all }, actions: [change], branch_scope: unprotected } }
"""
WRITERS = READERS.replace("branch_scope: unprotected", "branch_scope: any")
PROJECT = "policy: { file: policy.yaml }\nqueries: ./stored\n"
MUTATION = {"query": INSERT, "params": {"slug": "x"}}
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"


class Project:
    """The files of a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_graph(folder / "graph")
        (folder / "stored").mkdir()
        self.write("omnigraph.yaml", PROJECT)
        self.write("policy.yaml", READERS)
        self.write("tokens.json", json.dumps(TOKENS))
        self.write("stored/people.gq", PEOPLE)

    def write(self, name: str, text: str) -> None:
        """Replace a file as a careful person does: by a rename."""
        fresh = self.folder / "fresh"
        fresh.write_text(text)
        os.replace(fresh, self.folder / name)

    def source(self) -> Source:
        arguments = Arguments(uri=str(self.folder / "graph"), config=self.folder / "omnigraph.yaml")
        return Source(arguments, {TOKENS_FILE: str(self.folder / "tokens.json")})

    @contextmanager
    def served(self) -> Iterator[Served]:
        source = self.source()
        settings = replace(source.read(), limits=Limits(reload_seconds=0.01))
        with served(settings, source) as server:
            yield server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


WRONG_FILES = {
    "policy.yaml": "version: 1\nrules: [nonsense]\n",
    "tokens.json": '{"act-ada": ["ada-2"]}',
    "omnigraph.yaml": "graphs: [\n",
    "stored/broken.gq": "query broken() { match { $x: Robot } return { $x } }",
}


def wait_until(holds: Callable[[], Any]) -> None:
    """Wait for what a reload brings; the limit of the suite ends a wait for nothing."""
    while not holds():
        time.sleep(0.005)


def state_of(client: Client) -> str:
    found: str = client.get("/readyz").json()["configuration"]["state"]
    return found


def reloads(client: Client, outcome: str) -> int:
    name = f'omnigraph_reloads_total{{outcome="{outcome}"}}'
    lines = client.http.get("/metrics").text.splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))


def test_a_changed_policy_decides_the_next_request_and_a_wrong_one_none(project: Project) -> None:
    with project.served() as server, server.client("ada-1") as ada:
        before = ada.post("/mutate", MUTATION)
        project.write("policy.yaml", WRITERS)
        wait_until(lambda: reloads(ada, "applied"))
        allowed = ada.post("/mutate", MUTATION)

        project.write("policy.yaml", READERS.replace("actions: [read", "actions: [raed"))
        wait_until(lambda: reloads(ada, "refused"))
        kept = ada.post("/mutate", MUTATION)
        refused = (
            state_of(ada),
            "omnigraph_configuration_is_refused 1.0" in ada.get("/metrics").text,
        )
        project.write("policy.yaml", READERS)
        wait_until(lambda: state_of(ada) == "current")
        after = ada.post("/mutate", MUTATION)

    assert [each.status_code for each in (before, allowed, kept, after)] == [403, 200, 200, 403]
    assert refused == ("refused", True)


def test_nothing_changes_while_one_of_several_files_is_wrong(project: Project) -> None:
    """The new tokens are right and the stored queries wrong: the old tokens stay with them."""
    with project.served() as server, server.client("ada-1") as old, server.client("ada-2") as new:
        project.write("stored/broken.gq", "query broken() { match { $x: Robot } return { $x } }")
        project.write("tokens.json", json.dumps(TOKENS | {"act-ada": "ada-2"}))
        wait_until(lambda: reloads(old, "refused"))
        meanwhile = old.query().status_code, new.query().status_code
        (project.folder / "stored" / "broken.gq").unlink()
        wait_until(lambda: reloads(new, "applied"))

        assert meanwhile == (200, 401)
        assert (old.query().status_code, new.query().status_code) == (401, 200)


def test_a_server_follows_a_directory_of_stored_queries(project: Project) -> None:
    with project.served() as server, server.client("ada-1") as ada:

        def names() -> list[str]:
            listed = [each["name"] for each in ada.get("/queries").json()["queries"]]
            paths = ada.http.get("/openapi.json").json()["paths"]
            assert [path for path in paths if path.startswith("/queries/") and "{" not in path] == [
                f"/queries/{name}" for name in listed
            ]
            return listed

        before = names()
        project.write(
            "stored/more.gq", PEOPLE.replace("people", "one") + PEOPLE.replace("people", "two")
        )
        wait_until(lambda: reloads(ada, "applied") == 1)
        grown, answer = names(), ada.post("/queries/two", {})
        (project.folder / "stored" / "more.gq").unlink()
        wait_until(lambda: reloads(ada, "applied") == 2)

        assert (before, grown, names()) == (["people"], ["one", "people", "two"], ["people"])
        assert answer.json()["row_count"] == 2
        assert ada.post("/queries/two", {}).status_code == 404


def test_a_stream_of_events_ends_when_its_token_does(project: Project) -> None:
    with project.served() as server, server.client("ada-1") as ada, server.client("bob-1") as bob:
        headers = {"Accept": "text/event-stream", "Authorization": "Bearer ada-1"}
        with ada.http.stream("GET", "/changes?start=beginning", headers=headers) as stream:
            lines = stream.iter_lines()
            seen = [next(lines) for _ in range(2)]
            project.write("tokens.json", json.dumps({"act-bob": "bob-1"}))
            wait_until(lambda: reloads(bob, "applied"))
            list(lines)  # ends
        last = seen[1].removeprefix("id: ")
        again = ada.http.get("/changes", headers={**headers, LAST_EVENT: last})

        assert seen[0] == "event: changes"
        assert again.status_code == 401


def test_what_only_a_restart_changes_is_named_and_the_rest_changes(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    with project.served() as server, server.client("bob-1") as bob:
        source = project.source()
        project.write("omnigraph.yaml", PROJECT + 'server: { bind: "127.0.0.1:1" }\n')
        project.write("tokens.json", json.dumps({"act-bob": "bob-1"}))
        wait_until(lambda: reloads(bob, "applied"))

        assert state_of(bob) == "restart_needed"
        assert "in effect only after a restart: server.bind" in caplog.text
        with server.client("ada-1") as ada:
            assert ada.query().status_code == 401
        project.write("tokens.json", "{}")  # a server without tokens lets in every caller
        with pytest.raises(BadRequestError, match="there is a policy but no bearer token"):
            source.read().check()
        wait_until(lambda: reloads(bob, "refused"))
        assert bob.query().status_code == 200
        assert "bob-1" not in caplog.text


def test_a_file_that_is_still_being_written_is_not_read(project: Project) -> None:
    source = project.source()
    source.read()
    quiet = source.has_changed()
    path = project.folder / "policy.yaml"
    with path.open("w") as writing:
        writing.write(WRITERS[:50])
        writing.flush()
        first = source.has_changed()
        writing.write(WRITERS[50:])
    second, third = source.has_changed(), source.has_changed()

    assert (quiet, first, second, third) == (False, False, False, True)
    source.read()
    assert not source.has_changed()


def test_a_directory_of_queries_has_each_name_once(tmp_path: Path) -> None:
    (tmp_path / "omnigraph.yaml").write_text("queries: ./stored\n")
    source = Source(Arguments(uri="g", config=tmp_path / "omnigraph.yaml"), {})
    with pytest.raises(ConfigError, match="stored' is not a directory"):
        source.read()
    (tmp_path / "stored").mkdir()
    source.read()  # a place for queries to be stored in
    for name in ("a.gq", "b.gq"):
        (tmp_path / "stored" / name).write_text(PEOPLE)

    with pytest.raises(ConfigError, match="'people' is declared in"):
        source.read()


@pytest.mark.slow
def test_the_write_process_decides_by_the_policy_of_the_last_reload(project: Project) -> None:
    """It has opened the graph before: without the new policy it would refuse what is allowed."""
    with project.served() as server, server.client("ada-1") as ada:
        server.serving.write_process.wait()
        on_branch = ada.load(people("a"), branch="side", **{"from": "main"})
        refused = ada.load(people("b"))
        project.write("policy.yaml", WRITERS)
        wait_until(lambda: reloads(ada, "applied"))
        allowed = ada.load(people("c"))
        apart = 'omnigraph_long_writes_total{place="apart"} 3.0' in ada.get("/metrics").text

    assert [each.status_code for each in (on_branch, refused, allowed)] == [200, 403, 200]
    assert apart


@pytest.mark.slow
def test_a_signal_changes_tokens_refuses_wrong_files_and_lets_requests_finish(
    project: Project,
) -> None:
    """The whole process: a write is held in the middle of its commit by a token that is gone."""
    project.write("policy.yaml", WRITERS)
    gate = project.folder / "gate"
    with started(
        project.folder,
        "graph",
        OMNIGRAPH_SERVER_BEARER_TOKENS_FILE="tokens.json",
        OMNIGRAPH_SERVER_RELOAD_SECONDS="3600",
        OMNIGRAPH_FAILPOINTS=f"mutation.post_finalize_pre_publisher=wait:{gate}",
    ) as (process, url):
        answers: list[httpx.Response] = []

        def send(token: str, path: str, body: Any) -> httpx.Response:
            headers = {"Authorization": f"Bearer {token}"}
            return httpx.post(f"{url}{path}", json=body, headers=headers, timeout=60)

        def status(token: str) -> int:
            return send(token, "/query", {"query": PEOPLE}).status_code

        writer = threading.Thread(target=lambda: answers.append(send("ada-1", "/mutate", MUTATION)))
        writer.start()
        wait_until(gate.with_name("gate.reached").exists)
        before = status("ada-1"), status("ada-2")
        project.write("tokens.json", json.dumps({"act-ada": "ada-2"}))
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: status("ada-1") == 401)
        after = status("ada-1"), status("ada-2")
        gate.touch()
        writer.join()

        kept = []
        for name, wrong in WRONG_FILES.items():
            path = project.folder / name
            right = path.read_text() if path.exists() else None
            project.write(name, wrong)
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: '"refused"' in httpx.get(f"{url}/readyz").text)
            kept.append((send("ada-2", "/mutate", MUTATION).status_code, status("ada-1")))
            path.unlink() if right is None else project.write(name, right)
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: '"current"' in httpx.get(f"{url}/readyz").text)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()

    assert (before, after) == ((200, 401), (401, 200))
    assert [each.status_code for each in answers] == [200]
    assert kept == [(200, 401)] * len(WRONG_FILES)
    assert process.returncode == 0
    for name in (*WRONG_FILES, "policy.yaml:2:9"):
        assert name in err
    assert "ada-2" not in err
