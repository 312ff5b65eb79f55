"""Files over HTTP: the same answers as from a store, and no other file of the server is read."""

from __future__ import annotations

import io
import re
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.pipeline.spooled import SpooledFiles
from omnigraph.server.jobs import Upload
from omnigraph.server.settings import Limits
from omnigraph.server.uploads import FormParser
from tests.cli.running import Outcome, run
from tests.depth import sample
from tests.http.serving import Served, make_graph, new_graph, served, single

GOOD = b"slug,age\nann,1\nbob,2\n"
BAD = b"slug,age\nann,1\nbob\ncid,x\n"
EDGES = b"from;to\nann;bob\n"
MAPPING = """
files:
  - {file: "*.csv", type: Person, columns: {nick: slug}}
  - {file: deep/knows.csv, type: Knows}
"""
LOADS = [
    ("--type", "Person", "--data", "in/good.csv"),
    ("--type", "Person", "--data", "in/bad.csv"),
    ("--type", "Person", "--data", "in/bad.csv", "--dry-run"),
    (
        "--type",
        "Person",
        "--data",
        "in/../in/good.csv",
        "--type",
        "Knows",
        "--data",
        "in/knows.csv",
    ),
    ("--type", "Person", "--data", "./in/good.parquet", "--dry-run"),
    ("--type", "Person", "--data", "in/wrong.parquet"),
    ("--type", "Persn", "--data", "in/good.csv"),
    ("--type", "Person", "--data", "in/*.none"),
    ("--type", "Person", "--data", "in/none.csv"),
    ("--type", "Person", "--data", "/dev/zero"),
    ("--data", "records.jsonl", "--branch", "side", "--from", "main"),
    ("--data", "records.jsonl", "--dry-run"),
    ("--data", "broken.jsonl"),
    ("--data", "typed"),
    ("--mapping", "mapped/load.yaml"),
    ("--mapping", "mapped/load.yaml", "--dry-run", "--json"),
    ("--mapping", "other.yaml", "--data", "mapped"),
    ("--mapping", "none.yaml"),
]


def write_files(folder: Path) -> None:
    files = {
        "in/good.csv": GOOD,
        "in/bad.csv": BAD,
        "in/knows.csv": EDGES,
        "typed/Person.csv": GOOD,
        "typed/Knows.tsv": EDGES.replace(b";", b"\t"),
        "mapped/load.yaml": MAPPING.encode(),
        "mapped/people.csv": GOOD.replace(b"slug", b"nick"),
        "mapped/deep/knows.csv": EDGES,
        "other.yaml": MAPPING.replace("nick", "nock").encode(),
        "records.jsonl": b'{"type":"Person","data":{"slug":"new"}}\n',
        "broken.jsonl": b'{"type":"Person","data":{"slug":"new"}, "age": 1}\n{"type":\n',
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    pq.write_table(pa.table({"slug": ["ann"], "age": [7]}), folder / "in/good.parquet")
    pq.write_table(pa.table({"slug": [1.5], "age": ["x"]}), folder / "in/wrong.parquet")


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test looks at what it left behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("omnigraph-input-*")) == []


def without_address(outcome: Outcome, address: str) -> tuple[int, str, str]:
    """What does not depend on where the graph is, or on ids that are made."""
    texts = (
        re.sub(r"01[0-9A-Z]{24}|\d{16}", "ID", text).replace(address, "GRAPH")
        for text in (outcome.out, outcome.err)
    )
    out, err = texts
    return outcome.code, out, re.sub(r"\((served|direct, local)\)", "", err)


def test_files_are_loaded_by_a_server_as_into_a_store(
    own: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same output, on both streams, and the same exit code."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    make_graph(tmp_path / "store.omni")

    for arguments in sample(LOADS, 2):
        here = run("load", "store.omni", "--mode", "merge", *arguments)
        there = run("load", "--server", own.url, "--mode", "merge", *arguments)

        assert without_address(there, own.url) == without_address(here, "store.omni"), arguments


def test_several_files_are_one_commit_and_a_dry_run_is_none(own: Served) -> None:
    files = [("Person", ("a.csv", GOOD)), ("Knows", ("b.csv", EDGES))]
    with own.client() as client:
        before = len(client.get("/commits").json()["commits"])
        seen = client.send("POST", "/load/files?dry_run=true&mode=append", files=files)
        between = len(client.get("/commits").json()["commits"])
        done = client.send("POST", "/load/files", files=files)
        again = client.send("POST", "/load/files", files=files[:1])
        after = len(client.get("/commits").json()["commits"])

    counts = {each["table_key"]: each["inserted"] for each in seen.json()["tables"]}
    assert counts == {"node:Person": 2, "edge:Knows": 1}
    assert done.json()["notes"][0].startswith("b.csv: columns are separated by ';'")
    assert again.json()["commit"] is None
    assert (between - before, after - between) == (0, 1)


@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        (
            [("mapping", ("m.yaml", b"files: [{file: /etc/passwd, type: Person}]"))],
            400,
            "not below",
        ),
        ([("mapping", ("m.yaml", b"files: [{file: a/../../x, type: Person}]"))], 400, "not below"),
        ([("mapping", ("m.yaml", b"files: [{file: 's3://b/x', type: Person}]"))], 400, "not below"),
        ([("mapping", ("m.yaml", b"files: [{file: x.csv, type: Person}]"))], 400, "no such file"),
        (
            [("mapping", ("m.yaml", b"files: []")), ("mapping", ("n.yaml", b""))],
            400,
            "two mappings",
        ),
        ([("directory", (None, b"../x")), ("data", ("a", GOOD))], 400, "not the name of a file"),
        ([("Person", ("../a.csv", GOOD))], 400, "not the name of a file"),
        ([("Person", ("/a//b.csv", GOOD))], 400, "not the name of a file"),
        ([("Person", ("x" * 300, GOOD))], 400, "not a name that a file can have"),
        ([("Person", ("a.csv", GOOD)), ("Person", ("a.csv", BAD))], 400, "there twice"),
        ([("Person", ("a.csv", GOOD)), ("data", ("b.jsonl", b""))], 400, "all of them by type"),
        ([("person", ("a.csv", GOOD))], 400, "field 'person', expected the name of a type"),
        ([("Person", (None, b"slug"))], 400, "is no file, or has no name"),
        ([("models", ("_embedding_models.json", b"{}"))], 400, "the form has no file"),
        ([("models", ("../_embedding_models.json", b"{}"))], 400, "not the name of a file"),
        ([("Person", ("a.csv", GOOD * 100))], 413, "upload_request_bytes"),
    ],
)
def test_an_upload_reads_nothing_but_its_own_files(
    small: Served, files: list[tuple[str, tuple[str | None, bytes]]], status: int, said: str
) -> None:
    with small.client() as client:
        answer = client.send("POST", "/load/files", files=files)

    assert (answer.status_code, said in answer.json()["error"]) == (status, True), answer.text
    assert "omnigraph-input" not in answer.text


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = make_graph(tmp_path_factory.mktemp("small") / "graph")
    with served(single(path, limits=Limits(upload_bytes_max=1024))) as server:
        yield server


