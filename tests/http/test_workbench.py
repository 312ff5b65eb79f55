"""The workbench: its files, what a browser may keep of them, and the operations it needs."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from omnigraph.compiler.language import describe_language
from omnigraph.server.workbench import PAGE, SECURITY_HEADERS, Asset, read_assets
from tests.docs_blocks import ROOT
from tests.http.serving import PEOPLE, Client, Served, make_graph, served, single

BYTES_MAX = 400_000
FIRST_BYTES_MAX = 30_000
is_built = pytest.mark.skipif(not read_assets(), reason="needs the workbench: make ui")
POLICY = """
version: 1
groups: { writers: [act-bob] }
protected_branches: [main]
rules:
  - id: read
    allow: { actors: { group: writers }, actions: [read] }
  - id: write
    allow: { actors: { group: writers }, actions: [change], branch_scope: unprotected }
"""


@is_built
def test_all_of_it_is_small_and_each_file_is_sent_compressed(client: Client) -> None:
    total = 0
    for name, asset in read_assets().items():
        path = "/" if name == PAGE else f"/workbench/{name}"
        answer = client.http.get(path, headers={"Accept-Encoding": "gzip;q=1.0, br;q=0"})
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.content == asset.bodies["identity"] == gzip.decompress(asset.bodies["gzip"])
        total += int(answer.headers["content-length"])

    assert 50_000 < total < BYTES_MAX


@is_built
def test_the_first_page_needs_few_bytes_and_neither_editor_nor_renderer() -> None:
    assets = read_assets()
    needed, found = {PAGE}, [PAGE]
    while found:
        text = assets[found.pop()].bodies["identity"].decode()
        named = re.findall(r'(?:src|href)="\./workbench/([^"]+)"', text)
        named += re.findall(r'(?:from|import)\s*"\./([^"]+\.js)"', text)
        found += [each for each in named if each not in needed]
        needed |= set(named)

    assert len(needed) <= 6
    assert sum(len(assets[each].bodies["br"]) for each in needed) < FIRST_BYTES_MAX
    later = "".join(
        each.bodies["identity"].decode() for name, each in assets.items() if name not in needed
    )
    now = "".join(assets[each].bodies["identity"].decode() for each in needed)
    for part in ("cm-content", "webgl2"):  # of the editor, of the renderer
        assert part in later
        assert part not in now


@is_built
def test_names_with_hashes_are_kept_for_good_and_the_page_is_asked_for_again(
    client: Client,
) -> None:
    page = client.http.get("/")
    files = re.findall(r'(?:src|href)="\./(workbench/[^"]+)"', page.text)
    first = client.http.get(f"/{files[0]}")
    again = client.http.get(f"/{files[0]}", headers={"If-None-Match": first.headers["etag"]})

    assert len(files) == 2
    assert page.headers["cache-control"] == "no-cache"
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (again.status_code, again.content) == (304, b"")


@is_built
@pytest.mark.parametrize("path", ["/", "/workbench/nothing.js"])
def test_the_policy_of_the_page_allows_this_server_only(client: Client, path: str) -> None:
    answer = client.http.get(path)

    if path == "/":
        style = single_style(answer.text)
        sent = answer.headers["content-security-policy"]
        digest = b64encode(sha256(style.encode()).digest()).decode()
        assert f"style-src 'self' 'sha256-{digest}';" in sent
        plain = {
            **answer.headers,
            "content-security-policy": sent.replace(f" 'sha256-{digest}'", ""),
        }
        assert {name: plain[name.lower()] for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert "url(" not in style
        assert "<script>" not in answer.text
        assert "style=" not in answer.text
        assert "//" not in answer.text.replace("<!doctype", "")
    else:
        assert answer.status_code == 404
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy


def single_style(page: str) -> str:
    """The style that the page contains: the first paint waits for no other file."""
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert "stylesheet" not in page
    assert len(style) > 1000
    return str(style)


@pytest.mark.parametrize("name", ["..%2F..%2Fapp.py", "%2e%2e/app.py", ".stamp", "index.html.br"])
def test_only_files_of_the_workbench_are_sent(client: Client, name: str) -> None:
    assert client.http.get(f"/workbench/{name}").status_code == 404


def test_a_browser_that_takes_no_compression_gets_the_plain_file() -> None:
    asset = Asset("text/css", '"x"', {"identity": b"plain", "gzip": b"g", "br": b"b"})

    assert asset.choose("") == ("identity", b"plain")
    assert asset.choose("gzip, deflate, br") == ("br", b"b")
    assert asset.choose("GZIP;q=0.5, br; q=0") == ("gzip", b"g")


def test_a_server_without_the_workbench_says_how_to_build_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.server.routes_workbench.read_assets", dict)

    page = client.get("/")

    assert page.status_code == 200
    assert "make ui" in page.text


def test_a_directory_without_a_page_has_no_files(tmp_path: Path) -> None:
    assert read_assets(tmp_path) == {}


def test_the_catalogue_has_types_properties_and_ends(client: Client) -> None:
    found = client.get("/catalog").json()

    assert [each["name"] for each in found["nodes"]] == ["Company", "Person"]
    knows = found["edges"][0]
    assert (knows["name"], knows["word"], knows["source"], knows["target"]) == (
        "Knows",
        "knows",
        "Person",
        "Person",
    )
    slug = next(each for each in found["nodes"][1]["properties"] if each["name"] == "slug")
    assert (slug["type"], slug["nullable"], slug["is_text"]) == ("String", False, True)
    assert found["nodes"][1]["key"] == ["slug"]


def test_permissions_are_those_of_the_policy(tmp_path: Path) -> None:
    path = make_graph(tmp_path / "graph")
    tokens = {"act-bob": "bob", "act-eve": "eve"}
    with (
        served(single(path, tokens=tokens, policy_text=POLICY)) as server,
        server.client("bob") as bob,
        server.client("eve") as eve,
        server.client() as stranger,
    ):
        allowed = bob.get("/permissions").json()
        refused = [
            eve.get("/permissions"),
            eve.get("/catalog"),
            eve.post("/editor/check", {"text": ""}),
            eve.post("/editor/complete", {"text": "", "offset": 0}),
        ]
        unknown = stranger.get("/permissions")

    assert allowed == {"actor_id": "act-bob", "actions": ["read", "change"]}
    assert [each.status_code for each in refused] == [403] * 4
    assert unknown.status_code == 401


def test_completion_is_what_the_parser_expects(client: Client) -> None:
    text = 'query q() { match { $p: Person { name: "𝒜" } $p.a'

    found = client.post("/editor/complete", {"text": text, "offset": len(text)}).json()
    outside = client.post("/editor/complete", {"text": text, "offset": len(text) + 1})

    assert found["start"] == len(text) - 1
    assert "age" in [each["label"] for each in found["items"]]
    assert outside.status_code == 400


def test_a_text_is_checked_and_its_queries_are_described(client: Client) -> None:
    good = (
        "query near($n: String, $k: I64 = 3) { match { $p: Person { name: $n } $p knows $q } "
        "return { $q.name } }\nquery add($s: String) { insert Person { slug: $s } }"
    )

    found = client.post("/editor/check", {"text": good}).json()
    wrong = client.post("/editor/check", {"text": good.replace("$q.name", "$q.nmae")}).json()

    assert [each["severity"] for each in found["diagnostics"] if each["severity"] == "error"] == []
    near, add = found["queries"]
    assert [each["name"] for each in near["params"]] == ["n", "k"]
    assert (near["mutation"], add["mutation"], add["picture"]) == (False, True, None)
    (mistake,) = [each for each in wrong["diagnostics"] if each["severity"] == "error"]
    assert good.replace("$q.name", "$q.nmae")[mistake["start"] : mistake["end"]] == "nmae"
    assert [each["name"] for each in wrong["queries"]] == ["add"]


def test_the_picture_of_a_read_is_the_same_read_with_ids(client: Client) -> None:
    text = "query near() { match { $p: Person $q knows $p } return { $p.slug } }"

    (query,) = client.post("/editor/check", {"text": text}).json()["queries"]
    picture = query["picture"]
    (row,) = client.rows(picture["query"])

    assert [row[each["type_column"]] for each in picture["nodes"]] == ["Person", "Person"]
    ids = [row[each["id_column"]] for each in picture["nodes"]]
    labels = [row[each["label_column"]] for each in picture["nodes"]]
    (edge,) = picture["edges"]
    assert row["p.slug"] == "grace"
    assert (ids[edge["source"]], ids[edge["target"]]) == ("ada", "grace")
    assert sorted(labels) == ["Ada", "Grace"]


@pytest.mark.parametrize(
    "returned", ["{ count($p) as n }", "distinct { $p.age }", "{ sum($p.age) as s, $q.name }"]
)
def test_the_picture_of_a_read_that_groups_is_everything_that_it_matched(
    client: Client, returned: str
) -> None:
    text = f"query q() {{ match {{ $p: Person $p knows $q }} return {returned} }}"

    (query,) = client.post("/editor/check", {"text": text}).json()["queries"]
    (row,) = client.rows(query["picture"]["query"])

    assert {row[each["id_column"]] for each in query["picture"]["nodes"]} == {"ada", "grace"}


def test_the_picture_of_a_path_has_the_nodes_on_the_way(client: Client) -> None:
    text = "query q() { match { $p: Person $p knows{1,2} $q } return { $q.name } }"

    (query,) = client.post("/editor/check", {"text": text}).json()["queries"]
    (row,) = client.rows(query["picture"]["query"])

    (edge,) = query["picture"]["edges"]
    assert row[edge["nodes_column"]] == ["ada", "grace"]
    assert len(row[edge["id_column"]]) == 1


def test_a_result_is_read_in_pages_of_one_state(own: Served) -> None:
    with own.client() as client:
        first = client.query(rows_max=1).json()
        client.mutate('query a() { insert Person { slug: "aaa" } }')
        pinned = {"snapshot": first["graph_commit_id"]}
        second = client.query(rows_skip=1, rows_max=5, **pinned).json()
        beyond = client.query(rows_skip=9, rows_max=5, **pinned).json()

    assert (first["row_count"], [row["p.slug"] for row in first["rows"]]) == (2, ["ada"])
    assert (second["row_count"], [row["p.slug"] for row in second["rows"]]) == (2, ["grace"])
    assert (beyond["row_count"], beyond["rows"]) == (2, [])
    with own.client() as client:
        assert client.query(PEOPLE, rows_skip=-1).status_code == 400


def test_a_snapshot_of_the_past_counts_what_was_there(own: Served) -> None:
    with own.client() as client:
        head = client.get("/commits").json()["commits"][0]["graph_commit_id"]
        client.mutate('query a() { insert Person { slug: "aaa" } }')
        before = client.get("/snapshot", snapshot=head).json()
        now = client.get("/snapshot").json()
        both = client.get("/snapshot", snapshot=head, branch="main")

    def people(found: dict[str, list[dict[str, object]]]) -> object:
        return next(each for each in found["tables"] if each["table_key"] == "node:Person")[
            "row_count"
        ]

    assert (people(before), people(now)) == (2, 3)
    assert both.status_code == 400


def test_a_preview_lists_as_many_changes_as_are_asked_for_and_counts_all(own: Served) -> None:
    with own.client() as client:
        client.post("/branches", {"name": "new"})
        text = 'query a() { insert Person { slug: "a" } insert Person { slug: "b" } }'
        client.mutate(text, branch="new")
        whole = client.post("/branches/merge/preview", {"source": "new"}).json()["changes"]
        part = client.post("/branches/merge/preview", {"source": "new", "changes_max": 1}).json()
        none = client.post("/branches/merge/preview", {"source": "new", "changes_max": -1})

    assert len(whole["changes"]) == 2
    assert part["changes"]["changes"] == whole["changes"][:1]
    assert part["changes"]["stats"] == whole["stats"]
    assert none.status_code == 400


def test_the_editor_colours_the_words_of_the_language() -> None:
    source = (ROOT / "ui" / "src" / "parts" / "editor.tsx").read_text(encoding="utf-8")
    start = source.index("const KEYWORDS")
    words = " ".join(re.findall(r'"([a-z_ ]+)"', source[start : source.index(".split", start)]))

    assert words.split() == sorted(describe_language().keywords["gq"])


def test_the_lock_file_names_no_host_to_download_from() -> None:
    text = (ROOT / "ui" / "package-lock.json").read_text(encoding="utf-8")

    assert '"resolved"' not in text
    urls = set(re.findall(r"https?://([^/\"]+)", text))
    assert not {each for each in urls if "npm" in each or "registry" in each}
    packages = json.loads(text)["packages"]
    assert all("integrity" in each for name, each in packages.items() if name)
