"""The schema files: texts as they were accepted are not parsed again, any others are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ConflictError
from omnigraph.manifest import contract
from tests.graph.reading import new_graph, reopen


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return new_graph(tmp_path / "graph")


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("a schema was parsed")


def test_an_open_parses_no_schema_that_is_as_it_was_accepted(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "parse_schema", refuse)

    assert reopen(graph).schema == graph.schema


def test_texts_of_a_version_that_recorded_no_checksums_are_parsed(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(graph.uri, "__schema_state.json")
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in facts.items() if k not in ("files", "checksum")}))

    assert reopen(graph).schema == graph.schema
    monkeypatch.setattr(contract, "parse_schema", refuse)
    with pytest.raises(AssertionError, match="was parsed"):
        reopen(graph)


@pytest.mark.parametrize("hides_it", [False, True])
def test_an_edit_is_noticed_when_the_graph_is_opened(graph: og.Graph, hides_it: bool) -> None:
    """Also one by hand that takes the record of the text along, but not the seal of the record."""
    source, state = (Path(graph.uri, name) for name in ("_schema.pg", "__schema_state.json"))
    facts, catalog = json.loads(state.read_text()), graph.catalog
    source.write_text(source.read_text().replace("age: I32?", "age: I64?"))
    if hides_it:
        made = contract.build_contract_texts(source.read_text(), catalog)
        facts["files"] = json.loads(made["__schema_state.json"])["files"]
        state.write_text(json.dumps(facts, indent=2))

    with pytest.raises(ConflictError, match=r"_schema\.pg is not the accepted schema"):
        reopen(graph)
