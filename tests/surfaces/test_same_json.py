"""One graph behind all surfaces at once: what they say about it is the same to the letter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.http.serving import INSERT, PEOPLE, UPDATE, make_graph, ndjson, served, single
from tests.surfaces.conftest import SURFACES, surface_of
from tests.surfaces.surfaces import Surface

pytestmark = pytest.mark.slow

_VARYING = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}|1[67]\d{14}")
QUERY = ("query", "-e", PEOPLE)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("same") / "graph")


@pytest.fixture(scope="module")
def surfaces(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Surface]]:
    with ExitStack() as stack:
        yield [surface_of(kind, path, path.parent, stack) for kind in SURFACES]


@pytest.fixture(scope="module")
def url(path: Path) -> Iterator[str]:
    with served(single(path)) as server:
        yield server.url


def test_results_of_reads_are_the_same_json(surfaces: list[Surface]) -> None:
    for call in ("snapshot", "schema", "branches", "commits", "export"):
        answers = [getattr(each, call)().json for each in surfaces]
        assert answers == [answers[0]] * len(surfaces), call
    reads = [each.query(PEOPLE).json for each in surfaces]
    assert reads == [reads[0]] * len(surfaces)
    assert [list(each) for each in reads] == [list(reads[0])] * len(surfaces), "in the same order"


def test_reports_of_upkeep_are_the_same_json(surfaces: list[Surface]) -> None:
    """On a store the call itself, over a server a job: one report, once there is nothing to do."""
    surfaces[0].upkeep("optimize").done()
    for kind, options in {
        "optimize": {},
        "ensure_indices": {"branch": "main"},
        "cleanup": {"keep": 1_000},
        "repair": {"confirm": True},
        "verify": {"content": True},
    }.items():
        answers = [each.upkeep(kind, **options).json for each in surfaces]  # type: ignore[arg-type]
        assert answers == [answers[0]] * len(surfaces), kind
    reports = [each.doctor().json for each in surfaces]
    for report in reports:
        del report["disk_free_bytes"]
    assert reports == [reports[0]] * len(surfaces)


def test_damage_is_reported_with_the_same_words_and_exit_code(tmp_path: Path) -> None:
    damaged = make_graph(tmp_path / "graph")
    next(iter((damaged / "nodes").glob("*/data/*.lance"))).unlink()
    with served(single(make_graph(tmp_path / "whole"))) as server:
        whole = run("verify", "--server", server.url)
    with served(single(damaged)) as server:
        here, there = run("verify", "--store", str(damaged)), run("verify", "--server", server.url)

    assert (whole.code, whole.err) == (0, "")
    assert (there.out, there.code) == (here.out, here.code)
    assert here.code == 1
    assert "damaged: " in here.out


def mask(value: Any) -> Any:
    """The value without what differs from graph to graph: ids, times, places."""
    match value:
        case dict():
            skipped = {"uri", "transaction", "created_at"}
            return {name: mask(each) for name, each in value.items() if name not in skipped}
        case list():
            return [mask(each) for each in value]
        case str():
            return _VARYING.sub("*", value)
        case _:
            return value


def written(surface: Surface) -> list[Any]:
    """Do every kind of write, and say what came of it."""
    lin = {"type": "Person", "data": {"slug": "lin"}}
    return [
        mask(answer.json)
        for answer in (
            surface.mutate(INSERT, params={"slug": "kim", "age": 3}),
            surface.load(ndjson([lin]), "append", branch="dev", base="main"),
            surface.mutate(UPDATE, params={"slug": "ada", "age": 3}),
            surface.merge("dev", delete=True),
            surface.create_branch("next"),
            surface.delete_branch("next"),
            surface.apply_schema(surface.schema().json["schema_source"] + "\nnode Extra { }\n"),
        )
    ]


def test_results_of_writes_are_the_same_json(tmp_path: Path) -> None:
    told = {}
    with ExitStack() as stack:
        for number, kind in enumerate(SURFACES):
            graph = make_graph(tmp_path / str(number) / "graph")
            told[kind] = written(surface_of(kind, graph, graph.parent, stack))

    for kind in SURFACES:
        assert told[kind] == told["library"], kind


@pytest.mark.parametrize(
    "command",
    [
        *((*QUERY, "--format", each) for each in ("table", "kv", "csv", "jsonl", "json")),
        ("snapshot",),
        ("branch", "list"),
        ("branch", "diff", "main"),
        ("branch", "diff", "nope"),
        ("changes", "poll", "--start", "beginning"),
        ("changes", "poll", "--cursor", "x"),
        ("changes", "poll", "--start", "beginning", "--type", "Company", "--limit", "1"),
        ("commit", "changes", "nope"),
        ("branch", "merge", "nope", "--preview"),
        ("log",),
        ("log", "--type", "Person", "--patch", "--changes", "1"),
        ("commit", "list", "--stat"),
        ("log", "--patch", "--stat"),
        ("history", "Person", "ada"),
        ("blame", "Person", "ada"),
        ("blame", "Person", "nope"),
        ("explain", "-e", PEOPLE),
        ("commit", "list"),
        ("schema", "show"),
        ("export",),
        ("query", "-e", "query q() {"),
        ("query", "-e", PEOPLE, "--branch", "nope"),
        ("commit", "show", "nope"),
        ("branch", "merge", "nope", "--quiet"),
        ("mutate", "-e", INSERT, "--params", "[]"),
        ("mutate", "-e", INSERT, "--params", "{}"),
    ],
    ids=" ".join,
)
def test_a_command_prints_the_same_about_a_store_and_a_server(
    path: Path, url: str, command: tuple[str, ...]
) -> None:
    """Human output, errors and exit codes, byte by byte."""
    direct = run(*command, "--store", path)
    remote = run(*command, "--server", url)

    assert remote == direct


def test_a_baseline_is_written_whole_and_then_followed(
    path: Path, url: str, tmp_path: Path
) -> None:
    """The file is the same from a store and a server, and so is what the cursor finds."""
    told = []
    for address in (("--store", str(path)), ("--server", url)):
        out = tmp_path / f"{address[0]}.jsonl"
        said = run("changes", "baseline", "--out", out, "--kind", "node", "--json", *address)
        facts = json.loads(said.out)
        told.append((out.read_text(), {**facts, "out": ""}))

    assert told[0] == told[1]
    cursor = told[0][1]["resume_cursor"]
    polled = run("changes", "poll", "--cursor", cursor, "--kind", "node", "--server", url)
    assert json.loads(polled.out) == {"cursor": cursor, "caught_up": True}
    refused = run("changes", "baseline", "--out", tmp_path / "x", "--type", "Nope", "--server", url)
    assert (refused.code, (tmp_path / "x").exists()) == (1, False)
    commit = json.loads(told[0][0].splitlines()[0])  # records are those of an export
    assert set(commit) == {"type", "data"}


def test_the_changes_of_a_commit_are_lines_or_a_page(path: Path, url: str) -> None:
    listed = run("commit", "list", "--json", "--store", path)
    commit_id = json.loads(listed.out)["commits"][0]["graph_commit_id"]
    for flags in ((), ("--json",), ("--limit", "1")):
        direct = run("commit", "changes", commit_id, *flags, "--store", path)
        remote = run("commit", "changes", commit_id, *flags, "--server", url)
        assert (direct.code, remote) == (0, direct)
        assert direct.out


def test_the_old_form_of_changes_still_lists(path: Path) -> None:
    listed = json.loads(run("commit", "list", "--json", "--store", path).out)["commits"]
    since = listed[-1]["graph_commit_id"]

    old = run("changes", str(path), "--since", since)

    assert old == run("changes", "list", str(path), "--since", since)
    assert len(old.out.splitlines()) == len(listed) - 1
