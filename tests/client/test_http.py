"""The client among servers that are old, odd or hostile."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from omnigraph.client import connect
from omnigraph.client.http import Http
from omnigraph.errors import AddressError, MergeConflicts, PreconditionFailed, RemoteError
from omnigraph.wire import QueryCall, QueryText

QUERY = QueryCall(QueryText("q"), None, branch="main")


@dataclass
class Seen:
    """One request as a server saw it."""

    method: str
    path: str
    token: str | None
    body: bytes


@dataclass
class Odd:
    """A server that answers as a test wants."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)


Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def server(reply: Callable[[Seen], Reply]) -> Iterator[Odd]:
    odd = Odd()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            token = self.headers.get("authorization")
            seen = Seen(self.command, self.path, token, self.rfile.read(length))
            odd.seen.append(seen)
            status, headers, body = reply(seen)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 — the names that the base class calls

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    odd.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield odd
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def as_json(status: int, **body: Any) -> Reply:
    return status, {"Content-Type": "application/json"}, json.dumps(body).encode()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_takes_no_token_along(status: int) -> None:
    with server(lambda _: as_json(200, branches=[])) as thief:
        elsewhere = {"Location": f"{thief.url}/branches"}
        with (
            server(lambda _: (status, elsewhere, b"")) as odd,
            pytest.raises(RemoteError, match="redirects to") as caught,
        ):
            connect(odd.url, "secret", "g").branches()

    assert thief.seen == []
    assert odd.seen[0].token == "Bearer secret"
    assert "secret" not in str(caught.value)


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(connect("http://h", "secret", "g"))


@pytest.mark.parametrize(
    "reply",
    [
        (200, {}, b"<html>hello</html>"),
        (200, {}, b"[1]"),
        (200, {}, b""),
        (502, {}, b"bad gateway"),
    ],
)
def test_a_server_that_is_not_omnigraph_is_reported(reply: Reply) -> None:
    with server(lambda _: reply) as odd, pytest.raises(RemoteError) as caught:
        connect(odd.url, None, "g").branches()

    assert "not as an Omnigraph server does" in str(caught.value)
    assert caught.value.status == reply[0]


def test_an_error_has_the_text_and_details_of_the_server() -> None:
    facts = {"manifest_conflict": {"table_key": "node:A", "expected": 1, "actual": 2}}
    refusal = as_json(409, error="stale view", code="conflict", **facts)

    with server(lambda _: refusal) as odd, pytest.raises(RemoteError) as caught:
        connect(odd.url, None, "g").mutate(QUERY, if_commit=None)

    error = caught.value
    assert (str(error), error.status, error.code) == ("stale view", 409, "conflict")
    assert error.details == facts


def test_segments_of_a_path_are_encoded_one_by_one() -> None:
    with server(lambda _: as_json(200)) as odd:
        graph = connect(odd.url, None, "a b")
        graph.delete_branch("review/ä?x#y")
        graph.commit("../../healthz")

    assert [each.path for each in odd.seen] == [
        "/graphs/a%20b/branches/review%2F%C3%A4%3Fx%23y",
        "/graphs/a%20b/commits/..%2F..%2Fhealthz",
    ]


def test_without_a_name_the_only_graph_is_taken() -> None:
    one = as_json(200, graphs=[{"graph_id": "g", "uri": "x"}])
    two = as_json(200, graphs=[{"graph_id": "b", "uri": "x"}, {"graph_id": "a", "uri": "y"}])

    with server(lambda _: one) as odd:
        assert connect(odd.url, None, None).uri == f"{odd.url}/graphs/g"
    for silent in (as_json(405, error="one graph"), as_json(403, error="no"), as_json(200)):
        with server(lambda _, reply=silent: reply) as odd:  # type: ignore[misc]
            assert connect(odd.url, None, None).uri == odd.url
    with server(lambda _: two) as odd, pytest.raises(AddressError, match="--graph: a, b"):
        connect(odd.url, None, None)


def test_an_older_server_gets_a_load_in_a_body(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_bytes(b'{"type":"A"}\n')

    def reply(seen: Seen) -> Reply:
        if "/ndjson" in seen.path or "/files" in seen.path:
            return as_json(404, error="no such path", code="not_found")
        return as_json(
            200, branch="dev", nodes=[{"name": "A", "entities_loaded": 3}], edges=[], tables=[]
        )

    with server(reply) as odd:
        report = connect(odd.url, None, "g").load(
            [str(records)], mode="merge", branch="dev", base="main", embed=True
        )

    assert [each.path.partition("?")[0] for each in odd.seen] == [
        "/graphs/g/load/files",
        "/graphs/g/load/ndjson",
        "/graphs/g/load",
    ]
    assert json.loads(odd.seen[2].body) == {
        "data": '{"type":"A"}\n',
        "branch": "dev",
        "mode": "merge",
        "embed": True,
        "from": "main",
    }
    assert (report["nodes_loaded"], report["node_types_loaded"]) == (3, 1)
    assert report["uri"] == f"{odd.url}/graphs/g"


def test_lines_break_at_newlines_and_nowhere_else() -> None:
    """Unicode has more line ends than JSON lines do."""
    lines = ['{"a":"x\u2028y\x85z"}', '{"b":"\u00e4"}', '{"c":1}']

    with server(lambda _: (200, {}, "\n".join(lines).encode())) as odd:
        found = list(Http(odd.url).lines("POST", "/export", json={}))

    assert found == lines


def test_a_truncated_response_is_an_error() -> None:
    cut = (200, {"Content-Length": "100"}, b'{"a":1}\n')

    with server(lambda _: cut) as odd, pytest.raises(RemoteError, match="broke off"):
        list(Http(odd.url).lines("POST", "/export", json={}))


def test_failed_preconditions_and_merge_conflicts_are_raised_as_such() -> None:
    lost = as_json(412, error="x", precondition_failure={"expected": "a", "actual": "b"})
    conflict = {
        "table_key": "node:A",
        "row_id": "r",
        "kind": "divergent_update",
        "message": "m",
        "base": {"p": 0},
        "ours": {"p": 1},
        "theirs": {"p": 2},
        "entity_id": "r",
    }

    with server(lambda _: lost) as odd, pytest.raises(PreconditionFailed) as failed:
        connect(odd.url, None, "g").mutate(QUERY, if_commit="a")
    merge = as_json(409, error="merge conflicts: …", code="conflict", merge_conflicts=[conflict])
    with server(lambda _: merge) as odd, pytest.raises(MergeConflicts) as found:
        connect(odd.url, None, "g").merge("dev", "main", delete_branch=False)

    assert (failed.value.expected, failed.value.actual) == ("a", "b")
    assert str(found.value) == "merge conflicts: node:A 'r' divergent_update"
    assert found.value.conflicts[0].theirs == {"p": 2}
    assert found.value.into == "main"
