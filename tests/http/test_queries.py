"""Stored queries: listed with the kinds of their parameters, run by name, hidden when denied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.config import StoredEntry
from omnigraph.errors import BadRequestError
from tests.http.serving import SCHEMA, Served, make_graph, new_graph, served, single

FILE = """
query find($slug: String) @description("One person.") @instruction("By slug.")
{ match { $p: Person { slug: $slug } } return { $p.slug, $p.age } }

query grow($slug: String, $age: I32) { update Person set { age: $age } where slug = $slug }

query hidden() { match { $p: Person } return { count($p) as n } }
"""
KINDS = """
query kinds($a: String, $b: Bool, $c: I32?, $d: I64, $e: F64, $f: Date, $g: DateTime, $h: [String])
{ match { $p: Person } return { $p.slug } }
"""
SHAPES = """
query shapes(
    $least: I32 = 40, $before: DateTime = now() + days(1),
    $f: { slug: String, age: I32? }?, $rows: [{ slug: String, tags: [String]? }]?, $ids: [String]?
) {
    match {
        $p: Person
        $p.age >= $least
        $f.slug is null or $p.slug = $f.slug
        $ids is null or $p.slug in $ids
    }
    return { $p.slug as slug }
    order { slug }
}
"""
TOKENS = {"act-ada": "ada-token", "act-bob": "bob-token", "act-eve": "eve-token"}
POLICY = """
version: 1
groups: { callers: [act-ada, act-bob], writers: [act-ada], readers: [act-ada, act-bob, act-eve] }
rules:
  - id: read
    allow: { actors: { group: readers }, actions: [read] }
  - id: write
    allow: { actors: { group: writers }, actions: [change] }
  - id: call
    allow: { actors: { group: callers }, actions: [invoke_query] }
