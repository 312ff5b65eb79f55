"""Aliases: short names for queries with their arguments, and what they stand for.

omnigraph.yaml      a query file of the project, run where the alias says
operator config     a stored query of a server

parameters   --params or --params-file  >  positional arguments  >  those of the alias
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

from omnigraph.cli.call import Call
from omnigraph.cli.query_call import Asked, Source, file_source
from omnigraph.config.operator import OperatorAlias
from omnigraph.config.project import ProjectAlias
from omnigraph.errors import BadRequestError, ConfigError, did_you_mean

_TEXT_TYPES = frozenset({"String", "Date", "DateTime", "Blob"})
_TEXT_KINDS = frozenset({"string", "date", "datetime", "blob"})


def of_alias(
    call: Call, name: str, words: Sequence[str], given: Any, *, operator_first: bool = False
) -> Asked:
    """Look an alias up and bind its arguments: the project's own first, or the operator's.

    Raises:
        ConfigError: Neither file has it.
    """
    mine = call.settings.operator.aliases.get(name)
    ours = call.settings.project.aliases.get(name)
    if mine is not None and (operator_first or ours is None):
        return _of_operator_alias(call, mine, words, given)
    if ours is not None:
        return _of_project_alias(call, ours, words, given)
    raise _unknown(call, name)


def _unknown(call: Call, name: str) -> ConfigError:
    """That there is no such alias, with the nearest one."""
    known = [*call.settings.project.aliases, *call.settings.operator.aliases]
    hint = did_you_mean(name, known) or "add it under `aliases:` in omnigraph.yaml"
    return ConfigError(f"alias '{name}' is not configured — {hint}")


def _of_project_alias(call: Call, alias: ProjectAlias, words: Sequence[str], given: Any) -> Asked:
    """An alias of omnigraph.yaml: a query file with its arguments."""
    if (alias.command == "mutate") != call.writes:
        raise BadRequestError(
            f"alias '{alias.name}' is a {alias.command} — "
            f"use omnigraph {alias.command} --alias {alias.name}"
        )
    source = file_source(call.settings.project, alias.query)
    texts = _bound(alias.name, alias.args, words)
    plain = _text_params(source, alias.query_name)
    bound = {name: text if name in plain else _read_value(text) for name, text in texts.items()}
    return Asked(
        call if alias.graph is None else call.aimed(target=alias.graph),
        source,
        alias.query_name,
        _over(bound, given),
        alias.branch,
        alias.format,
    )


def _of_operator_alias(call: Call, alias: OperatorAlias, words: Sequence[str], given: Any) -> Asked:
    """An alias of the operator config: a stored query of a server."""
    aimed = call.aimed(server=alias.server, graph=alias.graph)
    texts = _bound(alias.name, alias.args, words)
    bound = {name: _read_value(text) for name, text in texts.items()}
    if any(not isinstance(value, str) for value in bound.values()):
        plain = _stored_text_params(aimed, alias.query)
        bound = {name: texts[name] if name in plain else value for name, value in bound.items()}
    return Asked(
        aimed,
        None,
        alias.query,
        _over({**alias.params, **bound}, given),
        None,
        alias.format,
    )


def _bound(alias: str, names: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    if len(words) > len(names):
        takes = ", ".join(names) or "no arguments"
        raise typer.BadParameter(f"alias '{alias}' takes {takes}, but {len(words)} were given")
    return dict(zip(names, words, strict=False))


def _over(bound: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any] | None:
    """What was typed as parameters wins."""
    return {**bound, **(given or {})} or None


def _read_value(text: str) -> Any:
    """A word as JSON where it is JSON: a number, a list, true. Everything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text_params(source: Source, name: str | None) -> frozenset[str]:
    """The parameters that are texts, whatever they look like: a slug may be all digits."""
    from omnigraph.syntax import parse_query

    queries = parse_query(source.text, name=source.name).queries
    return frozenset(
        param.name
        for query in queries
        if name is None or query.name == name
        for param in query.params
        if param.type_name in _TEXT_TYPES
    )


def _stored_text_params(call: Call, name: str) -> frozenset[str]:
    with call.open_graph("r") as graph:
        listed = graph.queries()["queries"]
    return frozenset(
        param["name"]
        for query in listed
        if query["name"] == name
        for param in query["params"]
        if param["kind"] in _TEXT_KINDS
    )
