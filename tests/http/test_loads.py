"""Loads over HTTP: branches that appear only when asked for, and the strict raw form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.server.strict_lines import check_lines
from tests.http.serving import ACME, ADA, GRACE, KNOWS, Client, Served, make_graph, ndjson

NEW = {"type": "Person", "data": {"slug": "new"}}


def raw(client: Client, body: str | bytes, **params: str) -> httpx.Response:
    headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
    return client.send("POST", "/load/ndjson", content=body, headers=headers, params=params)


@pytest.mark.parametrize("path", ["/load", "/ingest", "/load/ndjson"])
def test_a_load_into_a_branch_that_is_not_there_needs_a_base(own: Served, path: str) -> None:
    with own.client() as client:

        def load(**where: str) -> httpx.Response:
            if path == "/load/ndjson":
                return raw(client, ndjson([NEW]), **where)
            return client.post(path, {"data": ndjson([NEW]), **where})

        refused = load(branch="draft")
        branches = client.get("/branches").json()["branches"]
        made = load(branch="draft", **{"from": "main"})
        again = load(branch="draft", **{"from": "main"})

        assert refused.status_code == 404
        assert refused.json()["error"] == "branch 'draft' not found; pass `from` to create it"
        assert branches == ["main"]
        assert made.status_code == 200
        assert made.json()["branch_created"] is True
        assert made.json()["base_branch"] == "main"
        assert again.json()["branch_created"] is False
        assert again.json()["base_branch"] == "main"
        assert len(client.rows(branch="draft")) == 3
        assert len(client.rows()) == 2


def test_a_raw_load_notes_what_its_parameters_say(own: Served) -> None:
    with own.client() as client:
        said = {"message": "from HR", "meta": "run=1"}

        made = raw(client, ndjson([NEW]), **said)
        again = raw(client, ndjson([NEW]), message="")

    commit = made.json()["commit"]
    assert (commit["message"], commit["metadata"]) == ("from HR", {"run": "1"})
    assert (again.status_code, "message is empty" in again.json()["error"]) == (400, True)


def test_a_load_is_counted_in_both_vocabularies(own: Served) -> None:
    with own.client() as client:
        body = client.load([ADA, NEW, ACME, KNOWS]).json()

    assert body["mode"] == "merge"
    assert body["tables"] == [
        {"table_key": "edge:Knows", "rows_loaded": 1},
        {"table_key": "node:Company", "rows_loaded": 1},
        {"table_key": "node:Person", "rows_loaded": 2},
    ]
    assert [each["name"] for each in body["nodes"]] == ["Company", "Person"]
    assert body["edges"] == [{"name": "Knows", "entities_loaded": 1, "rows_loaded": 1}]
    assert body["total_entities"] == body["total_rows"] == 4
    assert body["commit"]["graph_commit_id"]


def test_a_load_with_a_bad_row_changes_nothing_and_names_it(own: Served) -> None:
    with own.client() as client:
        before = client.get("/snapshot").json()
        bad = {"type": "Person", "data": {"slug": "x", "age": "old"}}
        dangling = {"edge": "Knows", "from": "ada", "to": "nobody"}

        answers = [client.load([NEW, bad]), client.load([NEW, dangling])]

        assert [answer.status_code for answer in answers] == [400, 400]
        assert "Person.age" in answers[0].json()["error"]
        assert ":2" in answers[0].json()["error"]
        assert "nobody" in answers[1].json()["error"]
        assert client.get("/snapshot").json() == before


@pytest.mark.parametrize(
    "body",
    [
        {"data": "{}", "mode": "replace"},
        {"data": 5},
        {"branch": "main"},
        {"data": "", "embed": "yes"},
        {"data": "", "branch": "a/../b"},
    ],
)
def test_a_load_that_makes_no_sense_is_a_400(client: Client, body: dict[str, Any]) -> None:
    assert client.post("/load", body).status_code == 400


def test_data_is_never_taken_for_the_path_of_a_file(client: Client, tmp_path: Path) -> None:
    """The library loads files by path; a client must not make the server read its disk."""
    secret = tmp_path / "secret.jsonl"
    secret.write_text(ndjson([NEW]))

    for data in (str(secret), f"{tmp_path}/*", f"  {secret}", f"file://{secret}"):
        answer = client.post("/load", {"data": data})
        assert answer.status_code == 400
        assert str(secret) not in answer.json()["error"]
        assert raw(client, data).status_code == 400
    assert len(client.rows()) == 2


def test_a_raw_load_answers_without_a_uri(own: Served) -> None:
    with own.client() as client:
        body = raw(client, ndjson([NEW, GRACE]), mode="merge").json()

    assert "uri" not in body
    assert body["nodes"] == [{"name": "Person", "entities_loaded": 2, "rows_loaded": 2}]
    assert body["total_entities"] == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"type":"Person","type":"Person","data":{"slug":"x"}}', "'type' twice"),
        ('{"type":"Person","data":{"slug":"x","slug":"y"}}', "'slug' twice"),
        ('{"type":"Person","data":{"slug":"x","\\u0073lug":"y"}}', "'slug' twice"),
        ('{"type":"Person","data":{"slug":":"},"data":{"slug":"y"}}', "'data' twice"),
        ('{"type":"Person","data":{"slug":"x"},"extra":1}', "'extra'"),
        ('{"type":"Person","from":"a","data":{"slug":"x"}}', "'from'"),
        ('{"type":"Person","edge":"Knows","data":{"slug":"x"}}', "'type'"),
        ('{"type":"Person","data":{"slug":"x","shoe":1}}', "shoe"),
        ('{"type":"Person","data":{"slug":"x","_rowid":1}}', "_rowid"),
        ('{"edge":"Knows","from":"ada","to":"grace","data":{"src":"ada"}}', "src"),
        ('{"type":"Person","data":{"slug":"x","id":"y"}}', "id"),
        ('{"type":"Person","data":{"slug":"x"}} {"type":"Person"}', "not one JSON object"),
        ('[{"type":"Person","data":{"slug":"x"}}]', "not a JSON object"),
        ('// {"type":"Person"}', "not one JSON object"),
        ('{"type":"Nope","data":{}}', "Nope"),
        ('{"type":"Person","data":{"slug":"x"}', "not one JSON object"),
    ],
)
def test_a_raw_line_follows_the_strict_grammar(client: Client, line: str, words: str) -> None:
    before = client.get("/snapshot").json()

    answer = raw(client, f"\n{ndjson([NEW])}\n{line}\n")

    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]
    assert client.get("/snapshot").json() == before


def test_a_raw_body_is_utf8(client: Client) -> None:
    answer = raw(client, b'{"type":"Person","data":{"slug":"\xff"}}\n')

    assert answer.status_code == 400
    assert "line 1 is not UTF-8" in answer.json()["error"]


def test_colons_and_quotes_inside_texts_are_not_members(client: Client) -> None:
    lines = [
        '{"type":"Person","data":{"slug":"a:b","name":"x:\\"y\\":z"}}',
        '{"type" : "Person" , "data" : {"slug" : "::"}}',
        '{"type":"Person"}',
        "",
        "   ",
    ]

    text = check_lines("\n".join(lines).encode(), 1000)

    assert text == "\n".join(lines)


def test_a_line_that_is_too_long_is_a_limit() -> None:
    with pytest.raises(OmnigraphError, match="graph_batch_line_bytes is 40, the limit is 39"):
        check_lines(b"{}\n" + b" " * 40, 39)


def test_the_tolerant_form_ignores_what_it_does_not_know(own: Served) -> None:
    with own.client() as client:
        answer = client.load([{**NEW, "comment": "hello"}])

    assert answer.status_code == 200


def test_nothing_is_written_outside_the_graph(tmp_path: Path) -> None:
    """Loads, branches and exports of hostile names leave the folder around the graph alone."""
    from tests.http.serving import served, single

    home = tmp_path / "home"
    home.mkdir()
    (home / "neighbour").write_text("mine")
    path = make_graph(home / "graph")
    with served(single(path)) as server, server.client() as client:
        for name in ("../escape", "..", "a/../../b", "/tmp/x", "a\\..\\b", "x\x00y", "~", "%2e%2e"):
            assert client.post("/branches", {"name": name}).status_code == 400, name
            assert client.load([NEW], branch=name, **{"from": "main"}).status_code == 400
            assert client.get("/snapshot", branch=name).status_code == 400
        assert client.send("DELETE", "/branches/..%2F..%2Fescape").status_code == 400
        client.load([NEW], branch="fine", **{"from": "main"})
        client.export(branch="fine")

    assert sorted(each.name for each in home.iterdir()) == ["graph", "neighbour"]
    assert (home / "neighbour").read_text() == "mine"
