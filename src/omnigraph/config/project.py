"""Project: `omnigraph.yaml`, what a directory says about its graphs, its server and its commands.

Found as `./omnigraph.yaml` unless another file is named. Relative paths are relative to the file.
Absent is empty; a file that was named has to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.config.document import Table, Value, read_document
from omnigraph.errors import BadRequestError, ConfigError, did_you_mean

PROJECT_FILE = "omnigraph.yaml"
FORMATS = ("table", "kv", "csv", "jsonl", "json")
LAYOUTS = ("truncate", "wrap")
COLUMN_WIDTH_MIN = 8
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
    auth_env_file: Path | None = None
    aliases: Mapping[str, ProjectAlias] = field(default_factory=dict)
    policy_file: Path | None = None
    queries: Mapping[str, StoredEntry] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def graph(self, name: str) -> ProjectGraph:
        """The graph of that name.

        Raises:
            ConfigError: There is none, or the file has top-level settings it would ignore.
        """
        found = self.graphs.get(name)
        if found is None:
            hint = did_you_mean(name, self.graphs)
            raise ConfigError(
                f"graph '{name}' not found in {PROJECT_FILE}" + (f" — {hint}" if hint else "")
            )
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
        ConfigError: The file named is not there, or a file cannot be used; names file and line.
    """
    place = path if path is not None else Path(PROJECT_FILE)
    top = read_document(place)
    if top is None:
        if path is not None:
            raise ConfigError(f"cannot read '{path}': no such file")
        return Project(directory=Path())
    directory = place.parent
    top.only("project", "graphs", "server", "cli", "query", "auth", "aliases", "policy", "queries")
    return Project(
        directory=directory,
        path=place,
        name=top.table("project").only("name").text("name"),
        graphs={name: _graph(name, table, directory) for name, table in top.tables("graphs")},
        server=_server(top.table("server"), directory),
        cli=_cli(top.table("cli")),
        query_roots=tuple(
            directory / root for root in top.table("query").only("roots").texts("roots")
        ),
        auth_env_file=_path(top.table("auth").only("env_file").get("env_file"), directory),
        aliases={name: _alias(name, table) for name, table in top.tables("aliases")},
        policy_file=_policy(top, directory),
        queries=dict(_queries(top, directory)),
        remarks=tuple(top.remarks),
    )


def _graph(name: str, table: Table, directory: Path) -> ProjectGraph:
    table.only("uri", "bearer_token_env", "policy", "queries")
    return ProjectGraph(
        name=name,
        uri=_location(table.required("uri"), directory),
        bearer_token_env=table.text("bearer_token_env"),
        policy_file=_policy(table, directory),
        queries=dict(_queries(table, directory)),
    )


def _location(uri: str, directory: Path) -> str:
    """A bare path is relative to the file; a URI stands as it is."""
    return uri if "://" in uri else str(directory / Path(uri).expanduser())


def _server(table: Table, directory: Path) -> ServerSection:
    table.only("graph", "bind", "policy")
    return ServerSection(table.text("graph"), table.text("bind"), _policy(table, directory))


def _cli(table: Table) -> CliSection:
    table.only(
        "graph", "branch", "actor", "output_format", "table_max_column_width", "table_cell_layout"
    )
    return CliSection(
        table.text("graph"),
        table.text("branch"),
        table.text("actor"),
        choice_of(table, "output_format", FORMATS),
        column_width_of(table),
        choice_of(table, "table_cell_layout", LAYOUTS),
    )


def _alias(name: str, table: Table) -> ProjectAlias:
    table.only("command", "query", "name", "args", "graph", "branch", "format")
    return ProjectAlias(
        name=name,
        command=_VERBS[choice_of(table, "command", tuple(_VERBS)) or "query"],
        query=table.required("query"),
        query_name=table.text("name"),
        args=table.texts("args"),
        graph=table.text("graph"),
        branch=table.text("branch"),
        format=choice_of(table, "format", FORMATS),
    )


def _queries(table: Table, directory: Path) -> Iterator[tuple[str, StoredEntry]]:
    for name, entry in table.tables("queries"):
        tool = entry.only("file", "mcp").table("mcp").only("expose", "tool_name")
        exposed = tool.get("expose")
        yield (
            name,
            StoredEntry(
                file=directory / entry.required("file"),
                expose=True if exposed is None else exposed.flag(),
                tool_name=tool.text("tool_name"),
            ),
        )


def _policy(table: Table, directory: Path) -> Path | None:
    return _path(table.table("policy").only("file").get("file"), directory)


def _path(value: Value | None, directory: Path) -> Path | None:
    return None if value is None else directory / Path(value.text()).expanduser()


def choice_of(table: Table, name: str, known: tuple[str, ...]) -> str | None:
    """One of the known words, None when the key is absent."""
    found = table.get(name)
    return None if found is None else found.choice(known)


def column_width_of(table: Table) -> int | None:
    """How wide a column may be; too narrow to read is widened."""
    found = table.get("table_max_column_width")
    return None if found is None else max(COLUMN_WIDTH_MIN, found.number(at_least=1))