def test_what_is_no_form_is_refused(small: Served) -> None:
    form = b'--x\r\nContent-Disposition: form-data; name="Person"; filename="a"\r\n\r\nslug\r\nann'
    kinds = ["text/csv", "multipart/form-data", "multipart/form-data; boundary=x"]
    with small.client() as client:
        answers = [
            client.send("POST", "/load/files", content=body, headers={"Content-Type": kind})
            for kind, body in [
                *((kind, form) for kind in kinds),
                (kinds[2], b"--y"),
                (kinds[2], b""),
            ]
        ]

    assert [answer.status_code for answer in answers] == [415, 415, 400, 400, 400]
    assert "cut off" in answers[2].json()["error"]


def test_an_upload_is_never_whole_in_memory() -> None:
    """Sixteen megabytes go to disk through less than one."""
    upload = Upload(SpooledFiles.make())
    form = FormParser(upload, b"x")
    chunk = bytes(1 << 16)
    tracemalloc.start()
    try:
        form.feed(b'--x\r\nContent-Disposition: form-data; name="data"; filename="a.csv"\r\n\r\n')
        for _ in range(256):
            form.feed(chunk)
        form.feed(b"\r\n--x--\r\n")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    [(_, path)] = form.finish().files
    size = Path(path).stat().st_size
    upload.spooled.remove()

    assert (size, upload.size) == (16 << 20, 16 << 20)
    assert peak < 1 << 20


def test_vectors_are_made_over_a_server_as_in_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.chdir(tmp_path)
    schema = 'node Doc { slug: String @key  text: String  vec: Vector(4)? @embed("text") }'
    Path("docs.csv").write_text("slug,text\na,sea\nb,sky\n")
    graphs = [new_graph(tmp_path / name, schema, []) for name in ("store", "served")]
    with served(single(graphs[1])) as server:
        outcomes = []
        for address in (["--store", str(graphs[0])], ["--server", server.url]):
            load = ["--type", "Doc", "--data", "docs.csv", "--mode", "merge", "--no-embed"]
            run("load", *address, *load)
            calls = [["embed"], ["embed"], ["embed", "--type", "Dok"], ["embed", "--all"]]
            outcomes.append([run(*call, *address) for call in calls])

    here, there = (
        [without_address(each, address) for each in found]
        for found, address in zip(outcomes, (str(graphs[0]), server.url), strict=True)
    )
    assert there == here
    assert here[0][1] == "embedded 2 vectors on branch main in 1 commits\n"


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_an_export_that_is_sent_brings_the_model_of_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str
) -> None:
    """The server records it, as a store does, and refuses vectors of another model."""
    monkeypatch.chdir(tmp_path)
    schema = 'node Doc { slug: String @key  text: String  vec: Vector(64)? @embed("text") }'
    record = {"type": "Doc", "data": {"slug": "a", "text": "sea"}}
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    with og.init(tmp_path / "made", schema=schema) as made:
        made.load([record], mode="append")
        made.export("out.jsonl" if file_format == "jsonl" else "out", format=file_format)
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
    Path("new.csv").write_text("slug,text\nb,sky\n")
    data = "out.jsonl" if file_format == "jsonl" else "out"
    with served(single(new_graph(tmp_path / "served", schema, []))) as server:
        call = ("load", "--server", server.url, "--mode", "merge")
        sent = run(*call, "--data", data)
        mixed = run(*call, "--type", "Doc", "--data", "new.csv")

    assert sent.code == 0, sent.err
    assert "'Doc.vec' holds vectors of model 'mock'" in mixed.err


def test_standard_input_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = make_graph(tmp_path / "graph")
    stdin = io.TextIOWrapper(io.BytesIO(BAD))
    monkeypatch.setattr("sys.stdin", stdin)

    outcome = run("load", str(graph), "--mode", "merge", "--type", "Person", "--data", "-")

    assert "  stdin:3: Person: has 1 value, expected 2\n" in outcome.err
