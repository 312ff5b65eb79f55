"""Aliases: short names for queries with arguments.

omnigraph.yaml      a query file of the project, run on the graph that the alias names
operator config     a stored query of a server

parameters   --params or --params-file  >  positional arguments  >  those of the alias
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.invocation import QueryInvocation, read_query_file
from omnigraph.config.operator import OperatorAlias
from omnigraph.config.project import ProjectAlias
from omnigraph.errors import BadRequestError, ConfigError, did_you_mean
from omnigraph.wire import QueryCall, QueryText

_TEXT_TYPES = frozenset({"String", "Date", "DateTime", "Blob"})
_TEXT_KINDS = frozenset({"string", "date", "datetime", "blob"})


def from_alias(
    call: Call, name: str, positionals: Sequence[str], given: Any, *, operator_first: bool = False
) -> QueryInvocation:
    """Look up an alias, in the project file first unless `operator_first`, and bind its arguments.

    Raises:
        ConfigError: Neither file has it.
    """
    operator_alias = call.settings.operator.aliases.get(name)
    project_alias = call.settings.project.aliases.get(name)
    if operator_alias is not None and (operator_first or project_alias is None):
        return _from_operator_alias(call, operator_alias, positionals, given)
    if project_alias is not None:
        return _from_project_alias(call, project_alias, positionals, given)
    known = [*call.settings.project.aliases, *call.settings.operator.aliases]
    hint = did_you_mean(name, known) or "add it under `aliases:` in omnigraph.yaml"
    raise ConfigError(f"alias '{name}' is not configured — {hint}")


def _from_project_alias(
    call: Call, alias: ProjectAlias, positionals: Sequence[str], given: Any
) -> QueryInvocation:
    if (alias.command == "mutate") != call.writes:
        raise BadRequestError(
            f"alias '{alias.name}' is a {alias.command} — "
            f"use omnigraph {alias.command} --alias {alias.name}"
        )
    source = read_query_file(call.settings.project, alias.query)
    texts = _bind_arguments(alias.name, alias.args, positionals)
    plain = _find_text_params(source, alias.query_name)
    bound = {name: text if name in plain else _parse_value(text) for name, text in texts.items()}
    return QueryInvocation(
        call if alias.graph is None else call.with_address(target=alias.graph),
        QueryCall(source, alias.query_name, {**bound, **(given or {})} or None, alias.branch),
        alias.format,
    )


def _from_operator_alias(
    call: Call, alias: OperatorAlias, positionals: Sequence[str], given: Any
) -> QueryInvocation:
    served = call.with_address(server=alias.server, graph=alias.graph)
    texts = _bind_arguments(alias.name, alias.args, positionals)
    bound = {name: _parse_value(text) for name, text in texts.items()}
    if any(not isinstance(value, str) for value in bound.values()):
        plain = _find_stored_text_params(served, alias.query)
        bound = {name: texts[name] if name in plain else value for name, value in bound.items()}
    params = {**alias.params, **bound, **(given or {})} or None
    return QueryInvocation(served, QueryCall(None, alias.query, params), alias.format)


def _bind_arguments(alias: str, names: Sequence[str], positionals: Sequence[str]) -> dict[str, str]:
    if len(positionals) > len(names):
        takes = ", ".join(names) or "no arguments"
        raise typer.BadParameter(
            f"alias '{alias}' takes {takes}, but {len(positionals)} were given"
        )
    return dict(zip(names, positionals, strict=False))


def _parse_value(text: str) -> Any:
    """Parse an argument that is JSON (a number, a list, true); everything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _find_text_params(source: QueryText, name: str | None) -> frozenset[str]:
    """Find the parameters that are text whatever the argument looks like, such as a slug `007`."""
    from omnigraph.syntax import parse_query

    queries = parse_query(source.text, name=source.name).queries
    return frozenset(
        param.name
        for query in queries
        if name is None or query.name == name
        for param in query.params
        if param.type_name in _TEXT_TYPES
    )


def _find_stored_text_params(call: Call, name: str) -> frozenset[str]:
    with call.open_graph("r") as graph:
        queries = graph.queries()["queries"]
    return frozenset(
        param["name"]
        for query in queries
        if query["name"] == name
        for param in query["params"]
        if param["kind"] in _TEXT_KINDS
    )
