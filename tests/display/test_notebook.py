"""Notebooks: `%%gq` cells run, complete and fail in our words, in a real kernel too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.graph.picture_widget import read_renderer

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
QUERIES = """
query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }
query people() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        yield graph


@pytest.fixture
def shell(graph: og.Graph) -> Iterator[Any]:
    shell: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    shell.extension_manager.load_extension("omnigraph")
    shell.user_ns["team"] = graph
    yield shell
    shell.history_manager.end_session()


def run(shell: Any, line: str, cell: str = QUERIES) -> Any:
    return shell.run_cell_magic("gq", line, cell)


def test_a_cell_writes_and_reads_the_only_graph(shell: Any) -> None:
    done = run(shell, "add name=Ada age=36")
    run(shell, "team add name='Ada Lovelace'")

    assert (done.affected_nodes, done.commit_id is not None) == (1, True)
    assert run(shell, "people").rows() == [
        {"p.name": "Ada", "p.age": 36},
        {"p.name": "Ada Lovelace", "p.age": None},
    ]


def test_a_cell_keeps_its_result_and_takes_parameters_from_variables(
    shell: Any, graph: og.Graph
) -> None:
    graph.create_branch("review")
    shell.user_ns["row"] = {"name": "Lin", "age": 1}

    assert run(shell, "add --branch review --params row age=2 --out made") is None

    assert shell.user_ns["made"].affected_nodes == 1
    assert run(shell, "people").rows() == []
    assert run(shell, "people --branch=review").rows() == [{"p.name": "Lin", "p.age": 2}]
    commit = shell.user_ns["made"].commit_id
    assert len(run(shell, f"people --commit {commit}")) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("people --brnch review", r"no option '--brnch'.*`--branch`"),
        ("people --branch", "--branch needs a value"),
        ("team people more", "not also 'more'"),
        ("people --params nothing", "'nothing' has none"),
        ("people 'open", "cannot read the line"),
    ],
)
def test_a_line_that_is_wrong_says_why(shell: Any, line: str, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        run(shell, line)


def test_without_a_graph_or_with_two_the_cell_says_what_to_do(shell: Any, tmp_path: Path) -> None:
    with og.init(tmp_path / "other", schema=SCHEMA, durability="process") as other:
        shell.user_ns["other"] = other
        with pytest.raises(BadRequestError, match="name one: %%gq NAME, of other, team"):
            run(shell, "people")
        assert run(shell, "other people").rows() == []
    shell.user_ns.clear()
    with pytest.raises(BadRequestError, match="no graph is open here"):
        run(shell, "people")


def complete(shell: Any, text: str) -> set[str]:
    return {each.text for each in shell.Completer.completions(text, len(text))}


@pytest.mark.filterwarnings("ignore::IPython.core.completer.ProvisionalCompleterWarning")
def test_a_cell_is_completed_from_the_schema(shell: Any) -> None:
    start = "%%gq team\nquery q() {\n  match { $p: Person }\n  return { $p."

    assert complete(shell, start) == {"name", "age"}
    assert complete(shell, start + "na") == {"name"}
    assert "Person" in complete(shell, "%%gq\nquery q() { match { $p: Pe")
    assert "name" not in complete(shell, "query q() { match { $p: Person } return { $p.")


def cells(*sources: str) -> Any:
    make: Any = nbformat.v4
    return make.new_notebook(cells=[make.new_code_cell(each) for each in sources])


@pytest.mark.slow
@pytest.mark.skipif(read_renderer() is None, reason="needs the workbench: make ui")
def test_a_notebook_shows_tables_pictures_and_short_errors(tmp_path: Path) -> None:
    """In a real kernel: what each cell puts out is what a person sees."""
    notebook = cells(
        f"import omnigraph as og\n%load_ext omnigraph\ng = og.init('g', schema={SCHEMA!r})",
        f"%%gq add name=<b>Ada</b>\n{QUERIES}",
        f"%%gq people\n{QUERIES}",
        "g",
        "g.picture()",
        "g.query('query q() { match { $p: Person } return { $p.nmae } }')",
        "g.query('query q() { match { $p: Person } return { $p } }')",
    )
    client = NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )

    client.execute()

    outputs = [each.outputs for each in notebook.cells]
    table, overview, drawing = (outputs[n][0].data for n in (2, 3, 4))
    assert "&lt;b&gt;Ada&lt;/b&gt;" in table["text/html"]
    assert "1 row of people" in table["text/plain"]
    assert "Person → Person" in overview["text/html"]
    assert drawing["text/html"].startswith("<svg")
    models = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"].state
    for shown in (drawing, outputs[6][0].data):
        state = models[shown["application/vnd.jupyter.widget-view+json"]["model_id"]].state
        assert [each["label"] for each in state["data"]["nodes"]] == ["<b>Ada</b>"]
        assert "render" in state["_esm"]
    error = "\n".join(outputs[5][0].traceback)
    assert "did you mean `name`?" in error
    assert "omnigraph/graph" not in error
    assert len(error.splitlines()) < 12
