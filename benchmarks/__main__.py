"""`make bench`: run every scenario, or those named, each in a process of its own.

python -m benchmarks [--quick] [--record] [--out DIRECTORY] [NAME...]

Prints each figure beside the last recorded one as soon as it is measured, and after each scenario
writes the results to docs/benchmarks/, those of a quick run to a temporary directory, or to the one
named. A scenario that fails is named at the end and does not stop the others; what it measured
before is kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import QUICK_VARIABLE, Figure, report
from benchmarks.machine import describe_machine
from benchmarks.page import write_results

HERE = Path(__file__).parent
DEFAULT_OUT = HERE.parent / "docs" / "benchmarks"
SCENARIOS = (
    "compare",
    "compile",
    "files",
    "growth",
    "inserts",
    "joins",
    "load",
    "merge",
    "paths",
    "queries",
    "reopen",
    "scale",
    "search",
    "server",
    "spark",
    "start",
    "versions",
    "workbench",
    "writes",
)
FIGURE = "figure: "
"""Begins the lines in which a scenario tells its figures; its libraries may print others."""
QUICK = ("compare", "compile", "growth", "reopen", "search", "start", "versions")
"""The scenarios that have a small form."""


def main(given: list[str]) -> int:
    arguments = _parse(given)
    if arguments.child is not None:
        _run_here(arguments.child)
        return 0
    if arguments.quick:
        os.environ[QUICK_VARIABLE] = "1"
    wanted = arguments.names or (QUICK if arguments.quick else SCENARIOS)
    machine = describe_machine()
    out = arguments.out or (Path(tempfile.mkdtemp()) if arguments.quick else DEFAULT_OUT)
    results: dict[str, list[Figure]] = {}
    failed: list[str] = []
    for name in wanted:
        print(f"-- {name}", flush=True)
        found, is_complete = _run_alone(name, record=arguments.record)
        if found:
            results[name] = found
        if not is_complete:
            failed.append(name)
        write_results(out, machine, results)
    print(f"results are in {out}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _parse(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, []], metavar="NAME")
    parser.add_argument(
        "--quick", action="store_true", help="small forms, to try out the machinery"
    )
    parser.add_argument("--record", action="store_true", help="keep the figures as the last ones")
    parser.add_argument("--out", type=Path, help="where results are written")
    parser.add_argument("--child", choices=SCENARIOS, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def _run_alone(name: str, *, record: bool) -> tuple[list[Figure], bool]:
    """Report the figures of a scenario in a process of its own; whether it came to its end."""
    command = [sys.executable, "-m", "benchmarks", "--child", name]
    found = list[Figure]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(FIGURE):
                figure = Figure(**json.loads(line.removeprefix(FIGURE)))
                report([figure], record=record)
                found.append(figure)
    return found, child.returncode == 0


def _run_here(name: str) -> None:
    for figure in importlib.import_module(f"benchmarks.{name}").run():
        print(FIGURE + json.dumps(asdict(figure)), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
