"""Hostile clients: too much, too deep, too slow, gone. The server answers others all the while."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.settings import Limits, ServerSettings
from tests.http.serving import INSERT, PEOPLE, Client, Served, make_graph, served, single

pytestmark = pytest.mark.slow

SMALL = Limits(body_bytes_max=2_000, load_bytes_max=4_000, stall_seconds=0.3)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with little patience."""
    path = make_graph(tmp_path_factory.mktemp("strict") / "graph")
    settings: ServerSettings = single(path, limits=SMALL)
    with served(settings) as server:
        yield server


def pieces(size: int, count: int) -> Iterator[bytes]:
    """A body without a declared length."""
    for _ in range(count):
        yield b" " * size


def talk(server: Served, request: bytes) -> bytes:
    """Send raw bytes and read until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
        return answer


@pytest.mark.parametrize("path", ["/query", "/mutate", "/branches", "/schema/apply", "/export"])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_over_the_limit_is_a_413(strict: Served, path: str, is_chunked: bool) -> None:
    with strict.client() as client:
        body = pieces(500, 6) if is_chunked else b" " * 3_000
        answer = client.send(
            "POST", path, content=body, headers={"Content-Type": "application/json"}
        )

        assert answer.status_code == 413
        limit = answer.json()["resource_limit"]
        assert limit["resource"] == "request_body_bytes"
        assert limit["limit"] == 2_000 < limit["actual"]


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_batch_over_the_limit_is_a_413_with_its_own_name(
    strict: Served, is_chunked: bool
) -> None:
    with strict.client() as client:
        answer = client.send(
            "POST",
            "/load/ndjson",
            content=pieces(900, 6) if is_chunked else b" " * 5_000,
            headers={"Content-Type": "application/x-ndjson"},
        )
        fits = client.send(
            "POST",
            "/load/ndjson",
            content=b" " * 3_900,
            headers={"Content-Type": "application/x-ndjson"},
        )

        assert answer.status_code == 413
        assert answer.json()["resource_limit"]["resource"] == "graph_batch_request_bytes"
        assert fits.status_code == 200


def test_an_endless_body_is_cut_off(strict: Served) -> None:
    """It is neither kept nor read to its end: the answer comes and the line is closed."""
    head = (
        b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"3e8\r\n" + b" " * 1_000 + b"\r\n"
    answer = b""
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as connection:
        connection.sendall(head)
        try:
            for _ in range(100_000):
                connection.sendall(chunk)
        except OSError:
            pass
        else:
            pytest.fail("the server took 100 MB of a body that may have 2 kB")
        try:
            answer = connection.recv(65_536)
        except OSError:
            answer = b""  # the line was cut before we looked

    assert answer == b"" or b"413" in answer


def test_a_body_that_stops_coming_is_given_up(strict: Served) -> None:
    answer = talk(
        strict,
        b"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{",
    )

    assert b"408" in answer.split(b"\r\n")[0]
    assert b'"code":"bad_request"' in answer


def test_a_client_that_leaves_in_its_body_is_forgotten(strict: Served) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", strict.port)) as connection:
            connection.sendall(
                b"POST /load/ndjson HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
                b"Content-Length: 1000\r\n\r\n{"
            )
    with strict.client() as client:
        while "omnigraph_http_requests_in_flight 1.0" not in client.get("/metrics").text:
            pass
        assert strict.serving.admission.in_flight(None) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"query":"x","params":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}",
        b'{"query":"x","params":{"a":' + b"[" * 500 + b"]" * 500 + b"}}",
        b'{"query":' + b"9" * 100_000 + b"}",
        b'{"query":"\\ud800"}',
        b"\xff\xfe",
        b'{"query":"x","query":NaN}',
    ],
    ids=["brackets", "objects", "lists", "digits", "surrogate", "bytes", "nan"],
)
def test_a_json_bomb_is_a_400(client: Client, body: bytes) -> None:
    answer = client.send(
        "POST", "/query", content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 400
    assert len(answer.content) < 2_000


@pytest.mark.parametrize(
    "query",
    [
        "query x() { match { " + "not { " * 5_000 + "} " * 5_000 + "} return { 1 } }",
        "query x() { match { $p: Person } return { " + "(" * 10_000 + " } }",
        "query " + "x" * 500_000 + "() { match { $p: Person } return { $p.slug } }",
        "query x(" + ", ".join(f"$p{n}: String" for n in range(20_000)) + ") { }",
        "/*" * 100_000 + "{",
        "{" * 500_000,
        "query x() { match { $p: Person } return { $p.slug } limit " + "9" * 100_000 + " }",
    ],
    ids=["nots", "parentheses", "name", "parameters", "comments", "braces", "limit"],
)
def test_a_query_bomb_is_a_400_or_an_answer(client: Client, query: str) -> None:
    answer = client.query(query)

    assert answer.status_code in (200, 400), answer.text[:500]
    assert client.query().status_code == 200


def test_reads_go_on_while_writers_wait(own: Served, graph_path: Path) -> None:
    """Every write of the graph is held still; reads have threads of their own."""
    from omnigraph.storage.location import graph_root
    from omnigraph.storage.queues import writer_queues

    held = writer_queues(graph_root(str(graph_path))).acquire_many([("node:Person", None)])
    with held, own.client() as client, own.client() as writer:
        waiting = [
            threading.Thread(target=writer.mutate, args=(INSERT,), kwargs={"params": {"slug": "w"}})
            for _ in range(10)
        ]
        for thread in waiting:
            thread.start()
        while own.serving.admission.in_flight(None) < 10:
            pass
        for _ in range(50):
            assert client.query().status_code == 200
        held.release()
        for thread in waiting:
            thread.join()


def test_headers_of_any_kind_do_no_harm(shared: Served) -> None:
    head = b"GET /snapshot HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    odd = [
        b"Authorization: Bearer \xff\xfe\r\n\r\n",
        b"X-Request-Id: \x80\r\n\r\n",
        b"Content-Length: 5\r\n\r\nhello",
        b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n",
    ]

    for rest in odd:
        answer = talk(shared, head + rest)
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400", b"HTTP/1.1 431"))
    with shared.client() as client:
        assert client.query(PEOPLE).status_code == 200


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that nothing else uses: some of what is sent is obeyed."""
    path = make_graph(tmp_path_factory.mktemp("victim") / "graph")
    with served(single(path)) as server, server.client() as client:
        yield client


