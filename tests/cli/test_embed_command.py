"""`embed`: vectors for a file of records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.embed.mock import MockEmbedder
from tests.cli.running import run

SPEC = {
    "dimension": 4,
    "types": {"Note": {"target": "embedding", "fields": ["title", "tags", "body"]}},
}
RECORDS = """\
// notes
{"type":"Note","data":{"slug":"a","title":" Sea ","tags":["x","y"],"body":null}}
{"type":"Note","data":{"slug":"b","title":"Land","embedding":[1,0,0,0]}}
{"type":"Note","data":{"slug":"c","title":"Air","embedding":[]}}
{"type":"Person","data":{"slug":"p"}}
{"edge":"Wrote","from":"p","to":"a"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    Path("in.jsonl").write_text(RECORDS)
    Path("spec.json").write_text(json.dumps(SPEC))
    return tmp_path


FILES = ("--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json")


def embedded(*flags: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The report, and the vector of each note by slug."""
    outcome = run("embed", *FILES, *flags, "--json")
    assert outcome.code == 0, outcome.err
    lines = Path("out.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines if line.startswith('{"type":"Note"')]
    vectors = {each["data"]["slug"]: each["data"].get("embedding") for each in records}
    return json.loads(outcome.out), vectors


def vector(text: str) -> list[float]:
    return MockEmbedder().embed_query(text, 4)


def test_missing_vectors_are_filled_and_all_else_passes_through() -> None:
    report, vectors = embedded()

    assert report == {
        "input": "in.jsonl",
        "output": "out.jsonl",
        "records": 5,
        "selected_records": 3,
        "embedded_records": 2,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "",
    }
    assert vectors == {
        "a": vector("type: Note\ntitle: Sea\ntags: x, y"),
        "b": [1, 0, 0, 0],
        "c": vector("type: Note\ntitle: Air"),
    }
    before, after = (Path(name).read_text().splitlines() for name in ("in.jsonl", "out.jsonl"))
    for number in (0, 2, 4, 5):
        assert after[number] == before[number]


def test_reembed_all_computes_every_vector_again() -> None:
    report, vectors = embedded("--reembed-all")

    assert (report["mode"], report["embedded_records"]) == ("reembed_all", 3)
    assert vectors["b"] == vector("type: Note\ntitle: Land")


@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        (("--select", "slug=b"), {"b"}),
        (("--select", "Note:title=Land", "--select", "slug=a"), {"a", "b"}),
        (("--select", "tags=y"), {"a"}),
        (("--select", "Person:slug=b"), set()),
        (("--type", "Person", "--reembed-all"), set()),
    ],
)
def test_only_what_is_selected_is_touched(flags: tuple[str, ...], changed: set[str]) -> None:
    report, vectors = embedded(*flags)

    old = {"a": None, "b": [1, 0, 0, 0], "c": []}
    assert {slug for slug in old if vectors[slug] != old[slug]} == changed
    assert report["embedded_records"] == len(changed)


def test_clean_removes_vectors_without_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")

    report, vectors = embedded("--clean")

    assert (report["mode"], report["cleaned_records"], report["model"]) == ("clean", 2, None)
    assert set(vectors.values()) == {None}


def test_a_manifest_names_the_files_relative_to_itself() -> None:
    Path("seed").mkdir()
    Path("seed/manifest.yaml").write_text(
        "sources: { raw_seed: ../in.jsonl }\n"
        "embeddings: { dimension: 4, types: { Note: { target: v, fields: [title] } } }\n"
    )

    usual = run("embed", "--seed", "seed/manifest.yaml")
    other = run("embed", "--seed", "seed/manifest.yaml", "--output", "other.jsonl")

    assert (usual.code, other.code) == (0, 0), usual.err
    assert Path("seed/build/seed.embedded.jsonl").read_text() == Path("other.jsonl").read_text()
    assert '"v":[' in Path("other.jsonl").read_text()


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ((), 2, "no graph addressed"),
        (("--input", "in.jsonl"), 2, "give --seed, or all of"),
        (("--seed", "x", "--input", "y"), 2, "--seed names the input"),
        ((*FILES, "--clean", "--reembed-all"), 2, "mutually exclusive"),
        ((*FILES, "--select", "nothing"), 1, "is not a selector"),
        (("--input", "no", "--output", "o", "--spec", "spec.json"), 1, "cannot embed 'no'"),
        (("--input", "in.jsonl", "--output", "o", "--spec", "in.jsonl"), 1, "not JSON"),
        (("--input", "spec.json", "--output", "o", "--spec", "bad.json"), 1, "dimension"),
        (("--input", "bad.jsonl", "--output", "o", "--spec", "spec.json"), 1, "bad.jsonl:2: not"),
    ],
)
def test_a_failed_run_leaves_no_output(flags: tuple[str, ...], code: int, message: str) -> None:
    Path("bad.json").write_text('{"dimension": 0, "types": {}}')
    Path("bad.jsonl").write_text('{"type":"Note"}\n{broken\n')

    outcome = run("embed", *flags)

    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err
    assert not list(Path().glob("o*"))


def test_without_a_provider_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")
    for key in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)

    outcome = run("embed", *FILES)

    assert outcome.code == 1
    assert "no embedding provider is configured" in outcome.err
    assert not Path("out.jsonl").exists()


# Graphs


@pytest.fixture
def graph_uri(folder: Path) -> str:
    Path("notes.pg").write_text(
        'node Note { slug: String @key  text: String?  vec: Vector(4)? @embed("text") }'
    )
    Path("notes.jsonl").write_text('{"type":"Note","data":{"slug":"a","text":"sea"}}\n')
    assert run("init", "notes.omni", "--schema", "notes.pg").code == 0
    loaded = run("load", "notes.omni", "--data", "notes.jsonl", "--mode", "merge", "--no-embed")
    assert "left 1 vectors empty" in loaded.out
    assert "embedding was turned off" in loaded.err
    return "notes.omni"


def test_a_graph_catches_up(graph_uri: str) -> None:
    filled = run("embed", graph_uri, "--json")
    again = run("embed", graph_uri)

    report = json.loads(filled.out)
    assert (report["rows_embedded"], report["rows_unembedded"]) == (1, 0)
    assert report["models"] == {"Note.vec": "mock"}
    assert "embedded 0 vectors on branch main in 0 commits" in again.out


def test_a_graph_that_nothing_can_embed_fails(
    graph_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBEDDINGS_MOCK")

    outcome = run("embed", graph_uri)

    assert outcome.code == 1
    assert "left 1 empty" in outcome.out
    assert "OMNIGRAPH_EMBED_PROVIDER" in outcome.err


@pytest.mark.parametrize(
    "flags", [("--clean",), ("--select", "a=b"), (*FILES,), ("--branch", "b", *FILES)]
)
def test_flags_of_files_and_of_graphs_do_not_mix(graph_uri: str, flags: tuple[str, ...]) -> None:
    outcome = run("embed", graph_uri, *flags)

    assert outcome.code == 2
    assert "are for files" in outcome.err
