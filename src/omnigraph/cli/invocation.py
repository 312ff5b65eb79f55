"""QueryInvocation: the text, name and parameters of one `query`, `mutate` or `explain`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.output import read_text_file
from omnigraph.config.project import Project
from omnigraph.config.scope import DirectScope
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ParamsError
from omnigraph.wire import QueryCall, QueryText

ParamsOption = Annotated[str | None, typer.Option("--params", help="Parameters as JSON.")]
ParamsFileOption = Annotated[
    Path | None, typer.Option("--params-file", help="A file with parameters as JSON.")
]
QueryFileOption = Annotated[Path | None, typer.Option("--query", help="The .gq file.")]
QueryStringOption = Annotated[
    str | None, typer.Option("--query-string", "-e", help="The query text.")
]
AliasOption = Annotated[str | None, typer.Option("--alias", help="An alias; its arguments follow.")]
NameOption = Annotated[str | None, typer.Option("--name", help="The same as NAME.")]
Positionals = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]", help="A query of the file, or a stored query."),
]

_KINDS: dict[type, str] = {list: "array", str: "string", bool: "bool"}


@dataclass(frozen=True, slots=True)
class QueryInvocation:
    """One query to run, the graph that it addresses, and the format that its alias names."""

    call: Call
    query: QueryCall
    format: str | None = None

    def resolve_name(self) -> str | None:
        """Return the name of the query that runs: the given one, or the only one of the text."""
        source = self.query.source
        if source is None or self.query.name is not None:
            return self.query.name
        from omnigraph.syntax import parse_query

        queries = parse_query(source.text, name=source.name).queries
        return queries[0].name if len(queries) == 1 else None


def parse_invocation(
    call: Call,
    positionals: Sequence[str] | None,
    *,
    alias: str | None = None,
    name: str | None = None,
    query: Path | None,
    query_string: str | None,
    params: str | None,
    params_file: Path | None,
) -> QueryInvocation:
    """Find the query that the arguments of a command name, directly or through an alias."""
    if alias is not None:
        from omnigraph.cli.aliases import from_alias

        if query is not None or query_string is not None or name is not None:
            raise typer.BadParameter("--alias has its query already; leave the other one out")
        return from_alias(call, alias, positionals or [], read_params(params, params_file))
    names = [*(positionals or ()), *([name] if name is not None else [])]
    if len(names) > 1:
        raise typer.BadParameter(f"one query runs at a time, but {', '.join(names)} were named")
    chosen = names[0] if names else None
    if query is not None and query_string is not None:
        raise typer.BadParameter("give the query with --query <file> or -e <text>, not both")
    source = None if query_string is None else QueryText(query_string)
    if query is not None:
        source = read_query_file(call.settings.project, str(query))
    given = read_params(params, params_file)
    if source is None:
        if chosen is None:
            raise typer.BadParameter("give the query with --query <file> or -e <text>")
        source = _find_stored_query(call, chosen)
    return QueryInvocation(call, QueryCall(source, chosen, given))


def read_params(params: str | None, params_file: Path | None) -> Any:
    """Read the parameters from the option or the file; None when neither is given."""
    if params is not None and params_file is not None:
        raise typer.BadParameter("--params and --params-file are mutually exclusive")
    text = read_text_file(params_file) if params_file is not None else params
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRequestError(f"params must be a JSON object: {error}") from None
    except ValueError:  # which Python raises for a number of thousands of digits
        raise ParamsError("params hold a number that is beyond every type") from None
    if value is not None and not isinstance(value, dict):
        raise ParamsError(f"params must be a JSON object, got {_KINDS.get(type(value), 'number')}")
    return value


def read_query_file(project: Project, name: str) -> QueryText:
    path = project.query_file(name)
    return QueryText(read_text_file(path), path)


def _find_stored_query(call: Call, name: str) -> QueryText | None:
    """Read a stored query that omnigraph.yaml lists; None if the graph is behind a server."""
    scope = call.scope
    if not isinstance(scope, DirectScope):
        return None
    entry = scope.queries.get(name)
    if entry is None:
        raise typer.BadParameter(
            f"give the query with --query <file> or -e <text>; '{name}' alone is a stored query, "
            "and this graph is not on a server"
        )
    return QueryText(read_text_file(entry.file), entry.file)
