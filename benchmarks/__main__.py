"""`make bench`: run every scenario, or those named, each in a process of its own.

python -m benchmarks [--quick] [--record] [--out DIRECTORY] [NAME...]

Writes the results to docs/benchmarks/, those of a quick run to a temporary directory, or to the one
named, and prints each figure beside the last recorded one. A scenario that fails is named at the
end and does not stop the others.
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
    "transfer",
    "workbench",
    "writes",
)
QUICK = ("compare", "compile", "growth", "reopen", "search", "start", "transfer")
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
    results: dict[str, list[Figure]] = {}
    failed: list[str] = []
    for name in wanted:
        print(f"-- {name}", flush=True)
        found = _run_alone(name)
        if found is None:
            failed.append(name)
            continue
        results[name] = found
        report(found, record=arguments.record)
    out = arguments.out or (Path(tempfile.mkdtemp()) if arguments.quick else DEFAULT_OUT)
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


def _run_alone(name: str) -> list[Figure] | None:
    """The figures of a scenario in a process of its own; None when it failed."""
    command = [sys.executable, "-m", "benchmarks", "--child", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        return None
    return [Figure(**each) for each in json.loads(lines[-1])]


def _run_here(name: str) -> None:
    figures = list(importlib.import_module(f"benchmarks.{name}").run())
    print(json.dumps([asdict(each) for each in figures]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
