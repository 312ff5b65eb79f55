"""Project: `omnigraph.yaml`, what a directory says about its graphs, its server and its commands.

Found as `./omnigraph.yaml` unless another file is named. Relative paths are relative to the file.
Absent is empty; a file that was named has to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from omnigraph.config.document import Table, read_document
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConfigError, OmnigraphError, with_suggestion

PROJECT_FILE = "omnigraph.yaml"
QUERY_SUFFIX = ".gq"
FORMATS = ("table", "kv", "csv", "jsonl", "json")
LAYOUTS = ("truncate", "wrap")
COLUMN_WIDTH_MIN = 8
_KEYS = ("project", "graphs", "server", "cli", "query", "auth", "aliases", "policy", "queries")
_GRAPH = ("uri", "bearer_token_env", "policy", "queries", "retention", "embedding")
EMBEDDING = ("provider", "model", "base_url", "api_key_env")
_ALIAS = ("command", "query", "name", "args", "graph", "branch", "format")
_VERBS = {"read": "query", "query": "query", "change": "mutate", "mutate": "mutate"}


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A stored query by name: the file that declares it, and how tools see it."""

    file: Path
    expose: bool = True
    tool_name: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectGraph:
    """A graph that the file names. An http(s) `uri` is a served graph."""

    name: str
    uri: str
    bearer_token_env: str | None = None
    policy_file: Path | None = None
    queries: Mapping[str, StoredEntry] = field(default_factory=dict)
    query_directory: Path | None = None
    retention: str | None = None
    embedding: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_served(self) -> bool:
        return self.uri.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class ServerSection:
    graph: str | None = None
    bind: str | None = None
    policy_file: Path | None = None


@dataclass(frozen=True, slots=True)
class CliSection:
    graph: str | None = None
    branch: str | None = None
    actor: str | None = None
    output_format: str | None = None
    table_max_column_width: int | None = None
    table_cell_layout: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectAlias:
    """A name for a query file with its arguments. `command` is `query` or `mutate`."""

    name: str
    command: str
    query: str
    query_name: str | None = None
    args: tuple[str, ...] = ()
    graph: str | None = None
    branch: str | None = None
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """One project file. `policy_file` and `queries` are for a graph given by its bare URI."""

    directory: Path
    path: Path | None = None
    name: str | None = None
    graphs: Mapping[str, ProjectGraph] = field(default_factory=dict)
    server: ServerSection = field(default_factory=ServerSection)
    cli: CliSection = field(default_factory=CliSection)
    query_roots: tuple[Path, ...] = ()
    query_schema: Path | None = None
    auth_env_file: Path | None = None
    aliases: Mapping[str, ProjectAlias] = field(default_factory=dict)
    policy_file: Path | None = None
    queries: Mapping[str, StoredEntry] = field(default_factory=dict)
    query_directory: Path | None = None

    def graph(self, name: str) -> ProjectGraph:
        """The graph of that name.

        Raises:
            ConfigError: There is none, or the file has top-level settings it would ignore.
        """
        found = self.graphs.get(name)
        if found is None:
            message = f"graph '{name}' not found in {PROJECT_FILE}"
            raise ConfigError(with_suggestion(message, name, self.graphs))
        ignored = [
            key
            for key, is_set in (("policy.file", self.policy_file), ("queries", self.queries))
            if is_set
        ]
        if ignored:
            raise ConfigError(
                f"{self.path}: {' and '.join(ignored)} at the top would be ignored for graph "
                f"'{name}' — put it under graphs.{name}"
            )
        return found

    def query_file(self, given: str) -> Path:
        """Where a query file is: as typed, beside the project file, or in a query root."""
        path = Path(given).expanduser()
        places = [path, *(root / path for root in (self.directory, *self.query_roots))]
        if path.is_absolute() or path.exists():
            return path
        found = next((place for place in places if place.is_file()), None)
        if found is not None:
            return found
        looked = ", ".join(f"'{root}'" for root in self.query_roots)
        raise BadRequestError(
            f"cannot read '{given}': no such file" + (f", nor in {looked}" if looked else "")
        )


def load_project(path: Path | None = None) -> Project:
    """Read a project file: the one named, or `./omnigraph.yaml` when there is one.

    Raises:
        ConfigError: The file named is not there, or a file cannot be used; every problem is
            named with its place.
    """
    place = path if path is not None else Path(PROJECT_FILE)
    project = read_document(place, partial(_project, place), known=_KEYS)
    if project is None and path is not None:
        raise ConfigError(f"cannot read '{path}': no such file")
    return project or Project(directory=Path())


