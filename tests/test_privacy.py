"""Tests speak to the package by its public names, and reach inside a graph through `inside`.

The files that know more are listed here with the names they know and the reason. The list is meant
to shrink: a name that is no longer touched has to go.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import syntax_trees
from tests.syntax_trees import list_nodes

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "omnigraph"

pytestmark = syntax_trees.GROUP

PLANTS = "breaks one step of the protocol on purpose"
BETWEEN = "does something between two steps of one call"
BOUNDED = "what is kept has a bound that no answer shows"
BYTES = "compares with what Lance itself has"

ALLOWED = {
    "branch/test_commit_dag.py": (BOUNDED, {"_lines"}),
    "branch/test_merge_base.py": (PLANTS, {"_select_unknown"}),
    "graph/test_commit_observers.py": (BETWEEN, {"_expected", "_find_if_latest"}),
    "graph/test_fences.py": (BETWEEN, {"_commit", "_operation"}),
    "graph/test_nonblocking.py": (BOUNDED, {"_compile", "_drop", "_entries", "_touches"}),
    "http/test_exports.py": (BOUNDED, {"_free", "_value"}),
    "http/test_query_runner.py": (BOUNDED, {"_nonblocking"}),
    "http/test_routes.py": ("compares routes without a request for each", {"_look_up"}),
    "http/test_writes.py": ("waits until writes are queued", {"_work"}),
    "index/test_id_index.py": ("meets keys whose hashes are equal", {"_BASE"}),
    "index/test_patches.py": (BOUNDED, {"_drop"}),
    "manifest/test_publisher.py": (PLANTS, {"_refuse_unfenced"}),
    "manifest/test_snapshot_cache.py": (BETWEEN, {"_entries"}),
    "pipeline/test_archive.py": (BETWEEN, {"_create", "_only_one", "_planned", "_start"}),
    "pipeline/test_settings.py": ("a process has one session of Spark", {"_made"}),
    "recovery/test_planted_bugs.py": (
        PLANTS,
        {
            "_is_ours",
            "_original_commits",
            "_own_location",
            "_pin_at",
            "_prove",
            "_publish",
            "_state_of",
        },
    ),
    "storage/test_row_ids.py": (
        BYTES,
        {"_BITMAP", "_HOLES", "_RANGE", "_dataset", "_fields", "_locate"},
    ),
    "storage/test_scratch.py": (BETWEEN, {"_live", "_texts"}),
    "storage/test_tables.py": (BYTES, {"_dataset"}),
    "transfer/git_stores.py": ("asks the model by itself, without a store", {"_result"}),
    "upkeep/test_cleanup.py": (BETWEEN, {"_operation"}),
}
NAMED_TUPLE = {"_replace"}
"""Public, whatever it looks like."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_") and name not in NAMED_TUPLE


def own_names(tree: ast.Module) -> Iterator[str]:
    """The private names that a module defines: functions, classes, variables and attributes."""
    for node in list_nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def names_touched(tree: ast.Module) -> Iterator[str]:
    """The private names that a module imports, reads of something else than itself, or patches."""
    for node in list_nodes(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("omnigraph"):
                yield from (each.name for each in names if is_private(each.name))
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                yield name
            case ast.Call(func=ast.Attribute(attr="setattr" | "delattr" | "object"), args=args):
                texts = (each.value for each in args[:2] if isinstance(each, ast.Constant))
                lasts = (text.rpartition(".")[2] for text in texts if isinstance(text, str))
                yield from filter(is_private, lasts)


def parse(path: Path) -> ast.Module:
    return syntax_trees.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def private_names() -> set[str]:
    names = {name for path in SOURCE.rglob("*.py") for name in own_names(parse(path))}
    return set(filter(is_private, names))


def test_no_test_touches_a_private_name(private_names: set[str]) -> None:
    found = {}
    for path in TESTS.rglob("*.py"):
        names = private_names & set(names_touched(parse(path)))
        if names:
            found[path.relative_to(TESTS).as_posix()] = names

    allowed = {file: names for file, (_, names) in ALLOWED.items()}
    assert found == allowed, "use a public name, or `inside` of omnigraph.testing"


@pytest.mark.parametrize(
    "text",
    [
        "from omnigraph.storage.scratch import _live",
        "graph._session.store",
        "monkeypatch.setattr(scratch, '_live', set())",
        "monkeypatch.setattr('omnigraph.storage.scratch._live', set())",
        "patch.object(graph, '_session')",
    ],
)
def test_the_guard_sees_each_way_of_touching(text: str, private_names: set[str]) -> None:
    assert private_names & set(names_touched(ast.parse(text)))
