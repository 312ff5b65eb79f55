"""The data sets of `examples/`: each format gives the same graph, and a second load nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA_SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "papers": ("papers.pg", {"data": EXAMPLES / "papers" / "csv"}),
    "movies": ("movies.pg", {"data": EXAMPLES / "movies" / "csv"}),
    "messy": ("shop.pg", {"mapping": EXAMPLES / "messy" / "load.yaml"}),
}


@pytest.mark.parametrize("name", DATA_SETS)
def test_every_form_of_an_example_gives_the_same_graph(name: str, tmp_path: Path) -> None:
    schema, rows = DATA_SETS[name]
    forms: list[dict[str, Any]] = [
        rows,
        {"data": EXAMPLES / name / "parquet"},
        {"data": EXAMPLES / name / f"{name}.jsonl"},
    ]
    text = (EXAMPLES / name / schema).read_text()
    seen = []
    for number, form in enumerate(forms):
        with og.init(tmp_path / str(number), schema=text, durability="process") as graph:
            first = graph.load(**form, mode="merge")
            again = graph.load(**form, mode="merge")
            overwritten = graph.load(**form, mode="overwrite")
            seen.append(list(graph.export()))
        assert first.commit_id is not None
        assert (again.commit_id, overwritten.commit_id) == (None, None)

    assert seen[0] == seen[1] == seen[2]