def _project(path: Path, top: Table) -> Project:
    directory = path.parent
    query = top.table("query", "roots", "schema")
    return Project(
        directory=directory,
        path=path,
        name=top.table("project", "name").text("name"),
        graphs={
            name: _graph(name, table, directory) for name, table in top.tables("graphs", *_GRAPH)
        },
        server=_server(top.table("server", "graph", "bind", "policy"), directory),
        cli=_cli(top.table("cli", *CliSection.__dataclass_fields__)),
        query_roots=tuple(directory / root for root in query.texts("roots")),
        query_schema=query.file("schema", directory),
        auth_env_file=top.table("auth", "env_file").file("env_file", directory),
        aliases={name: _alias(name, table) for name, table in top.tables("aliases", *_ALIAS)},
        policy_file=_policy(top, directory),
        **_queries(top, directory),
    )


def _graph(name: str, table: Table, directory: Path) -> ProjectGraph:
    return ProjectGraph(
        name=name,
        uri=_location(table.require("uri"), directory),
        bearer_token_env=table.text("bearer_token_env"),
        policy_file=_policy(table, directory),
        **_queries(table, directory),
        retention=table.text("retention"),
        embedding=_embedding(table),
    )


def _embedding(table: Table) -> dict[str, str]:
    """What a graph embeds with; whether there is such a provider is checked when it is opened."""
    found = table.table("embedding", *EMBEDDING)
    given = {name: found.text(name) for name in EMBEDDING}
    return {name: text for name, text in given.items() if text is not None}


def _location(uri: str, directory: Path) -> str:
    """A bare path is relative to the file; a URI stands as it is."""
    return uri if "://" in uri else str(directory / Path(uri).expanduser())


def _server(table: Table, directory: Path) -> ServerSection:
    return ServerSection(table.text("graph"), table.text("bind"), _policy(table, directory))


def _cli(table: Table) -> CliSection:
    return CliSection(
        table.text("graph"),
        table.text("branch"),
        table.text("actor"),
        table.choice("output_format", FORMATS),
        read_column_width(table),
        table.choice("table_cell_layout", LAYOUTS),
    )


def _alias(name: str, table: Table) -> ProjectAlias:
    return ProjectAlias(
        name=name,
        command=_VERBS[table.choice("command", tuple(_VERBS)) or "query"],
        query=table.require("query"),
        query_name=table.text("name"),
        args=table.texts("args"),
        graph=table.text("graph"),
        branch=table.text("branch"),
        format=table.choice("format", FORMATS),
    )


def _queries(table: Table, directory: Path) -> dict[str, Any]:
    """The stored queries: those of a directory when `queries` is a path, else each by its name."""
    if not table.is_scalar("queries"):
        return {"queries": dict(_named_queries(table, directory))}
    place = table.file("queries", directory)
    found = {} if place is None else _list_directory(table, place)
    return {"queries": found, "query_directory": place}


def _named_queries(table: Table, directory: Path) -> Iterator[tuple[str, StoredEntry]]:
    for name, entry in table.tables("queries", "file", "mcp"):
        tool = entry.table("mcp", "expose", "tool_name")
        file = directory / entry.require("file")
        yield name, StoredEntry(file, tool.flag("expose") is not False, tool.text("tool_name"))


def _list_directory(table: Table, place: Path) -> dict[str, StoredEntry]:
    """Every query of every file of a directory, but not of those below it, by name."""
    found: dict[str, StoredEntry] = {}
    files = sorted(place.glob(f"*{QUERY_SUFFIX}")) if place.is_dir() else []
    if not place.is_dir():
        table.note(f"queries: '{place}' is not a directory")
    for file in files:
        for name in _list_names(file):
            other = found.setdefault(name, StoredEntry(file))
            if other.file != file:
                table.note(f"queries: '{name}' is declared in '{other.file}' and in '{file}'")
    return found


def _list_names(file: Path) -> list[str]:
    """The queries of a file; one that cannot be read counts as one query, of the file's name.

    What is wrong with it is reported when the queries are used: other commands do not need them.
    """
    from omnigraph.syntax import parse_query

    try:
        return [query.name for query in parse_query(file.read_text(encoding="utf-8")).queries]
    except (OSError, UnicodeDecodeError, OmnigraphError):
        return [file.stem]


def _policy(table: Table, directory: Path) -> Path | None:
    return table.table("policy", "file").file("file", directory)


def read_column_width(table: Table) -> int | None:
    """How wide a column may be; too narrow to read is widened."""
    found = table.number("table_max_column_width", at_least=1)
    return None if found is None else max(COLUMN_WIDTH_MIN, found)
