"""What a `query` or `mutate` asks for: its text, its name and its parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.output import read_text_file
from omnigraph.config.project import Project
from omnigraph.config.scope import DirectScope
from omnigraph.errors import BadRequestError, ParamsError

ParamsOption = Annotated[str | None, typer.Option("--params", help="Parameters as JSON.")]
ParamsFileOption = Annotated[
    Path | None, typer.Option("--params-file", help="A file with parameters as JSON.")
]
QueryFileOption = Annotated[Path | None, typer.Option("--query", help="The .gq file.")]
QueryStringOption = Annotated[
    str | None, typer.Option("--query-string", "-e", help="The query itself.")
]
AliasOption = Annotated[str | None, typer.Option("--alias", help="An alias; its arguments follow.")]
NameOption = Annotated[str | None, typer.Option("--name", help="The same as NAME.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]", help="Which query of the file, or a stored one."),
]


_KINDS: dict[type, str] = {list: "array", str: "string", bool: "bool"}


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a query; `path` is the file it is from."""

    text: str
    path: Path | None = None

    @property
    def name(self) -> str:
        return "-e" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of a query. Without a source, `name` is a stored query of the server."""

    call: Call
    source: Source | None
    name: str | None
    params: Any = None
    branch: str | None = None
    format: str | None = None

    def chosen_name(self) -> str | None:
        """The name of the query that runs: the one asked for, or the only one there is."""
        if self.source is None or self.name is not None:
            return self.name
        from omnigraph.syntax import parse_query

        queries = parse_query(self.source.text, name=self.source.name).queries
        return queries[0].name if len(queries) == 1 else None


def read_asked(
    call: Call,
    words: Sequence[str] | None,
    *,
    name: str | None = None,
    query: Path | None,
    query_string: str | None,
    params: str | None,
    params_file: Path | None,
) -> Asked:
    """What was typed, without an alias."""
    picked = _picked(words, name)
    source = _read_source(call.settings.project, query, query_string)
    given = read_params(params, params_file)
    if source is None:
        if picked is None:
            raise typer.BadParameter("give the query with --query <file> or -e <text>")
        source = _stored_here(call, picked)
    return Asked(call, source, picked, given)


def read_params(params: str | None, params_file: Path | None) -> Any:
    """The parameters of a call: from the one place they were given in, or none."""
    if params is not None and params_file is not None:
        raise typer.BadParameter("--params and --params-file are mutually exclusive")
    text = read_text_file(params_file) if params_file is not None else params
    if text is None:
        return None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequestError(f"params must be a JSON object: {error}") from None
    except ValueError:  # which Python raises for a number of thousands of digits
        raise ParamsError("params hold a number that is beyond every type") from None
    if found is not None and not isinstance(found, dict):
        raise ParamsError(f"params must be a JSON object, got {_KINDS.get(type(found), 'number')}")
    return found


def _picked(words: Sequence[str] | None, name: str | None) -> str | None:
    given = [*(words or ()), *([name] if name is not None else [])]
    if len(given) > 1:
        raise typer.BadParameter(f"one query runs at a time, but {', '.join(given)} were named")
    return given[0] if given else None


def _read_source(project: Project, query: Path | None, query_string: str | None) -> Source | None:
    if query is not None and query_string is not None:
        raise typer.BadParameter("give the query with --query <file> or -e <text>, not both")
    if query is not None:
        return file_source(project, str(query))
    return None if query_string is None else Source(query_string)


def file_source(project: Project, given: str) -> Source:
    path = project.query_file(given)
    return Source(read_text_file(path), path)


def _stored_here(call: Call, name: str) -> Source | None:
    """The file of a stored query, when the graph is in storage and omnigraph.yaml lists it."""
    scope = call.scope
    if not isinstance(scope, DirectScope):
        return None
    entry = scope.queries.get(name)
    if entry is None:
        raise typer.BadParameter(
            f"give the query with --query <file> or -e <text>; '{name}' alone is a stored query, "
            "and this graph is not on a server"
        )
    return Source(read_text_file(entry.file), entry.file)
