"""Registry: the stored queries of a graph, checked against its schema.

The key of an entry is the name of a query in its file; one file may hold many. An entry that does
not fit is a breakage, reported by name; the caller decides what that means.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnigraph.catalog.model import Catalog
from omnigraph.compiler import compile_query
from omnigraph.compiler.describe import ResultField, describe, result_field
from omnigraph.config.document import read_text
from omnigraph.config.project import StoredEntry
from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError
from omnigraph.ir.print import format_expression
from omnigraph.ir.query import Parameter, RowType


@dataclass(frozen=True, slots=True)
class StoredParam:
    """A parameter, in the words of the language (`type`) and of the wire (`kind`)."""

    name: str
    type: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None
    fields: tuple[StoredParam, ...] = ()
    default: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The wire form of a catalogue item."""
        value: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.item_kind is not None:
            value["item_kind"] = self.item_kind
        if self.vector_dim is not None:
            value["vector_dim"] = self.vector_dim
        if self.fields:
            value["fields"] = [each.to_json() for each in self.fields]
        if self.default is not None:
            value["default"] = self.default
        return {**value, "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One stored query that fits the schema. `source` is the whole text of its file."""

    name: str
    tool_name: str
    source: str
    file: Path
    mutation: bool
    params: tuple[StoredParam, ...]
    result: tuple[ResultField, ...] = ()
    types_read: tuple[str, ...] = ()
    expose: bool = True
    description: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class Breakage:
    """Why an entry cannot be served."""

    query: str
    message: str


@dataclass(frozen=True, slots=True)
class Registry:
    """The queries that can run by name, those that cannot, and what is worth a word."""

    queries: Mapping[str, StoredQuery]
    breakages: tuple[Breakage, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not self.breakages


def load_registry(entries: Mapping[str, StoredEntry], catalog: Catalog) -> Registry:
    """Check every entry against a schema. Reads the files; raises nothing for a bad entry."""
    queries: dict[str, StoredQuery] = {}
    breakages: list[Breakage] = []
    tools: dict[str, str] = {}
    for name in sorted(entries):
        try:
            found = _read_query(name, entries[name], catalog)
        except OmnigraphError as error:
            breakages.append(Breakage(name, error.render()))
            continue
        other = tools.setdefault(found.tool_name, name) if found.expose else name
        if other != name:
            breakages.append(
                Breakage(name, f"tool name '{found.tool_name}' is taken by query '{other}'")
            )
            continue
        queries[name] = found
    warnings = [
        f"query '{each.name}' is exposed and takes a vector: few callers can make one"
        for each in queries.values()
        if each.expose and any(param.kind == "vector" for param in each.params)
    ]
    return Registry(queries, tuple(breakages), tuple(warnings))


def _read_query(name: str, entry: StoredEntry, catalog: Catalog) -> StoredQuery:
    source = read_text(entry.file)
    compiled = compile_query(source, catalog, name, source_name=str(entry.file))
    described = describe(compiled.ir, catalog)
    return StoredQuery(
        name=name,
        tool_name=entry.tool_name or name,
        source=source,
        file=entry.file,
        mutation=compiled.kind == "mutation",
        params=describe_params(compiled.params),
        result=described.result,
        types_read=tuple(each.type_name for each in described.reads),
        expose=entry.expose,
        description=compiled.description,
        instruction=compiled.instruction,
    )


def describe_params(params: tuple[Parameter, ...]) -> tuple[StoredParam, ...]:
    """The parameters of a compiled query."""
    return tuple(map(_param, params))


def _param(param: Parameter) -> StoredParam:
    shown = str(param.type).removesuffix("?")
    if isinstance(param.type, RowType):
        kind, item_kind = ("list", "object") if param.type.is_list else ("object", None)
        fields = describe_params(param.type.fields)
        return StoredParam(param.name, shown, kind, param.type.nullable, item_kind, fields=fields)
    shape = result_field(param.name, param.type)
    default = None if param.default is None else format_expression(param.default)
    return StoredParam(
        param.name,
        shown,
        shape.kind,
        shape.nullable,
        shape.item_kind,
        shape.vector_dim,
        default=default,
    )
