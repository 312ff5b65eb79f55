"""Importing the package is light: what a command does not need is not loaded."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import omnigraph
from omnigraph.collection import pause_collection

HEAVY = {"pyspark", "starlette", "lance", "pyarrow", "numpy", "pandas", "lark", "typer", "rich"}
CODE = "import json, sys; import omnigraph{what}; print(json.dumps(sorted(sys.modules)))"


def modules_after_import(what: str = "") -> set[str]:
    command = [sys.executable, "-c", CODE.format(what=what)]
    return set(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


def test_importing_the_package_loads_nothing_heavy() -> None:
    modules = modules_after_import()

    assert not modules & HEAVY
    assert sum(name.startswith("omnigraph") for name in modules) <= 4


def test_compiling_needs_neither_arrow_nor_lance() -> None:
    modules = modules_after_import(".compiler")

    assert not modules & HEAVY


@pytest.mark.slow
def test_a_graph_is_opened_and_asked_without_pandas_spark_or_web(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graph", schema="node Person { name: String @key }").close()
    read = "query q() { match { $p: Person } return { $p.name } }"
    code = f"; g = omnigraph.open({str(tmp_path / 'graph')!r}); g.query({read!r}).rows()"

    modules = modules_after_import(code)

    assert "lance" in modules
    assert not modules & {"pandas", "pyspark", "starlette", "httpx", "typer", "rich", "cedarpy"}
    assert not modules & {"lark", "regex", "numpy.ma"}
    assert not modules & {"omnigraph.write.protocol", "omnigraph.write.group"}
    # What makes a schema, checks a mutation, and explains a text that is wrong.
    assert not modules & {"omnigraph.catalog.build", "omnigraph.compiler.check_mutations"}
    assert not modules & {"omnigraph.syntax.unexpected", "omnigraph.syntax.query_places"}
    # Each costs an eighth of a millisecond: a module that only some calls need is imported there.
    assert sum(name.startswith("omnigraph") for name in modules) <= 325
    assert len(modules) <= 640


@pytest.mark.parametrize("name", sorted(set(omnigraph.__all__) - {"__version__"}))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(omnigraph, name) is not None


@pytest.mark.parametrize("was_enabled", [True, False])
def test_the_collector_is_paused_while_modules_are_loaded_and_left_as_it_was(
    was_enabled: bool,
) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if was_enabled else gc.disable)()
        with suppress(ZeroDivisionError), pause_collection():
            assert not gc.isenabled()
            _ = 1 // 0
        assert gc.isenabled() is was_enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_what_was_loaded_while_the_collector_paused_counts_as_old(tmp_path: Path) -> None:
    """A collection of young objects would look at all of it, for nothing.

    A block that finds everything loaded leaves objects as young as they are: to see whether the
    program has frozen its own takes longer the more of them there are.
    """
    code = """
import gc
from omnigraph.collection import pause_collection
with pause_collection():
    import this_is_loaded_by_the_block as module
print([any(each is module.made for each in gc.get_objects(generation=old)) for old in (0, 2)])
with pause_collection():
    import this_is_loaded_by_the_block
    later = [[number] for number in range(10_000)]
print(any(each is later for each in gc.get_objects(generation=2)))
"""
    module = tmp_path / "this_is_loaded_by_the_block.py"
    module.write_text("made = [[number] for number in range(10_000)]")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == ["[False, True]", "False"]


def test_objects_that_a_program_has_frozen_stay_so() -> None:
    code = """
import gc
from omnigraph.collection import pause_collection
gc.freeze()
with pause_collection():
    pass
print(gc.get_freeze_count() > 1_000)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "True"


@pytest.mark.parametrize(
    ("given", "first", "seen"),
    [(None, "", ["16", None]), ("20", "", ["20", "20"]), (None, "import numpy", [None, None])],
    ids=["nothing", "a time", "numpy loaded before"],
)
def test_threads_for_matrices_wait_asleep_unless_the_program_says_how(
    given: str | None, first: str, seen: list[str | None]
) -> None:
    code = f"""
import json, os, sys
class Look:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            told.append(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
told = []
sys.meta_path.insert(0, Look())
{first}
import omnigraph; omnigraph.open
print(json.dumps([*told, os.environ.get("OPENBLAS_THREAD_TIMEOUT")]))
"""
    environment = {name: value for name, value in os.environ.items() if "OPENBLAS" not in name}
    environment |= {} if given is None else {"OPENBLAS_THREAD_TIMEOUT": given}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == seen


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        omnigraph.no_such_name  # noqa: B018
