"""Reading a Blob: its exact bytes at a snapshot, or a typed reason why there are none."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, NotFoundError, OmnigraphError

SCHEMA = """
node Doc { slug: String @key  title: String?  file: Blob? }
edge Cites: Doc -> Doc { scan: Blob? }
"""
LARGE = bytes(range(256)) * 4_096


def encode(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("blobs") / "g", schema=SCHEMA, durability="process")
    graph.load(
        [
            {"type": "Doc", "data": {"slug": "a", "title": "A", "file": encode(b"\0one\xff")}},
            {"type": "Doc", "data": {"slug": "big", "file": encode(LARGE)}},
            {"type": "Doc", "data": {"slug": "empty", "file": encode(b"")}},
            {"type": "Doc", "data": {"slug": "none"}},
            {"edge": "Cites", "from": "a", "to": "big", "data": {"scan": encode(b"edge")}},
        ],
        mode="overwrite",
    )
    return graph


@pytest.mark.accepts("S-052")
@pytest.mark.parametrize(("id", "data"), [("a", b"\0one\xff"), ("big", LARGE), ("empty", b"")])
def test_the_bytes_come_back_as_they_were_loaded(graph: og.Graph, id: str, data: bytes) -> None:  # noqa: A002
    reader = graph.read_blob("node", "Doc", id, "file")

    assert (reader.size, reader.kind, reader.uri) == (len(data), "managed", None)
    assert bytes(reader) == data
    reader.seek(1)
    assert reader.read(3) == data[1:4]


def test_an_edge_has_blobs_too(graph: og.Graph) -> None:
    edge = graph.edges("Cites").to_arrow().to_pylist()[0]

    assert graph.read_blob("edge", "Cites", edge["id"], "scan").read() == b"edge"


def test_a_blob_is_read_at_a_branch_a_commit_and_a_version(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", schema=SCHEMA, durability="process")

    def put(data: bytes, branch: str = "main") -> None:
        record = {"type": "Doc", "data": {"slug": "a", "file": encode(data)}}
        graph.load([record], mode="merge", branch=branch)

    put(b"old")
    commit, version = graph.commits()[0].commit_id, graph.snapshot().manifest_version
    graph.create_branch("dev")
    put(b"new")
    put(b"dev", "dev")

    def read(**selection: Any) -> bytes:
        return graph.read_blob("node", "Doc", "a", "file", **selection).read()

    assert (read(), read(branch="dev")) == (b"new", b"dev")
    assert (read(commit=commit), read(version=version)) == (b"old", b"old")


REFUSED: dict[str, tuple[tuple[str, str, str, str], type[OmnigraphError], str]] = {
    "kind": (("blob", "Doc", "a", "file"), BadRequestError, "expected 'node' or 'edge'"),
    "type": (("node", "Dok", "a", "file"), BadRequestError, "did you mean `Doc`"),
    "type of the other kind": (("edge", "Doc", "a", "file"), BadRequestError, "Doc"),
    "table key of the other kind": (("edge", "node:Doc", "a", "file"), BadRequestError, "Doc"),
    "property": (("node", "Doc", "a", "fiel"), BadRequestError, "did you mean `file`"),
    "no blob": (("node", "Doc", "a", "title"), BadRequestError, "is String\\?, not a Blob"),
    "entity": (("node", "Doc", "z' OR '1'='1", "file"), NotFoundError, "no row 'z' OR '1'='1'"),
    "null": (("node", "Doc", "none", "file"), NotFoundError, "is null"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_there_is_a_typed_error(graph: og.Graph, name: str) -> None:
    address, error, text = REFUSED[name]

    with pytest.raises(error, match=text):
        graph.read_blob(*address)


def test_a_blob_declared_later_is_null_in_the_past(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", schema="node Doc { slug: String @key }", durability="process")
    graph.load([{"type": "Doc", "data": {"slug": "a"}}], mode="append")
    version = graph.snapshot().manifest_version
    graph.apply_schema("node Doc { slug: String @key  file: Blob? }")

    for at_version in (version, None):
        with pytest.raises(NotFoundError, match="is null"):
            graph.read_blob("node", "Doc", "a", "file", version=at_version)


BLOB_CHANGES = {
    "update after insert": 'insert Photo { slug: "c", data: "base64:AAEC" } {update} "c"',
    "update of another row after insert": 'insert Photo { slug: "c" } {update} "a"',
    "update after update": 'update Photo set { data: "base64:AAEC" } where slug = "b" {update} "b"',
    "update after update of another property": (
        'update Photo set { title: "mid" } where slug = "a" {update} "a"'
    ),
}


@pytest.mark.parametrize("name", BLOB_CHANGES)
def test_an_update_keeps_blobs_that_its_own_query_wrote(tmp_path: Path, name: str) -> None:
    """Read-your-writes with a Blob: the later statement changes a title and no byte."""
    graph = og.init(
        tmp_path / "graph",
        schema="node Photo { slug: String @key  title: String?  data: Blob? }",
        durability="process",
    )
    records = [{"slug": "a", "data": "base64:BAUG"}, {"slug": "b"}]
    graph.load([{"type": "Photo", "data": each} for each in records], mode="append")
    body = BLOB_CHANGES[name].replace("{update}", 'update Photo set { title: "new" } where slug =')

    graph.mutate(f"query q() {{ {body} }}")

    found = graph.query("query q() { match { $p: Photo } return { $p.slug, $p.title } }").rows()
    updated = {row["p.slug"] for row in found if row["p.title"] == "new"}
    assert updated == {body[-2]}
    assert graph.read_blob("node", "Photo", "a", "data").read() == b"\4\5\6"
    for slug in {"b", "c"} & updated:
        assert graph.read_blob("node", "Photo", slug, "data").read() == b"\0\1\2"
