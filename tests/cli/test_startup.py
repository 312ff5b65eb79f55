"""Starting up: a command loads what it needs and no more, and shells can complete it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.commands import COMMANDS, GROUPS

HEAVY = {
    "httpx",
    "lance",
    "pyarrow",
    "starlette",
    "uvicorn",
    "yaml",
    "numpy",
    "cedarpy",
    "rich",
} | {"pygls", "lsprotocol"}
CODE = """
import gc, json, sys
collections = [0, 0, 0]
def count(phase, info):
    collections[info["generation"]] += phase == "start"
gc.callbacks.append(count)
from omnigraph.cli import main
sys.argv = ["omnigraph", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(json.dumps([sorted(sys.modules), collections]), file=sys.stderr)
"""


def modules_after(*arguments: str | Path) -> set[str]:
    return run_and_look(*arguments)[0]


def run_and_look(*arguments: str | Path) -> tuple[set[str], list[int]]:
    """The modules that a command has loaded, and how often the collector ran, by generation."""
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=True)
    modules, collections = json.loads(done.stderr.splitlines()[-1])
    return set(modules), collections


@pytest.mark.parametrize("command", [("--help",), ("load", "--help"), ("version",)])
def test_help_loads_nothing_heavy(command: tuple[str, ...]) -> None:
    assert not modules_after(*command) & HEAVY


def test_a_query_loads_no_other_command_and_what_it_loads_is_not_looked_at_for_garbage(
    tmp_path: Path,
) -> None:
    omnigraph.init(tmp_path / "graph", schema="node Person { name: String @key }").close()
    text = "query q() { match { $p: Person } return { $p.name } }"

    modules, collections = run_and_look("query", "--store", tmp_path / "graph", "-e", text)

    homes = {f"omnigraph.{each.home.split(':')[0]}" for each in (*COMMANDS, *GROUPS)}
    assert modules & homes == {"omnigraph.cli.query", "omnigraph.cli.version"}  # `--version`
    assert "omnigraph.executor.execute" in modules
    assert not modules & {"pandas", "pyspark", "starlette", "httpx", "rich", "lark", "cedarpy"}
    assert sum(name.startswith("omnigraph") for name in modules) <= 365
    assert collections[2] == 0
    assert sum(collections) <= 30  # A hundred thousand objects: two hundred collections.


@pytest.mark.parametrize(("command", "threads"), [("version", "1"), ("serve", None)])
def test_a_short_command_ends_at_once_and_starts_no_threads_for_matrices(
    command: str, threads: str | None
) -> None:
    """At its end all objects are frozen: the collector, which looks three times, finds none."""
    code = f"""
import atexit, gc, os, sys
atexit.register(lambda: print(gc.get_freeze_count() > 10_000, file=sys.stderr))  # Runs last.
from omnigraph.cli import main
sys.argv = ["omnigraph", {command!r}, "--help"]
try:
    main()
finally:
    print(os.environ.get("OPENBLAS_NUM_THREADS"), file=sys.stderr)
"""
    environment = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stderr.split() == [str(threads), "True"]


@pytest.mark.slow
def test_a_command_over_a_server_loads_no_engine() -> None:
    modules = modules_after("snapshot", "--server", "http://127.0.0.1:1")

    assert "httpx" in modules
    assert not modules & {"lance", "pyarrow", "numpy", "starlette"}


@pytest.mark.parametrize(("typed", "offered"), [("bran", "branch"), ("branch mer", "merge")])
def test_shells_complete_commands(typed: str, offered: str) -> None:
    words = f"omnigraph {typed}"
    environment = {
        **os.environ,
        "_OMNIGRAPH_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "import sys; sys.argv = ['omnigraph']; from omnigraph.cli import main; main()"

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == [offered]
