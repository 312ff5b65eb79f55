"""The change feed over HTTP: pages, events, a baseline, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.server.settings import Limits
from tests.http.serving import ADA, INSERT, SCHEMA, Client, Served, make_graph, served, single
from tests.http.test_policy import POLICY, READ_OFF_MAIN, TOKENS

pytestmark = pytest.mark.slow


def add(client: Client, slug: str, branch: str = "main") -> str:
    answer = client.mutate(INSERT, params={"slug": slug}, branch=branch)
    commit_id: str = answer.json()["commit"]["graph_commit_id"]
    return commit_id


def ids(page: dict[str, Any]) -> list[str]:
    return [change["id"] for block in page["blocks"] for change in block["changes"]]


def test_a_baseline_and_the_polls_after_it_are_the_whole_graph(own: Served) -> None:
    with own.client() as client:
        lines = client.post("/changes/baseline", {"kind": ["node"]}).text.splitlines()
        *records, last = map(json.loads, lines)
        cursor = last["baseline"]["resume_cursor"]
        made = [add(client, slug) for slug in ("kim", "lin")]
        first = client.get("/changes", cursor=cursor, kind="node", limit=1).json()
        token = first["next_page_token"]
        second = client.get("/changes", page_token=token, kind="node", limit=1).json()

    assert last["baseline"]["snapshot_commit_id"] not in made
    assert {each["data"]["slug"] for each in records} == {"ada", "grace", "acme"}
    assert (ids(first), ids(second)) == (["kim"], ["lin"])
    assert "cursor" not in first
    assert (second["caught_up"], "next_page_token" in second) == (True, False)
    assert second["blocks"][0]["cause"]["graph_commit_id"] == made[1]


def test_one_commit_is_read_in_pages(own: Served) -> None:
    with own.client() as client:
        records = [{"type": "Person", "data": {"slug": f"p{n}"}} for n in range(3)]
        loaded = client.load([*records, ADA]).json()["commit"]["graph_commit_id"]
        first = client.get(f"/commits/{loaded}/changes", limit=2).json()
        token = first["next_page_token"]
        second = client.get(f"/commits/{loaded}/changes", limit=2, page_token=token).json()

    found = [change["id"] for page in (first, second) for change in page["changes"]]
    assert found == ["p0", "p1", "p2"]
    assert first["cause"] == second["cause"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/changes?cursor=x", 400, "change cursor rejected: "),
        ("/changes?page_token=x", 400, "change cursor rejected: "),
        ("/changes?start=x", 400, "expected now, beginning or after:COMMIT"),
        ("/changes?start=now&cursor=x", 400, "give one of cursor, start and page_token"),
        ("/changes?since=x", 400, "there is no parameter `since`"),
        ("/changes?kind=nodes", 400, "there is no kind 'nodes'"),
        ("/changes?limit=9000", 413, "8192"),
        ("/changes?branch=nope", 404, "branch 'nope' not found"),
        ("/commits/nope/changes", 404, "commit 'nope' not found"),
    ],
)
def test_what_makes_no_sense_is_refused(client: Client, path: str, status: int, words: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_removed_history_is_a_410_that_says_where_it_begins(graph_path: Path) -> None:
    with og.open(graph_path) as graph:
        cursor = graph.poll_changes(start="now").cursor
        gone = graph.commits()[0].commit_id
        for slug in ("a", "b"):
            graph.mutate(INSERT, params={"slug": slug})
        graph.cleanup(keep=1, confirm=True)

    with served(single(graph_path)) as server, server.client() as client:
        answer = client.get("/changes", cursor=cursor)

    assert answer.status_code == 410
    gap = {"cursor": cursor, "first_unreadable_commit_id": gone}
    assert answer.json()["change_feed_gap"] == gap
    assert "code" not in answer.json()


def test_a_cursor_of_something_else_is_a_400_that_says_of_what(own: Served, tmp_path: Path) -> None:
    """Of another branch, incarnation, filter, kind, graph; forged, cut, and too long."""
    with served(single(make_graph(tmp_path / "other"))) as other, other.client() as client:
        add(client, "x")
        foreign = client.get("/changes").json()["cursor"]
    with own.client() as client:
        client.post("/branches", {"name": "dev"})
        begun = client.get("/changes", start="beginning", limit=1).json()["next_page_token"]
        of_dev = client.get("/changes", branch="dev").json()["cursor"]
        cursor = client.get("/changes", type="Person").json()["cursor"]
        client.send("DELETE", "/branches/dev")
        gone = client.get("/changes", branch="dev", cursor=of_dev)
        client.post("/branches", {"name": "dev"})
        flipped = ("B" if cursor[20] == "A" else "A").join((cursor[:20], cursor[21:]))
        rejected = {
            "another branch than 'main'": {"cursor": of_dev},
            "deleted and made again": {"cursor": of_dev, "branch": "dev"},
            "made with other filters": {"cursor": cursor},
            "it is no page token": {"page_token": cursor, "type": "Person"},
            "it is no cursor token": {"cursor": begun},
            "is not on the line of branch 'main'": {"cursor": foreign},
            "it is damaged": {"cursor": flipped, "type": "Person"},
            "it is too long": {"cursor": "A" * 9_000},
        }
        answers = {words: client.get("/changes", **asked) for words, asked in rejected.items()}
        events = client.http.get(
            "/changes", headers={"Accept": "text/event-stream", "Last-Event-ID": f"page:{of_dev}"}
        )

    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    for words, answer in (*answers.items(), ("it is no page token", events)):
        error = answer.json()["error"]
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request"), error
        assert error.startswith("change cursor rejected: ")
        assert words in error


def test_the_commits_of_deleted_branches_and_of_removed_states_are_refused_by_kind(
    graph_path: Path,
) -> None:
    with og.open(graph_path) as graph:
        graph.create_branch("dev")
        graph.mutate(INSERT, params={"slug": "x"}, branch="dev")
        lost = graph.commits("dev")[0].commit_id
        graph.delete_branch("dev")
        for slug in ("a", "b"):
            graph.mutate(INSERT, params={"slug": slug})
        old = graph.commits()[1].commit_id
        graph.cleanup(keep=1, confirm=True)

    with served(single(graph_path)) as server, server.client() as client:
        answers = [client.get(f"/commits/{each}/changes") for each in (lost, old)]

    assert [each.status_code for each in answers] == [404, 410]
    assert answers[1].json()["change_feed_gap"] == {"first_unreadable_commit_id": old}


def test_a_type_filter_goes_on_after_a_rename(own: Served) -> None:
    renamed = SCHEMA.replace("node Person {", 'node Human @rename_from("Person") {').replace(
        "Person ->", "Human ->"
    )
    with own.client() as client:
        cursor = client.get("/changes", type="Person").json()["cursor"]
        schema = renamed.replace("-> Person", "-> Human")
        assert client.post("/schema/apply", {"schema_source": schema}).status_code == 200
        for slug in ("kim", "lin"):
            client.mutate(INSERT.replace("Person", "Human"), params={"slug": slug})
            page = client.get("/changes", cursor=cursor, type="Person").json()
            cursor = page["cursor"]
            assert (ids(page), page["caught_up"]) == ([slug], True)


def test_the_feed_is_as_readable_as_its_branch(graph_path: Path) -> None:
    with og.open(graph_path) as graph:
        graph.create_branch("open")
        graph.mutate(INSERT, params={"slug": "x"}, branch="open")
        on_main, on_branch = graph.commits("main")[0], graph.commits("open")[0]

    with (
        served(single(graph_path, tokens=TOKENS, policy_text=READ_OFF_MAIN)) as server,
        server.client("bob-token") as bob,
    ):
        assert bob.get("/changes").status_code == 403
        assert bob.get("/changes", branch="open").status_code == 200
        assert bob.get(f"/commits/{on_main.commit_id}/changes").status_code == 403
        assert bob.get(f"/commits/{on_branch.commit_id}/changes").status_code == 200
        assert bob.post("/changes/baseline", {"branch": "open"}).status_code == 403, "no export"
    with (
        served(single(graph_path, tokens=TOKENS, policy_text=POLICY)) as server,
        server.client("ada-token") as ada,
    ):
        assert ada.post("/changes/baseline", {}).status_code == 200


def read_events(response: httpx.Response) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Event by event: its name, its id, its data."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {}


def test_events_follow_commits_and_go_on_where_a_reader_was_cut_off(own: Served) -> None:
    headers = {"Accept": "text/event-stream"}
    with own.client() as client:
        cursor = client.get("/changes").json()["cursor"]
        add(client, "kim")
        path = f"/changes?cursor={cursor}&limit=1"
        with client.http.stream("GET", path, headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = read_events(response)
            name, last, page = next(events)
            assert (name, ids(page)) == ("changes", ["kim"])
            with own.client() as writer:
                add(writer, "lin")
            assert ids(next(events)[2]) == ["lin"]
        add(client, "max")
        again = {**headers, "Last-Event-ID": last}
        with client.http.stream("GET", "/changes?limit=1", headers=again) as response:
            events = read_events(response)
            assert [ids(next(events)[2]) for _ in range(2)] == [["lin"], ["max"]]

        refused = client.http.get("/changes?cursor=x", headers=headers)
        assert refused.status_code == 400


def test_streams_of_events_are_counted_and_end_when_the_server_does(graph_path: Path) -> None:
    headers = {"Accept": "text/event-stream"}
    limits = Limits(event_streams_max=1)
    with (
        served(single(graph_path, limits=limits)) as server,
        server.client() as client,
        client.http.stream("GET", "/changes", headers=headers) as response,
    ):
        assert response.status_code == 200
        with server.client() as second:
            refused = second.http.get("/changes", headers=headers)
        assert refused.status_code == 429
        server.serving.events.close()
        assert response.read() == b"", "it ended by itself"


def test_an_event_stream_is_told_what_went_wrong(own: Served) -> None:
    headers = {"Accept": "text/event-stream"}
    with own.client() as client:
        client.post("/branches", {"name": "dev"})
        with client.http.stream("GET", "/changes?branch=dev", headers=headers) as response:
            with own.client() as other:
                other.send("DELETE", "/branches/dev")
            name, _, error = next(read_events(response))

    assert name == "error"
    assert "branch 'dev' not found" in error["error"]


def test_a_new_graph_has_a_feed_from_its_beginning(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    with served(single(path)) as server, server.client() as client:
        page = client.get("/changes", start="beginning").json()

    assert set(ids(page)) >= {"ada", "grace", "acme"}
    assert page["caught_up"] is True
