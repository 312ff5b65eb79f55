"""The Spark examples of the guide run, one after the other, in the one session of the suite.

Those of the data source are only compiled: starting its processes takes long, and
`test_sources.py` has the same calls.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.docs_blocks import ROOT, blocks_of

pytestmark = pytest.mark.xdist_group("spark")

GUIDE = ROOT / "docs" / "guides" / "load-with-spark.md"
MARK = "# on Spark\n"


def test_the_spark_examples_of_the_guide_do_what_it_says(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [block.text for block in blocks_of(GUIDE) if block.text.startswith(MARK)]
    folder = Path(shutil.copytree(ROOT / "examples" / "team", tmp_path / "team"))
    monkeypatch.chdir(folder)
    (folder / "incoming").mkdir()
    (folder / "incoming" / "1.json").write_text('{"slug": "new", "name": "New"}')
    graph = og.init("team.omni", schema=(folder / "team.pg").read_text())
    graph.load("people.jsonl", mode="append")

    names: dict[str, object] = {"og": og, "graph": graph, "spark": spark}
    for example in examples:
        # The folder that Spark is in is the one it was started in.
        located = re.sub(r'"(incoming|checkpoint)"', rf'"{folder}/\1"', example)
        code = compile(located, str(GUIDE), "exec")
        if 'format("omnigraph")' not in example:
            exec(code, names)

    people = {row["id"] for row in graph.nodes("Person").to_arrow().to_pylist()}
    assert len(examples) == 5
    assert capsys.readouterr().out.splitlines() == [
        "spark {'edge:Knows': 1, 'node:Person': 2}",
        "['Knows', 'Wrote', 'Note', 'Person']",
        "3",
        "0",
    ]
    assert {"kim", "max", "new"} <= people
