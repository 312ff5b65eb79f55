"""One rule book: a change is judged alike, whether statements make it, rows in memory or files.

Every way makes a prepared write: computed and checked over one snapshot, tied to the versions of
the same tables, refused for the same reasons in the same words, and committed once per table.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.pipeline.engine import PART_BYTES_VARIABLE
from omnigraph.write.bad_rows import BadRowsError
from tests.pipeline.conftest import SCHEMA, knows, person

Records = list[dict[str, Any]]
Way = Callable[[og.Graph, str, Records], object]


def by_statements(graph: og.Graph, statements: str, _: Records) -> object:
    return graph.mutate(f"query q() {{ {statements} }}")


def by_rows(graph: og.Graph, _: str, records: Records) -> object:
    """One range of input: its rows are held in memory."""
    return graph.load(records, mode="merge", engine="inline")


def by_files(graph: og.Graph, _: str, records: Records) -> object:
    """Several ranges: their rows are files before they are checked."""
    text, scratch = "\n".join(map(json.dumps, records)), list[str]()

    def look() -> None:
        scratch.extend(os.listdir(Path(graph.uri) / "__load"))

    with (
        pytest.MonkeyPatch.context() as patch,
        arm_failpoints({Failpoint.LOAD_AFTER_STAGED_PART: look}),
    ):
        patch.setenv(PART_BYTES_VARIABLE, "50")
        try:
            return graph.load(text, mode="merge", engine="inline")
        finally:
            assert scratch


WAYS: dict[str, Way] = {"statements": by_statements, "rows": by_rows, "files": by_files}


def team(name: str) -> dict[str, Any]:
    return {"type": "Team", "data": {"name": name}}


def member(source: str, target: str) -> dict[str, Any]:
    return {"edge": "MemberOf", "from": source, "to": target}


BROKEN: dict[str, tuple[str, Records]] = {
    "an endpoint is missing": (
        'insert Knows { from: "ann", to: "nobody" }',
        [knows("ann", "nobody")],
    ),
    "a unique value is taken": (
        'insert Person { name: "cy", email: "a@x" }',
        [person("cy", email="a@x")],
    ),
    "a unique value comes twice": (
        'insert Person { name: "cy", email: "c" } insert Person { name: "di", email: "c" }',
        [person("cy", email="c"), person("di", email="c")],
    ),
    "two properties are unique together": (
        'insert MemberOf { from: "bob", to: "t" } insert MemberOf { from: "bob", to: "t" }',
        [member("bob", "t"), member("bob", "t")],
    ),
    "a source has too many edges": (
        'insert MemberOf { from: "ann", to: "v" }',
        [member("ann", "v")],
    ),
    "a value is out of range": (
        'insert Person { name: "cy", age: 151 }',
        [person("cy", age=151)],
    ),
    "a keyed edge goes nowhere": (
        'insert Rates { from: "ann", to: "x9" }',
        [{"edge": "Rates", "from": "ann", "to": "x9"}],
    ),
    "two rules are broken": (
        'insert MemberOf { from: "ann", to: "t" }',
        [member("ann", "t")],
    ),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that refused changes leave as it is."""
    return new_graph(tmp_path_factory.mktemp("rules") / "graph")


def new_graph(path: Path) -> og.Graph:
    graph = og.init(path, schema=SCHEMA, durability="process", self_care=False)
    nodes = [person("ann", email="a@x"), person("bob"), *map(team, "tuv")]
    graph.load([*nodes, member("ann", "t"), member("ann", "u")], mode="append")
    return graph


def reasons(error: BadRowsError) -> list[str]:
    """What is wrong, without where in the input that is."""
    return [re.sub(r"^\s*(row |record |data:)\d+: ", "", line) for line in str(error).splitlines()]


@pytest.mark.accepts("S-018")
@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_refused_in_the_same_words_however_the_rows_come(
    graph: og.Graph, rule: str
) -> None:
    statements, records = BROKEN[rule]
    before = graph.snapshot()
    said: dict[str, list[str]] = {}

    for name, way in WAYS.items():
        # Good records behind, so that there is always more than one range.
        with pytest.raises(BadRowsError) as caught:
            way(graph, statements, [*records, team("x"), team("y")])
        said[name] = reasons(caught.value)

    assert said["statements"] == said["rows"] == said["files"]
    assert graph.snapshot() == before


@pytest.mark.accepts("S-018", "S-024")
def test_a_change_rests_on_the_same_tables_however_the_rows_come(tmp_path: Path) -> None:
    """The sidecar names what is written and what was read: both, and their versions, are equal."""
    statements = """
        insert Person { name: "cy", age: 3 }
        insert Person { name: "ann", age: 4 }
        insert MemberOf { from: "cy", to: "t" }
    """
    records = [person("cy", age=3), person("ann", age=4), member("cy", "t")]
    intents: dict[str, Any] = {}
    people: dict[str, Any] = {}

    for name, way in WAYS.items():
        graph = new_graph(tmp_path / name)
        before = {key: entry.version for key, entry in graph.snapshot().entries.items()}

        def note(name: str = name, graph: og.Graph = graph) -> None:
            (path,) = (Path(graph.uri) / "__recovery").glob("*.json")
            intents[name] = json.loads(path.read_text())

        with arm_failpoints({Failpoint.COMMIT_AFTER_SIDECAR: note}):
            way(graph, statements, records)
        after = {key: entry.version for key, entry in graph.snapshot().entries.items()}
        moved = {key: after[key] - before[key] for key in after if after[key] != before[key]}
        assert moved == {"edge:MemberOf": 1, "node:Person": 1}
        found = graph.scan("Person").to_arrow().to_pylist()
        people[name] = sorted((row["id"], row["age"]) for row in found)

    rests = {name: intent["read_versions"] for name, intent in intents.items()}
    writes = {
        name: sorted((pin["table_key"], pin["expected_version"]) for pin in intent["tables"])
        for name, intent in intents.items()
    }
    assert rests["statements"] == rests["rows"] == rests["files"]
    assert set(rests["rows"]) == {"edge:MemberOf", "node:Person", "node:Team"}
    assert writes["statements"] == writes["rows"] == writes["files"]
    assert people["statements"] == people["rows"] == people["files"]
    assert people["rows"] == [("ann", 4), ("bob", None), ("cy", 3)]
    assert intents["statements"]["writer_kind"] != intents["rows"]["writer_kind"]
