"""The engines agree: the same input gives the same graph or the same error on every engine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import OmnigraphError
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE, PART_BYTES_VARIABLE
from tests.depth import depth
from tests.pipeline.conftest import SCHEMA, SPARK, unclaimed_files

pytestmark = pytest.mark.slow

NAMES = st.sampled_from(["ann", "bob", "cy", "dee", "eve"])
GOOD = st.one_of(
    st.builds(
        lambda name, age, email: {
            "type": "Person",
            "data": {"name": name, "age": age, "email": email},
        },
        NAMES,
        st.none() | st.integers(0, 150),
        st.none() | st.sampled_from(["a@x", "b@x"]),
    ),
    st.builds(lambda name: {"type": "Team", "data": {"name": name}}, NAMES),
    st.builds(
        lambda source, target, id_: {
            "edge": "Knows",
            "from": source,
            "to": target,
            "data": {"id": id_},
        },
        NAMES,
        NAMES,
        st.sampled_from(["1", "2", "3"]),
    ),
    st.builds(
        lambda source, target, id_: {
            "edge": "MemberOf",
            "from": source,
            "to": target,
            "data": {"id": id_},
        },
        NAMES,
        NAMES,
        st.sampled_from(["1", "2", "3"]),
    ),
)
BAD = st.sampled_from(
    ["{", "//", "", "7", '{"type":"Nope"}', '{"type":"Person","data":{"name":1}}']
)
LINES = st.lists(
    st.one_of(GOOD.map(json.dumps), GOOD.map(lambda r: json.dumps(r, indent=1)), BAD), max_size=14
)
LOADS = st.lists(
    st.tuples(
        st.sampled_from(["append", "merge", "overwrite"]),
        st.sampled_from(["reject", "quarantine"]),
        LINES,
    ),
    min_size=1,
    max_size=3,
)


def outcome(graph: og.Graph, loads: Any, engine: str) -> list[Any]:
    """What each load answered, and the graph afterwards."""
    answers: list[Any] = []
    for mode, on_error, lines in loads:
        try:
            result = graph.load(
                "//\n" + "\n".join(lines), mode=mode, on_error=on_error, engine=engine
            )
            answers.append((dict(result.tables), result.rows_rejected))
        except OmnigraphError as error:
            answers.append((type(error).__name__, str(error)))
    return [*answers, list(graph.export())]


@pytest.mark.parametrize("other", ["many ranges", SPARK])
def test_every_engine_gives_the_same_graph(
    other: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    engine = "inline"
    if other == "spark":
        request.getfixturevalue("spark")
        engine = "spark"

    @settings(
        max_examples=depth(2, 20) if other == "spark" else depth(6, 100),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(LOADS, st.integers(20, 400), st.integers(1, 6))
    def agree(loads: Any, part_bytes: int, check_rows: int) -> None:
        top = tmp_path_factory.mktemp("equality")
        with new_graph(top / "a") as one, new_graph(top / "b") as two:
            expected = outcome(one, loads, "inline")
            os.environ[PART_BYTES_VARIABLE] = str(part_bytes)
            os.environ[CHECK_ROWS_VARIABLE] = str(check_rows)
            try:
                actual = outcome(two, loads, engine)
            finally:
                del os.environ[PART_BYTES_VARIABLE], os.environ[CHECK_ROWS_VARIABLE]
            assert actual == expected
            assert unclaimed_files(two) == []

    agree()


def test_checking_columns_in_threads_gives_the_same_result(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    @settings(max_examples=depth(5, 50), deadline=None, suppress_health_check=list(HealthCheck))
    @given(LOADS)
    def agree(loads: Any) -> None:
        top = tmp_path_factory.mktemp("threads")
        with new_graph(top / "a") as one, new_graph(top / "b") as two:
            monkeypatch.setattr("omnigraph.pipeline.run_checks.THREADED_ROWS", 1_000_000)
            expected = outcome(one, loads, "inline")
            monkeypatch.setattr("omnigraph.pipeline.run_checks.THREADED_ROWS", 0)
            assert outcome(two, loads, "inline") == expected

    agree()


def new_graph(path: Path) -> og.Graph:
    return og.init(path, schema=SCHEMA, durability="process", self_care=False)
