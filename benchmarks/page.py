"""Page: the results of a run as JSON, as Markdown and as charts, in one folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.chart import draw_chart
from benchmarks.harness import Figure

INTRODUCTION = """# Benchmarks

`make bench` measures every scenario in a process of its own and writes this page, the figures as
`results.json`, and charts. Systems that are installed take part (`pip install
'omnigraph[bench]'`): each loads the same social graph into its own store on disk, with its own
defaults, and gives the same answers. `make bench ARGS=--quick` tries out everything with a few
hundred people; its figures mean nothing. `make bench ARGS='compare merge'` runs two scenarios,
`ARGS='--out DIRECTORY'` writes elsewhere, `OMNIGRAPH_BENCH_PEOPLE` sets the size and
`OMNIGRAPH_BENCH_SYSTEMS=omnigraph,duckdb` the systems.

A figure is the median, with the least and the greatest of its measurements behind it. CPU time is
the time of all threads of the process. Compare figures of one run only: on a busy machine wall
time says little, so the load of the machine is stated.
"""
NO_RESULTS = "\nNo run on a quiet machine is recorded here yet.\n"

Results = Mapping[str, Sequence[Figure]]


def write_results(out: Path, machine: Mapping[str, object], results: Results) -> None:
    """Write everything about one run; what an earlier one wrote is replaced."""
    out.mkdir(parents=True, exist_ok=True)
    figures = {name: [asdict(each) for each in found] for name, found in results.items()}
    text = json.dumps({"machine": machine, "scenarios": figures}, indent=1) + "\n"
    (out / "results.json").write_text(text)
    charts: dict[str, str] = {}
    for name, found in results.items():
        if len({each.subject for each in found}) > 1:
            charts[name] = f"{name}.svg"
            chart = draw_chart(f"{name}: Omnigraph and others", "cpu ms", found)
            (out / charts[name]).write_text(chart)
    (out / "README.md").write_text(render_page(machine, results, charts))


def render_page(machine: Mapping[str, object], results: Results, charts: Mapping[str, str]) -> str:
    """The page of one run, or of none."""
    if not results:
        return INTRODUCTION + NO_RESULTS
    lines = [INTRODUCTION, "## Machine", "", "| | |", "|---|---|"]
    for key, value in machine.items():
        shown = value
        if isinstance(value, Mapping):
            shown = ", ".join(f"{name} {each}" for name, each in value.items())
        lines.append(f"| {key.replace('_', ' ')} | {shown} |")
    for name, figures in results.items():
        lines += ["", f"## {name}", ""]
        if name in charts:
            lines += [f"![{name}]({charts[name]})", ""]
        lines += _table(figures)
    return "\n".join(lines) + "\n"


def _table(figures: Sequence[Figure]) -> Iterator[str]:
    subjects = list(dict.fromkeys(each.subject for each in figures))
    yield "| | unit | " + " | ".join(each or "omnigraph" for each in subjects) + " |"
    yield "|---|---|" + "---:|" * len(subjects)
    for name, unit in dict.fromkeys((each.name, each.unit) for each in figures):
        cells = []
        for subject in subjects:
            found = [f for f in figures if (f.name, f.unit, f.subject) == (name, unit, subject)]
            cells.append(_cell(found[0]) if found else "—")
        yield f"| {name} | {unit} | " + " | ".join(cells) + " |"


def _cell(figure: Figure) -> str:
    spread = ""
    if figure.repeat > 1 and figure.least is not None and figure.most is not None:
        spread = f" ({figure.least:,.3g}–{figure.most:,.3g})"
    return f"{figure.value:,.4g}{spread}"
