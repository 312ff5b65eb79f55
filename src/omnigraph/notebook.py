"""Notebook: `%load_ext omnigraph`, and cells that begin with `%%gq` are queries.

    %%gq team colleagues --branch review name=Ada
    query colleagues($name: String) { … }

The first word is the variable of an open graph, or left out when there is only one; the second is
the query, or left out when the cell has only one. `name=value` gives a parameter, as JSON or text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher
from IPython.core.interactiveshell import InteractiveShell

from omnigraph.compiler import CompiledQuery
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.graph import Graph
from omnigraph.graph.query_source import compile_source
from omnigraph.lsp.complete_query import complete_query

MAGIC = "%%gq"
_OPTIONS = ("--branch", "--commit", "--engine", "--out", "--params")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the first line of a cell says."""

    graph: str | None
    query: str | None
    options: dict[str, str]
    params: dict[str, Any]


def load(shell: InteractiveShell) -> None:
    """Let a notebook or IPython take `%%gq` cells, and complete what is written in them."""
    runner = CellRunner(shell)
    magics: Any = shell.magics_manager
    magics.register_function(runner.run, magic_kind="cell", magic_name=MAGIC.lstrip("%"))
    shell.Completer.custom_matchers.append(make_matcher(runner))


class CellRunner:
    """Runs the cells of one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def run(self, line: str, cell: str) -> Any:
        """Run a `.gq` cell and return its result, under a name too with `--out NAME`."""
        asked = parse_line(line, self._is_graph)
        graph = self.find_graph(asked.graph)
        compiled = compile_source(cell, graph.catalog, asked.query)
        params = {**self._read_params(asked), **asked.params}
        result = _run(graph, cell, asked, compiled, params)
        out = asked.options.get("--out")
        if out is None:
            return result
        self._shell.user_ns[out] = result
        return None

    def find_graph(self, name: str | None) -> Graph:
        """The open graph of a variable; without a name the only one there is.

        Raises:
            BadRequestError: There is none, or several.
        """
        known = {key: each for key, each in self._shell.user_ns.items() if self._is_graph(key)}
        if name is not None and name in known:
            return known[name]  # type: ignore[no-any-return]
        graphs = {id(each): key for key, each in known.items()}
        if not graphs:
            raise BadRequestError("no graph is open here — `g = omnigraph.open(...)` first")
        if len(graphs) > 1:
            names = ", ".join(sorted(graphs.values()))
            raise BadRequestError(f"several graphs are open — name one: {MAGIC} NAME, of {names}")
        return next(iter(known.values()))  # type: ignore[no-any-return]

    def _is_graph(self, name: str) -> bool:
        # What IPython remembers of outputs (`_`, `_3`) is no name that a user gave.
        return not name.startswith("_") and isinstance(self._shell.user_ns.get(name), Graph)

    def _read_params(self, asked: Invocation) -> dict[str, Any]:
        name = asked.options.get("--params")
        if name is None:
            return {}
        found = self._shell.user_ns.get(name)
        if not isinstance(found, dict):
            raise BadRequestError(f"--params names a variable with a dict, and '{name}' has none")
        return found


def parse_line(line: str, is_graph: Callable[[str], bool]) -> Invocation:
    """Read the line behind `%%gq`.

    Raises:
        BadRequestError: An option is unknown or has no value, or there are words too many.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadRequestError(f"cannot read the line behind {MAGIC}: {error}") from None
    options: dict[str, str] = {}
    params: dict[str, Any] = {}
    names: list[str] = []
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            option, given, value = word.partition("=")
            if option not in _OPTIONS:
                message = f"{MAGIC} has no option '{option}'"
                raise BadRequestError(with_suggestion(message, option, _OPTIONS))
            if not given and not words:
                raise BadRequestError(f"{MAGIC} {option} needs a value")
            options[option] = value if given else words.pop(0)
        elif "=" in word:
            name, _, value = word.partition("=")
            params[name] = _parse_value(value)
        else:
            names.append(word)
    graph = names.pop(0) if names and is_graph(names[0]) else None
    query = names.pop(0) if names else None
    if names:
        raise BadRequestError(f"{MAGIC} takes a graph and a query, not also '{names[0]}'")
    return Invocation(graph, query, options, params)


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _run(
    graph: Graph, cell: str, asked: Invocation, compiled: CompiledQuery, params: dict[str, Any]
) -> Any:
    branch = asked.options.get("--branch", "main")
    if compiled.kind == "mutation":
        return graph.mutate(cell, asked.query, params, branch=branch)
    return graph.query(
        cell,
        asked.query,
        params,
        branch=branch,
        commit=asked.options.get("--commit"),
        engine=asked.options.get("--engine", "local"),
    )


def make_matcher(runner: CellRunner) -> Callable[[CompletionContext], Any]:
    """What IPython asks for the words that may follow in a `%%gq` cell."""

    @context_matcher(identifier="omnigraph")  # type: ignore[untyped-decorator]
    def match(context: CompletionContext) -> dict[str, Any]:
        head, _, cell = context.full_text.partition("\n")
        if not head.startswith(MAGIC) or context.cursor_line == 0:
            return {"completions": []}
        lines = cell.split("\n")
        above = lines[: context.cursor_line - 1]
        offset = sum(len(each) + 1 for each in above) + context.cursor_position
        found = complete_query(cell, offset, _find_catalog(runner, head))
        typed = cell[found.start : offset]
        return {
            "completions": [
                SimpleCompletion(each.label, type=each.kind)
                for each in found.items
                if each.label.lower().startswith(typed.lower())
            ],
            "matched_fragment": typed,
            "suppress": True,
        }

    return match  # type: ignore[no-any-return]


def _find_catalog(runner: CellRunner, head: str) -> Any:
    try:
        asked = parse_line(head.removeprefix(MAGIC), lambda name: True)
        return runner.find_graph(asked.graph).catalog
    except BadRequestError:
        return None
