"""One graph behind all surfaces at once: what they say about it is the same to the letter."""

from __future__ import annotations

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
        ("branch", "merge", "nope", "--preview"),
        ("log",),
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
