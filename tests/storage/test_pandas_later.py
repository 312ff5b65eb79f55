"""Lance is used without pandas, and a program that uses pandas notices nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LANCE = (
    "import omnigraph.storage.datasets, pyarrow as pa, sys, json; found = 'pandas' in sys.modules"
)
PACKAGE = LANCE.replace(".datasets", "")
SERIES = "pa.array(pd.Series([1.0, None])).to_pylist()"


def run(*lines: str) -> object:
    """The value of the last line, and whether Lance brought pandas along."""
    *first, last = lines
    code = "\n".join([*first, f"print(json.dumps([found, {last}]))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([LANCE, "import pandas as pd", SERIES], id="pandas-after"),
        pytest.param([LANCE, "import pandas.testing", "pd = pandas", SERIES], id="a-part-after"),
        pytest.param(
            [LANCE, "frame = pa.table({'x': [1.0]}).to_pandas()", "import pandas as pd", SERIES],
            id="converted-first",
        ),
        pytest.param(
            [PACKAGE, "frame = pa.table({'x': [1.0]}).to_pandas()", "import pandas as pd", SERIES],
            id="converted-before-lance",
        ),
    ],
)
def test_arrow_converts_frames_though_lance_came_without_pandas(lines: list[str]) -> None:
    assert run(*lines) == [False, [1.0, None]]


@pytest.mark.slow
def test_a_program_with_pandas_keeps_it() -> None:
    assert run("import pandas as pd", LANCE, SERIES) == [True, [1.0, None]]


@pytest.mark.slow
def test_other_threads_find_pandas_while_lance_is_imported() -> None:
    code = """
import importlib.util, json, sys
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import PathFinder

class AskInAThread:
    def find_spec(self, name, path=None, target=None):
        # Imported by `pyarrow._dataset`: the thread that imports it sees no pandas now.
        if name != "pyarrow._csv":
            return None
        spec = PathFinder.find_spec(name, path, target)
        run = spec.loader.exec_module

        def ask_and_run(module):
            found = pool.submit(importlib.util.find_spec, "pandas").result(60)
            answers.append(found is not None)
            run(module)

        spec.loader.exec_module = ask_and_run
        return spec

answers = []
pool = ThreadPoolExecutor(1)
import omnigraph.storage
sys.meta_path.insert(0, AskInAThread())
import omnigraph.storage.datasets
found = "pandas" in sys.modules"""

    assert run(code, "answers") == [False, [True]]
