r"""Shell session: statements and commands of a shell, answered in lines. It knows no terminal.

A statement is a query or mutation of the language; a body alone, such as `match { … } return
{ … }`, is taken as a query without parameters. A command begins with a backslash:

    \d [TYPE]        the types with their rows, or the properties of one
    \b               the branches
    \c BRANCH        go on on another branch
    \at [REVISION]   read a tag, commit or time; without one, read the branch again
    \log [N]         the last commits
    \set NAME VALUE  give a parameter to every query that declares it; \set shows them
    \explain QUERY   the plan of a read
    \format NAME     table, kv, csv, jsonl or json
    \i FILE          run the queries of a file that need no other parameters
    \q               quit
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.catalog.model import EdgeType
from omnigraph.cli.graph_commands import GraphCommands
from omnigraph.cli.history import draw
from omnigraph.cli.output import read_text_file
from omnigraph.cli.render import Format, Look, render, render_table
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.lsp.scan import scan
from omnigraph.syntax import parse_query, parse_schema
from omnigraph.syntax.query_tree import QueryDecl
from omnigraph.wire import LogPart, QueryCall, QueryText

PREFIX, SUFFIX = "query shell() {\n", "\n}"
_IS_DECLARED = re.compile(r"\s*query\b\s*\w+\s*\(")
_LOG_COMMITS = 10
_OPENING, _CLOSING = "{([", "})]"


class Quit(Exception):
    """The user asked to leave."""


class ShellSession:
    """One shell on one graph: where it reads, with which parameters, and how rows are printed."""

    def __init__(self, graph: GraphCommands, branch: str, look: Look = Look()) -> None:
        self.graph = graph
        self.branch = branch
        self.revision: str | None = None
        self.params: dict[str, Any] = {}
        self.format = Format.TABLE
        self._look = look
        self.commands: dict[str, Callable[[str], Iterator[str]]] = {
            "d": self._describe,
            "b": self._list_branches,
            "c": self._change_branch,
            "at": self._travel,
            "log": self._log,
            "set": self._set,
            "explain": self._explain,
            "format": self._set_format,
            "i": self._run_file,
            "q": self._quit,
            "?": self._help,
        }

    @property
    def prompt(self) -> str:
        """Where the next statement reads: the branch, and the revision while one is read."""
        return self.branch if self.revision is None else f"{self.branch}@{self.revision}"

    @property
    def catalog(self) -> Catalog:
        """The types of the schema as it is now."""
        return _build(self.graph.schema()["schema_source"])

    def run(self, text: str) -> Iterator[str]:
        """Run one statement or command and yield the lines of its answer."""
        text = text.strip().removesuffix(";").rstrip()
        if text.startswith("\\"):
            word, _, rest = text[1:].partition(" ")
            known = self.commands.get(word)
            if known is None:
                message = f"there is no command '\\{word}' — \\? lists them"
                raise BadRequestError(with_suggestion(message, word, self.commands))
            yield from known(rest.strip())
        elif text:
            yield from self._run_queries(declare(text), None)

    def _run_queries(self, text: str, path: Path | None) -> Iterator[str]:
        source = QueryText(text, path)
        for query in parse_query(text, name=source.name).queries:
            yield from self._run_query(query, source)

    def _run_query(self, query: QueryDecl, source: QueryText) -> Iterator[str]:
        if not query.is_mutation:
            result = self.graph.query(self._call(query, source))
            yield from render(result, self.format, self._look)
            return
        if self.revision is not None:
            raise BadRequestError("the past cannot be written — `\\at` goes back to the branch")
        changed = self.graph.mutate(self._call(query, source), if_commit=None)
        nodes, edges = changed["affected_nodes"], changed["affected_edges"]
        yield f"changed {changed['branch']}: {nodes} nodes, {edges} edges"
        if changed.get("rows") is not None:
            yield from render_table(changed["columns"], changed["rows"], self._look)

    def _call(self, query: QueryDecl, source: QueryText) -> QueryCall:
        declared = {each.name for each in query.params}
        params = {name: value for name, value in self.params.items() if name in declared}
        if self.revision is not None:
            return QueryCall(source, query.name, params, snapshot=self.revision)
        return QueryCall(source, query.name, params, self.branch)

    # Commands

    def _describe(self, name: str) -> Iterator[str]:
        catalog = self.catalog
        if name:
            yield from _describe_type(catalog, name)
            return
        tables = self.graph.snapshot(self.revision or self.branch)["tables"]
        counts = {each["table_key"]: each["row_count"] for each in tables}
        rows = [
            {"kind": each.kind, "type": each.name, "rows": counts.get(each.table_key, 0)}
            for each in catalog.entities()
        ]
        yield from render_table(["kind", "type", "rows"], rows, self._look)

    def _list_branches(self, _: str) -> Iterator[str]:
        for name in self.graph.branches()["branches"]:
            yield f"{'*' if name == self.branch else ' '} {name}"

    def _change_branch(self, name: str) -> Iterator[str]:
        known = self.graph.branches()["branches"]
        if name not in known:
            message = f"there is no branch '{name}'" if name else "name the branch: \\c BRANCH"
            raise BadRequestError(with_suggestion(message, name, known))
        self.branch, self.revision = name, None
        yield f"on branch {name}"

    def _travel(self, revision: str) -> Iterator[str]:
        if not revision:
            self.revision = None
            yield f"on branch {self.branch}, as it is now"
            return
        found = self.graph.commit(revision)["graph_commit_id"]
        self.revision = found
        yield f"reading commit {found}; \\at goes back to the branch"

    def _log(self, count: str) -> Iterator[str]:
        if count and not count.isdecimal():
            raise BadRequestError(f"\\log takes a number of commits, not '{count}'")
        limit = int(count) if count else _LOG_COMMITS
        yield from draw(self.graph.log(self.branch, LogPart(limit=max(limit, 1)))["commits"])

    def _set(self, given: str) -> Iterator[str]:
        name, _, value = given.partition(" ")
        if name and not value:
            self.params.pop(name.lstrip("$"), None)
        elif name:
            self.params[name.lstrip("$")] = _parse_value(value.strip())
        for each, held in self.params.items():
            yield f"${each} = {json.dumps(held, ensure_ascii=False)}"

    def _explain(self, text: str) -> Iterator[str]:
        source = QueryText(declare(text))
        for query in parse_query(source.text, name=source.name).queries:
            found = self.graph.explain(self._call(query, source), analyze=False)
            yield from found["plan"].splitlines()

    def _set_format(self, name: str) -> Iterator[str]:
        if name not in list(Format):
            raise BadRequestError(f"there is no format '{name}', expected {', '.join(Format)}")
        self.format = Format(name)
        yield f"rows are printed as {name}"

    def _run_file(self, name: str) -> Iterator[str]:
        if not name:
            raise BadRequestError("name the file: \\i FILE")
        path = Path(name).expanduser()
        yield from self._run_queries(read_text_file(path), path)

    def _quit(self, _: str) -> Iterator[str]:
        raise Quit

    def _help(self, _: str) -> Iterator[str]:
        yield from (__doc__ or "").splitlines()[2:]


def declare(text: str) -> str:
    """A query for a text: itself, or for a body alone one without parameters."""
    return text if _IS_DECLARED.match(text) else f"{PREFIX}{text}{SUFFIX}"


def is_complete(text: str) -> bool:
    """Whether a text can be run: a command, or a statement whose brackets are all closed."""
    if text.lstrip().startswith("\\") or text.rstrip().endswith(";"):
        return True
    symbols = [token.text for token in scan(text) if token.kind == "symbol"]
    depth = sum(s in _OPENING for s in symbols) - sum(s in _CLOSING for s in symbols)
    if depth > 0:
        return False
    # A pattern returns something: what ends with it is not over.
    words = [token.text for token in scan(text) if token.kind == "word"]
    return not ("match" in words and not {"return", "query"} & set(words))


def _describe_type(catalog: Catalog, name: str) -> Iterator[str]:
    found = {each.name.lower(): each for each in catalog.entities()}.get(name.lower())
    if found is None:
        known = [each.name for each in catalog.entities()]
        raise BadRequestError(with_suggestion(f"there is no type '{name}'", name, known))
    ends = f": {found.source} -> {found.target}" if isinstance(found, EdgeType) else ""
    yield f"{found.kind} {found.name}{ends}"
    key = found.key or ()
    for each in found.properties.values():
        yield f"  {each.name}: {each.type}{' @key' if each.name in key else ''}"


@lru_cache(maxsize=8)
def _build(schema: str) -> Catalog:
    return build_catalog(parse_schema(schema))


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