WORDS = [r'"\ud800"', r'"\u0000"', r'"a\u0000b"', "18446744073709551616", "1e999", "-1", "null"]
WORDS += ["7", "[]", "{}", "true", r'"\udfff\ud800"', '"' + "9" * 5_000 + '"', "9" * 5_000]
BODIES = {
    "/query": ["query", "name", "params", "branch", "snapshot"],
    "/read": ["query_source", "query_name", "params", "branch", "snapshot"],
    "/mutate": ["query", "name", "params", "branch"],
    "/change": ["query", "name", "params", "branch"],
    "/load": ["data", "mode", "branch", "from"],
    "/ingest": ["data", "mode", "branch", "from"],
    "/export": ["branch", "type_names", "table_keys"],
    "/branches": ["name", "from"],
    "/branches/merge": ["source", "target"],
    "/schema/apply": ["schema_source", "allow_data_loss"],
}
FINE = {
    "query": '"query q($p: U64?) { match { $p0: Person } return { $p0.name, $p } limit 1 }"',
    "query_source": '"query q($p: String?) { match { $p0: Person } return { $p0.name } limit 1 }"',
    "data": '""',
    "mode": '"merge"',
    "name": '"q"',
    "source": '"main"',
    "schema_source": '"node"',
}


@pytest.mark.parametrize("path", BODIES)
def test_no_value_of_a_body_is_an_internal_error(victim: Client, path: str) -> None:
    """Half characters, NULs, numbers beyond 64 bits, other kinds: a 4xx or an answer."""
    members = BODIES[path]
    for member in (*members, "params.p"):
        for word in WORDS:
            given = {name: FINE[name] for name in members if name in FINE}
            given |= {"params": f'{{"p": {word}}}'} if member == "params.p" else {member: word}
            body = ", ".join(f'"{name}": {value}' for name, value in given.items())
            answer = victim.send(
                "POST",
                path,
                content=f"{{{body}}}".encode(),
                headers={"Content-Type": "application/json"},
            )

            assert answer.status_code < 500, (member, word[:40], answer.text)


@pytest.mark.parametrize("word", ["%00", "%ff", "%ed%a0%80", "-1", "9" * 400, "%F0%9F", "a%00b"])
def test_no_word_of_an_address_is_an_internal_error(victim: Client, word: str) -> None:
    for path in (
        f"/commits?branch={word}",
        f"/commits/{word}",
        f"/snapshot?branch={word}",
        f"/queries/{word}",
    ):
        assert victim.send("GET", path).status_code < 500, path
    assert victim.send("DELETE", f"/branches/{word}").status_code < 500
    actor = victim.send(
        "POST",
        "/query",
        content=b"{}",
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {word}"},
    )
    assert actor.status_code < 500


def test_a_half_character_in_a_load_is_named(victim: Client) -> None:
    record = rb'{"type": "Person", "data": {"name": "\ud800"}}'
    answer = victim.send(
        "POST",
        "/load/ndjson?mode=merge",
        content=record,
        headers={"Content-Type": "application/x-ndjson"},
    )

    assert answer.status_code == 400
    assert "1" in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/branches/merge", {"source": "x", "previw": True}, "did you mean `preview`?"),
        ("/branches", {"name": "x", "form": "main"}, "did you mean `from`?"),
        ("/mutate", {"query": INSERT, "param": {}}, "did you mean `params`?"),
        ("/load", {"data": "", "mod": "merge"}, "did you mean `mode`?"),
        ("/schema/apply", {"schema_source": "", "loss": 1}, "`loss` is not known here"),
        ("/explain", {"query": PEOPLE, "analyse": True}, "did you mean `analyze`?"),
    ],
)
def test_a_member_that_a_write_does_not_know_is_refused(
    client: Client, path: str, body: dict[str, object], words: str
) -> None:
    """It would be ignored otherwise, and a misspelt `preview` would merge."""
    answer = client.post(path, body)

    assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/diff", "`from` is missing"),
        ("/diff?from=main&from=main", "is given 2 times"),
        ("/diff?from=main&types=Person", "did you mean `type`?"),
        ("/diff?from=main&format=xml", "expected json, jsonl, html"),
        ("/diff?from=main&op=upsert", "there is no op 'upsert'"),
        ("/log?limit=0", "expected a number from 1 on"),
        ("/log?limit=-1", "expected a number from 1 on"),
        ("/log?limit=x", "expected a number from 1 on"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(client: Client, path: str, words: str) -> None:
    answer = client.get(path)

    assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text
