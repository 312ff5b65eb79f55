"""Storage is sealed: no other package reaches Lance, and no method commits by surprise."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.storage.ancestry import Ancestry
from omnigraph.storage.compaction import CompactionStaging
from omnigraph.storage.control import ControlTable
from omnigraph.storage.forks import Forks
from omnigraph.storage.indexes import Indexes
from omnigraph.storage.reads import Reads
from omnigraph.storage.search import Search
from omnigraph.storage.staging import RowStaging
from omnigraph.storage.tables import TableStorage
from omnigraph.storage.unattached import UnattachedStaging
from tests import syntax_trees
from tests.syntax_trees import list_nodes, parse

pytestmark = syntax_trees.GROUP

SOURCE = Path(omnigraph.__file__).parent
STORAGE = SOURCE / "storage"

# Calls that move a Lance HEAD by themselves. `.commit` and `.execute` are listed with their
# receivers, as others have methods of these names.
INLINE_COMMITS = {
    "write_dataset",
    "merge_insert",
    "compact_files",
    "optimize_indices",
    "create_scalar_index",
    "update_schema_metadata",
    "update_field_metadata",
    "cleanup_old_versions",
    "commit_batch",
    "truncate_table",
    "add_columns",
    "alter_columns",
}
STAGING = (RowStaging, UnattachedStaging, Indexes, CompactionStaging)
PARTS = (Reads, *STAGING, Search, Ancestry, Forks)
SURFACE = (TableStorage, *PARTS, ControlTable)
SEALED = {"_dataset", "_operation", "_ds"}

# Where storage itself commits inline. Each call says why, in a comment that begins so.
RESIDUALS = {"control.py": 5, "control_commits.py": 1, "garbage.py": 1, "datasets.py": 2}
REASON = re.compile(r"# Inline commit: (\S+ ){4,}\S+\.$")
DATASETS = re.compile(r"(\b|_)(dataset|head|ds)$")
ON_A_DATASET = {
    "delete",
    "drop_columns",
    "create_index",
    "drop_index",
    "insert",
    "merge",
    "restore",
    "update",
}


def violations(source: str) -> Iterator[str]:
    """What a module outside storage may not do."""
    for node in list_nodes(parse(source)):
        match node:
            case ast.Import(names=names):
                if any(name.name.split(".")[0] == "lance" for name in names):
                    yield f"line {node.lineno}: imports lance"
            case ast.ImportFrom(module=str(module), level=0):
                if module.split(".")[0] == "lance":
                    yield f"line {node.lineno}: imports lance"
            case ast.Attribute(attr=name) if name in SEALED | INLINE_COMMITS:
                yield f"line {node.lineno}: reaches for .{name}"
            case ast.Call(func=ast.Name(id=name)) if name in INLINE_COMMITS | {"__import__"}:
                yield f"line {node.lineno}: calls {name}"


def modules_outside_storage() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if STORAGE not in path.parents]


@pytest.mark.slow
@pytest.mark.accepts("S-050", "S-052")
def test_no_module_outside_storage_reaches_lance() -> None:
    found = {
        str(path.relative_to(SOURCE)): problems
        for path in modules_outside_storage()
        if (problems := list(violations(path.read_text())))
    }

    assert found == {}


@pytest.mark.accepts("S-050")
@pytest.mark.parametrize(
    "planted",
    [
        "import lance",
        "import lance.dataset as d",
        "from lance import dataset",
        "def f():\n    from lance.fragment import write_fragments",
        "handle._dataset.delete('true')",
        "staged._operation",
        "x.merge_insert('id')",
        "write_dataset(rows, uri)",
        "table.optimize.compact_files()",
        "__import__('lance')",
    ],
)
def test_the_guard_sees_a_planted_violation(planted: str) -> None:
    assert list(violations(planted))


def test_the_guard_lets_ordinary_code_pass() -> None:
    assert not list(violations("import lancelot\nstorage.commit_staged(staged)\nx.execute()"))


def inline_commits(source: str) -> Iterator[ast.Call]:
    """The calls of a storage module that move a Lance HEAD by themselves, or remove versions."""
    for node in list_nodes(parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="execute", value=value)):
                if "merge_insert" in ast.unparse(value):
                    yield node
            case ast.Call(func=ast.Attribute(attr=name)) if name in INLINE_COMMITS:
                # Without `execute` a merge is only described; `execute_uncommitted` stages it.
                if name != "merge_insert":
                    yield node
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in ON_A_DATASET:
                if DATASETS.search(ast.unparse(value)):
                    yield node
            case ast.Call(func=ast.Name(id=name)) if name in INLINE_COMMITS:
                yield node
            case ast.Call(func=ast.Attribute(attr="commit", value=ast.Name(id="Compaction"))):
                yield node


def find_unexplained(source: str) -> list[str]:
    """The inline commits without a reason of their own: in the line above, or two when wrapped."""
    lines = source.splitlines()
    return [
        f"line {call.lineno}: {ast.unparse(call.func)}"
        for call in inline_commits(source)
        if not any(REASON.search(line) for line in lines[max(0, call.lineno - 3) : call.lineno - 1])
    ]


@pytest.mark.accepts("S-048", "S-049")
def test_every_inline_commit_inside_storage_says_why() -> None:
    """Staging only ever uses the uncommitted forms; what is left is named where it is called."""
    sources = {path.name: path.read_text() for path in STORAGE.glob("*.py")}

    calls = {name: len(list(inline_commits(text))) for name, text in sources.items()}
    reasons = {name: text.count("# Inline commit: ") for name, text in sources.items()}

    assert {name: each for name, text in sources.items() if (each := find_unexplained(text))} == {}
    assert {name: count for name, count in calls.items() if count} == RESIDUALS
    assert {name: count for name, count in reasons.items() if count} == RESIDUALS


@pytest.mark.accepts("S-049")
@pytest.mark.parametrize(
    "planted",
    [
        "dataset.optimize.compact_files()",
        "lance.write_dataset(rows, uri)",
        "Compaction.commit(dataset, results)",
        "# Inline commit: because.\ndataset.optimize.compact_files()",
        "# A compaction changes no row at all.\ndataset.optimize.compact_files()",
        "self._dataset.delete('true')",
        "head.restore()",
        "dataset.merge_insert('id').when_matched_update_all().execute(rows)",
        "# Inline commit: a reason that serves one.\na.compact_files()\nb()\nb.compact_files()",
    ],
)
def test_the_guard_sees_an_inline_commit_without_a_reason(planted: str) -> None:
    assert find_unexplained(planted)


def test_the_guard_takes_a_reason_and_leaves_staging_alone() -> None:
    assert not find_unexplained(
        "# Inline commit: the rows stay as they are.\ndataset.optimize.compact_files()\n"
        "dataset.merge_insert('id').execute_uncommitted(rows)\ntask.execute(dataset)\n"
        "self._rows.delete(handle)\ndataset.branches.delete(name)"
    )


def public_methods(kind: type) -> set[str]:
    return {
        name
        for name, value in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(value)
    }


def methods_that_call(path: Path, wanted: set[str]) -> set[str]:
    """The functions of a module whose body calls one of `wanted`, given as dotted text."""
    return {
        function.name
        for function in list_nodes(parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in wanted
    }


@pytest.mark.slow
@pytest.mark.accepts("S-046", "S-047")
def test_no_method_commits_as_a_side_effect_of_writing() -> None:
    """What is named `stage*` gives a staged value back; HEADs move in the methods named for it."""
    tables = STORAGE / "tables.py"
    staged = [
        (kind, name)
        for kind in (TableStorage, *PARTS)
        for name in public_methods(kind)
        if name.startswith("stage")
    ]

    assert {kind for kind, _ in staged} == {TableStorage, *STAGING}
    for kind, name in staged:
        result = str(inspect.signature(getattr(kind, name)).return_annotation)
        assert result.removeprefix("list[").startswith("Staged"), name
    assert methods_that_call(tables, {"self._committer.commit"}) == {"commit_staged"}
    assert methods_that_call(tables, {"self._committer.commit_each"}) == {"commit_appends"}
    assert methods_that_call(tables, {"self.commit_staged"}) == {"restore"}
    makers = methods_that_call(tables, {"lance.write_dataset", "self._opener.create"})
    assert makers == {"create_table"}
    assert methods_that_call(tables, {"self.forks.create"}) == {"fork_branch"}


@pytest.mark.accepts("S-047")
def test_lance_commits_in_one_place() -> None:
    commits = {"LanceDataset.commit", "lance.LanceDataset.commit"}

    found = {path.name for path in STORAGE.glob("*.py") if methods_that_call(path, commits)}

    assert found == {"transactions.py"}


@pytest.mark.accepts("S-051")
def test_dead_inline_methods_do_not_exist() -> None:
    dead = {
        "append_batch",
        "merge_insert_batch",
        "merge_insert_batches",
        "overwrite_batch",
        "create_btree_index",
        "create_inverted_index",
        "create_vector_index",
        "delete_where",
    }

    for kind in SURFACE:
        assert dead.isdisjoint(dir(kind))


@pytest.mark.accepts("S-046")
def test_no_lance_type_is_in_a_public_signature() -> None:
    for kind in SURFACE:
        for name in public_methods(kind):
            assert not re.search(r"\blance\b|Lance", str(inspect.signature(getattr(kind, name))))


def hand_written_filters(source: str) -> list[int]:
    """The lines that give a filter as text of their own, instead of from `to_lance`."""
    written = (ast.Constant, ast.JoinedStr, ast.BinOp)
    values: list[ast.expr | None] = []
    for node in list_nodes(parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "filter":
            values.append(node.value)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            values += [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "filter"]
    return [value.lineno for value in values if isinstance(value, written)]


@pytest.mark.slow
def test_filter_text_is_built_in_one_module() -> None:
    """Anything else that held SQL would have to quote by itself."""
    functions = re.compile(r"array_has\(|arrow_cast\(")
    sources = {path: path.read_text() for path in SOURCE.rglob("*.py")}

    assert [path.name for path, text in sources.items() if hand_written_filters(text)] == []
    assert [path.name for path, text in sources.items() if functions.search(text)] == ["filters.py"]


@pytest.mark.parametrize(
    "planted", ["ds.scanner(filter=f\"id = '{x}'\")", "options = {'filter': 'a' + b}"]
)
def test_the_guard_sees_a_planted_filter(planted: str) -> None:
    assert hand_written_filters(planted)


def test_importing_the_package_does_not_import_lance() -> None:
    """Parsing and checking never pay for it, nor do text files and locations."""
    script = (
        "import sys, omnigraph, omnigraph.storage, omnigraph.storage.text_local\n"
        "import omnigraph.storage.queues, omnigraph.storage.predicates\n"
        "sys.exit('lance' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
