"""The protocol is written once: only it, and recovery, take the steps of a write."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import omnigraph
from tests import syntax_trees
from tests.syntax_trees import list_nodes, parse

pytestmark = syntax_trees.GROUP

SOURCE = Path(omnigraph.__file__).parent

PROTOCOL = {"write/protocol.py", "write/recovery.py", "write/recovery_actions.py"}
STEPS = {
    "write_sidecar",
    "confirm_sidecar",
    "delete_sidecar",
    "commit_staged",
    "commit_appends",
    "restore",
}

# Who else takes one of the steps, and why it is none of the protocol's.
OTHERS = {
    ("storage/tables.py", "commit_staged"): "a restore is a commit of its own",
    ("branch/reset.py", "commit_staged"): "begins a fork that no branch shows yet",
    ("write/purge.py", "commit_staged"): "empties a table that no branch shows",
    ("upkeep/repair.py", "publish"): "shows what something else has written; nothing moves",
    ("undo_calls.py", "restore"): "the call of a graph of that name, which is a merge",
    ("server/operations.py", "restore"): "the route of that name",
    ("branch/delete.py", "publish"): "hands commits on to a branch that has merged them; no pins",
    ("transfer/receive.py", "publish"): "shows what another store has written; no HEAD moves",
}


def steps_taken(source: str) -> Iterator[str]:
    """The steps of a write that a module takes: what it calls, hands on, or imports to call."""
    tree = parse(source)
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in list_nodes(tree):
        match node:
            case ast.Attribute(attr=name) if name in STEPS:
                yield name
            case ast.Call(func=ast.Attribute(attr="publish", value=ast.Name(id=where))):
                if where in ("manifest", "publisher"):
                    yield "publish"
            case ast.ImportFrom(module=str(module), names=names) if "omnigraph" in module:
                for each in names:
                    if each.name in STEPS or (each.name == "publish" and "manifest" in module):
                        yield each.name
            case ast.Name(id=name, ctx=ast.Load()) if name in STEPS and name not in own:
                yield name


@cache
def callers() -> dict[tuple[str, str], Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        for step in steps_taken(path.read_text()):
            found[place, step] = path
    return found


@pytest.mark.slow
def test_only_the_protocol_and_recovery_take_the_steps_of_a_write() -> None:
    """Every other writer builds an intent, and so cannot tell a failure in its own way."""
    elsewhere = {place for place in callers() if place[0] not in PROTOCOL}
    # Where the publisher is made, and handed out.
    elsewhere -= {("manifest/__init__.py", "publish")}

    assert elsewhere == set(OTHERS)
    assert all(OTHERS.values())


@pytest.mark.slow
def test_the_protocol_takes_every_step_itself() -> None:
    taken = {step for place, step in callers() if place == "write/protocol.py"}

    assert taken == STEPS - {"restore"} | {"publish"}


@pytest.mark.parametrize(
    "planted",
    [
        "from omnigraph.write.sidecar_files import write_sidecar",
        "from omnigraph.write import sidecar_files\nsidecar_files.delete_sidecar(texts, 'x')",
        "environment.tables.commit_staged(staged)",
        "environment.tables.commit_appends(staged)",
        "commit = tables.commit_staged\ncommit(staged)",
        "tables.restore(location, 3)",
        "from omnigraph.manifest import Publish, publish",
        "from omnigraph.manifest.publisher import publish as show",
        "from omnigraph.manifest import publisher\npublisher.publish(coordinator, request)",
    ],
)
def test_the_guard_sees_a_second_caller(planted: str) -> None:
    assert list(steps_taken(planted))


def test_the_guard_lets_ordinary_code_pass() -> None:
    source = "def restore(): ...\nfrom omnigraph.write.protocol import carry_out\ncarry_out(e, i)"

    assert not list(steps_taken(source))