"""


def entries(folder: Path) -> dict[str, StoredEntry]:
    path = folder / "queries.gq"
    path.write_text(FILE)
    kinds = folder / "kinds.gq"
    kinds.write_text(KINDS)
    shapes = folder / "shapes.gq"
    shapes.write_text(SHAPES)
    return {
        "find": StoredEntry(path, tool_name="find_person"),
        "grow": StoredEntry(path),
        "hidden": StoredEntry(path, expose=False),
        "kinds": StoredEntry(kinds),
        "shapes": StoredEntry(shapes),
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("stored")
    settings = single(
        make_graph(folder / "graph"), tokens=TOKENS, policy_text=POLICY, queries=entries(folder)
    )
    with served(settings) as server:
        yield server


def test_the_catalog_lists_what_is_exposed_and_the_kinds_of_parameters(stored: Served) -> None:
    with stored.client("ada-token") as ada:
        found = {each["name"]: each for each in ada.get("/queries").json()["queries"]}

    assert set(found) == {"find", "grow", "kinds", "shapes"}
    assert found["find"] == {
        "name": "find",
        "tool_name": "find_person",
        "description": "One person.",
        "instruction": "By slug.",
        "mutation": False,
        "params": [{"name": "slug", "kind": "string", "nullable": False}],
    }
    assert found["grow"]["mutation"] is True
    kinds = {each["name"]: each for each in found["kinds"]["params"]}
    assert [each["kind"] for each in kinds.values()] == [
        "string",
        "bool",
        "int",
        "bigint",
        "float",
        "date",
        "datetime",
        "list",
    ]
    assert kinds["c"]["nullable"] is True
    assert kinds["h"]["item_kind"] == "string"


def test_the_catalog_lists_only_what_the_caller_may_invoke(stored: Served) -> None:
    """And the answers agree: what is listed runs, what is not is refused."""
    for token, expected in {"ada-token": True, "bob-token": False, "eve-token": None}.items():
        with stored.client(token) as client:
            listed = {each["name"] for each in client.get("/queries").json()["queries"]}
            grown = client.post("/queries/grow", {"params": {"slug": "ada", "age": 37}})
            found = client.post("/queries/find", {"params": {"slug": "ada"}})
            document = client.http.get("/openapi.json").json()["paths"]
        assert ("grow" in listed, grown.status_code == 200) == (expected is True,) * 2
        assert ("find" in listed, found.status_code == 200) == (expected is not None,) * 2
        assert ("/queries/grow" in document) == (expected is True)


def test_the_catalog_shows_defaults_and_the_fields_of_objects(stored: Served) -> None:
    """As the OpenAPI document says: every answer is checked against it."""
    with stored.client("ada-token") as ada:
        listed = ada.get("/queries").json()["queries"]

    params = next(each["params"] for each in listed if each["name"] == "shapes")
    slug = {"name": "slug", "kind": "string", "nullable": False}
    age = {"name": "age", "kind": "int", "nullable": True}
    tags = {"name": "tags", "kind": "list", "item_kind": "string", "nullable": True}
    assert params == [
        {"name": "least", "kind": "int", "default": "40", "nullable": False},
        {
            "name": "before",
            "kind": "datetime",
            "default": "(now() + days(1))",
            "nullable": False,
        },
        {"name": "f", "kind": "object", "fields": [slug, age], "nullable": True},
        {
            "name": "rows",
            "kind": "list",
            "item_kind": "object",
            "fields": [slug, tags],
            "nullable": True,
        },
        {"name": "ids", "kind": "list", "item_kind": "string", "nullable": True},
    ]


@pytest.mark.parametrize(
    ("params", "slugs"),
    [
        (None, ["grace"]),
        ({"least": 1}, ["ada", "grace"]),
        ({"least": 1, "f": {"slug": "ada"}}, ["ada"]),
        ({"least": 1, "ids": ["ada", "nil"], "rows": [{"slug": "x"}]}, ["ada"]),
    ],
)
def test_parameters_of_every_shape_arrive(
    stored: Served, params: dict[str, object] | None, slugs: list[str]
) -> None:
    with stored.client("ada-token") as ada:
        answer = ada.post("/queries/shapes", {} if params is None else {"params": params})

    assert [row["slug"] for row in answer.json()["rows"]] == slugs


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"least": None}, "null is not accepted"),
        ({"f": {"age": 3}}, "slug"),
        ({"f": {"slug": "ada", "slg": 1}}, "unknown field 'slg'"),
        ({"rows": [{"slug": "a"}, {"slug": 3}]}, "rows[1]"),
        ({"ids": "ada"}, "ids"),
    ],
)
def test_a_parameter_of_another_shape_is_refused_by_its_place(
    stored: Served, params: dict[str, object], text: str
) -> None:
    with stored.client("ada-token") as ada:
        answer = ada.post("/queries/shapes", {"params": params})

    assert answer.status_code == 400
    assert text in answer.json()["error"]


def test_a_stored_query_is_an_operation_of_the_document(stored: Served) -> None:
    """Typed parameters with their defaults, and the columns, for callers who may invoke it."""
    with stored.client("ada-token") as ada, stored.client("eve-token") as eve:
        paths = ada.http.get("/openapi.json").json()["paths"]
        denied = eve.http.get("/openapi.json").json()["paths"]
        unknown = ada.http.get("/openapi.json", headers={"Authorization": "Bearer nobody"})

    static = stored.app.document["paths"]
    assert set(paths) - set(static) == {
        f"/queries/{name}" for name in ("find", "grow", "kinds", "shapes")
    }
    assert denied == static
    assert unknown.status_code == 401
    find, grow = paths["/queries/find"]["post"], paths["/queries/grow"]["post"]
    assert (find["operationId"], find["summary"], find["description"]) == (
        "stored_find",
        "One person.",
        "By slug.",
    )
    body = find["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["params"]
    assert body["properties"]["params"]["properties"] == {"slug": {"type": "string"}}
    assert "snapshot" in body["properties"]
    rows = find["responses"]["200"]["content"]["application/json"]["schema"]["allOf"][1]
    assert rows["properties"]["rows"]["items"]["properties"] == {
        "p.slug": {"type": "string"},
        "p.age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    }
    assert "message" in grow["requestBody"]["content"]["application/json"]["schema"]["properties"]
    shapes = paths["/queries/shapes"]["post"]["requestBody"]
    params = shapes["content"]["application/json"]["schema"]["properties"]["params"]
    assert not shapes["required"]
    assert params["required"] == []
    assert params["properties"]["least"] == {"type": "integer", "default": 40}
    assert params["properties"]["before"]["description"] == "(now() + days(1)) when left out"
    assert params["properties"]["f"]["anyOf"][0]["required"] == ["slug"]


def test_a_stored_query_runs_by_name(stored: Served) -> None:
    with stored.client("ada-token") as ada:
        read = ada.post("/queries/find", {"params": {"slug": "ada"}})
        changed = ada.post("/queries/grow", {"params": {"slug": "ada", "age": 37}})
        unlisted = ada.send("POST", "/queries/hidden")
        null = ada.send(
            "POST", "/queries/hidden", content=b"null", headers={"Content-Type": "application/json"}
        )

    assert read.json()["rows"][0]["p.slug"] == "ada"
    assert read.json()["graph_commit_id"]
    assert changed.json()["affected_nodes"] == 1
    assert changed.json()["actor_id"] == "act-ada"
    assert unlisted.json()["rows"] == null.json()["rows"] == [{"n": 2}]


def test_an_unknown_query_and_a_denied_one_are_answered_alike(stored: Served) -> None:
    with stored.client("ada-token") as ada, stored.client("eve-token") as eve:
        answers = [
            ada.send("POST", "/queries/nothing"),
            eve.send("POST", "/queries/nothing"),
            eve.send("POST", "/queries/find"),
        ]

    assert {answer.status_code for answer in answers} == {404}
    assert {answer.text for answer in answers} == {
        '{"error":"stored query not found","code":"not_found"}'
    }


def test_permission_to_invoke_does_not_imply_read_or_change(stored: Served) -> None:
    with stored.client("bob-token") as bob, stored.client() as nobody:
        assert bob.post("/queries/find", {"params": {"slug": "ada"}}).status_code == 200
        denied = bob.post("/queries/grow", {"params": {"slug": "ada", "age": 1}})
        assert denied.status_code == 403
        assert nobody.send("POST", "/queries/find").status_code == 401


def test_a_call_that_expects_the_other_kind_is_refused(stored: Served) -> None:
    with stored.client("ada-token") as ada:
        grow = {"params": {"slug": "ada", "age": 1}}
        not_read = ada.post("/queries/grow", {**grow, "expect_mutation": False})
        not_change = ada.post("/queries/find", {"expect_mutation": True})
        snapshot = ada.post("/queries/grow", {**grow, "snapshot": "01ABC"})
        fine = ada.post("/queries/grow", {**grow, "expect_mutation": True})

    assert not_read.status_code == 400
    assert not_read.json()["error"] == "'grow' is a mutation — use omnigraph mutate grow"
    assert not_change.status_code == 400
    assert snapshot.status_code == 400
    assert fine.status_code == 200


def test_a_stored_mutation_may_be_conditional(stored: Served) -> None:
    with stored.client("ada-token") as ada:
        head = ada.query().json()["graph_commit_id"]
        body = {"params": {"slug": "grace", "age": 50}}
        headers = {"Omnigraph-If-Graph-Commit": head}

        done = ada.post("/queries/grow/if-graph-commit", body, headers=headers)
        late = ada.post("/queries/grow/if-graph-commit", body, headers=headers)
        read = ada.post("/queries/find/if-graph-commit", {}, headers=headers)

    assert (done.status_code, late.status_code, read.status_code) == (200, 412, 400)


def test_a_query_that_does_not_fit_keeps_the_server_from_starting(tmp_path: Path) -> None:
    path = new_graph(tmp_path / "graph", "node Other { slug: String @key }\n", [])

    with (
        pytest.raises(BadRequestError, match="find"),
        served(single(path, queries=entries(tmp_path))),
    ):
        pass


def test_a_schema_that_breaks_a_stored_query_is_refused(tmp_path: Path) -> None:
    settings = single(make_graph(tmp_path / "graph"), queries=entries(tmp_path))
    with served(settings) as server, server.client() as client:
        renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
        wider = SCHEMA.replace("age: I32?", "age: I32?  email: String?")

        refused = client.post("/schema/apply", {"schema_source": renamed})
        applied = client.post("/schema/apply", {"schema_source": wider})

        assert refused.status_code == 400
        assert "grow" in refused.json()["error"]
        assert applied.json()["applied"] is True
        assert client.post("/queries/find", {"params": {"slug": "ada"}}).status_code == 200


# Storing


OWNER = POLICY + "  - { id: own, allow: { actors: { group: writers }, actions: [admin] } }\n"
OLD = "query old($slug: String) { match { $p: Person { slug: $slug } } return { $p.age } }"


@pytest.fixture
def open_to_store(tmp_path: Path) -> Iterator[Served]:
    """A server whose stored queries are a directory, with one in it."""
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "all.gq").write_text(OLD)
    settings = single(
        make_graph(tmp_path / "graph"),
        tokens=TOKENS,
        policy_text=OWNER,
        queries={"old": StoredEntry(folder / "all.gq")},
        query_directory=folder,
    )
    with served(settings) as server:
        yield server


def test_a_query_is_stored_listed_and_run_at_once(open_to_store: Served, tmp_path: Path) -> None:
    with open_to_store.client("ada-token") as ada, open_to_store.client("bob-token") as bob:
        made = ada.send("PUT", "/queries/find", json={"query": FILE})
        names = [each["name"] for each in bob.get("/queries").json()["queries"]]
        rows = bob.post("/queries/find", {"params": {"slug": "ada"}}).json()["rows"]
        again = ada.send("PUT", "/queries/find", json={"query": FILE})
        shorter = {"query": OLD.replace("old", "find"), "replace": True}
        replaced = ada.send("PUT", "/queries/find", json=shorter)
        left = [each["name"] for each in ada.get("/queries").json()["queries"]]

    assert (made.status_code, made.json()["params"][0]["name"]) == (200, "slug")
    assert names == ["find", "hidden", "old"]  # and not the mutation, which bob may not run
    assert rows[0]["p.slug"] == "ada"
    assert (again.status_code, replaced.status_code) == (409, 200)
    assert "'find' is stored already" in again.json()["error"]
    assert left == ["find", "old"]
    assert [each.name for each in sorted((tmp_path / "queries").iterdir())] == ["all.gq", "find.gq"]
    assert (tmp_path / "queries" / "find.gq").read_text() == shorter["query"]


@pytest.mark.parametrize(
    ("name", "text", "status", "error"),
    [
        ("find", OLD, 400, "has no query 'find' — it has old"),
        ("..%2Fx", OLD, 404, ""),
        ("old", OLD, 409, "'old' is stored in 'all.gq' already"),
        ("find", FILE.replace("$p.age", "$p.agee"), 400, "did you mean `age`?"),
        ("find", "query find(", 400, "expected"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_written(
    open_to_store: Served, tmp_path: Path, name: str, text: str, status: int, error: str
) -> None:
    with open_to_store.client("ada-token") as ada:
        refused = ada.send("PUT", f"/queries/{name}", json={"query": text})

    assert refused.status_code == status, refused.text
    assert error in refused.json()["error"]
    assert [each.name for each in (tmp_path / "queries").iterdir()] == ["all.gq"]


def test_only_an_admin_stores_and_only_where_there_is_a_directory(
    open_to_store: Served, tmp_path: Path
) -> None:
    asked = {"query": OLD.replace("old", "mine")}
    with open_to_store.client("bob-token") as bob:
        denied = bob.send("PUT", "/queries/mine", json=asked)
    with (
        served(single(make_graph(tmp_path / "other"))) as server,
        server.client() as anyone,
    ):
        homeless = anyone.send("PUT", "/queries/mine", json=asked)

    assert denied.status_code == 403
    assert (homeless.status_code, "no directory" in homeless.json()["error"]) == (400, True)
