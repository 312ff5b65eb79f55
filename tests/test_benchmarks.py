"""`make bench` in its small form: every system answers the same, and the results are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.chart import draw_chart
from benchmarks.compare import SYSTEMS_VARIABLE
from benchmarks.harness import Figure
from benchmarks.page import render_page

ROOT = Path(__file__).parent.parent


def run_bench(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_a_quick_run_writes_json_a_page_and_a_chart(tmp_path: Path) -> None:
    systems = {SYSTEMS_VARIABLE: "omnigraph,sqlite"}

    done = run_bench("--quick", "--out", str(tmp_path), "compare", **systems)

    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert {"cores", "load_average", "versions"} <= results["machine"].keys()
    figures = [Figure(**each) for each in results["scenarios"]["compare"]]
    subjects = {each.subject.partition(" ")[0] for each in figures}
    assert subjects == {"omnigraph", "sqlite"}
    asked = [each for each in figures if each.name == "q9"]
    assert {each.unit for each in asked} == {"cpu ms", "wall ms"}
    assert all(each.repeat == 3 and each.least <= each.value <= each.most for each in asked)  # type: ignore[operator]
    ElementTree.parse(tmp_path / "compare.svg")
    page = (tmp_path / "README.md").read_text()
    assert "load average" in page
    assert "![compare](compare.svg)" in page


@pytest.mark.slow
def test_a_scenario_that_fails_is_named_and_does_not_stop_the_others(tmp_path: Path) -> None:
    done = run_bench("--quick", "--out", str(tmp_path), "compare", **{SYSTEMS_VARIABLE: "nothing"})

    assert done.returncode == 1
    assert "failed: compare" in done.stderr
    assert json.loads((tmp_path / "results.json").read_text())["scenarios"] == {}


def test_the_page_in_the_docs_is_that_of_the_results_beside_it() -> None:
    folder = ROOT / "docs" / "benchmarks"

    recorded = json.loads((folder / "results.json").read_text())

    scenarios = recorded["scenarios"].items()
    results = {name: [Figure(**each) for each in found] for name, found in scenarios}
    charts = {name: f"{name}.svg" for name in results if (folder / f"{name}.svg").exists()}
    assert (folder / "README.md").read_text() == render_page(recorded["machine"], results, charts)


def test_a_chart_has_a_bar_per_system_and_the_spread() -> None:
    figures = [
        Figure("q1", 2.0, "wall ms", 1.0, 40.0, 5, "one <1>"),
        Figure("q1", 20.0, "wall ms", 10.0, 30.0, 5, "two"),
        Figure("q1", 3.0, "cpu ms", subject="one <1>"),
        Figure("q2", 0.0, "wall ms", subject="two"),
    ]

    svg = ElementTree.fromstring(draw_chart("a & b", "wall ms", figures))

    bars = [each for each in svg if each.tag.endswith("rect") and each.get("height") == "12"]
    widths = [float(each.get("width", "")) for each in bars]
    assert len(widths) == 2
    assert widths[0] < widths[1]
    assert len([each for each in svg if each.tag.endswith("line")]) == 2
    assert "one <1>" in [each.text for each in svg]
