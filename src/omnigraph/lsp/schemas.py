"""Schemas: which `.pg` file the queries of a `.gq` file are written for.

1. the one that the editor is set to
2. from the folder of the file upwards, in each folder: the `query.schema` of `omnigraph.yaml`,
   then `schema.pg`, then the only `.pg` file there is
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from omnigraph.catalog import Catalog, build_catalog
from omnigraph.config.project import PROJECT_FILE, load_project
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError, SourceError
from omnigraph.syntax import SchemaTree, parse_schema

SCHEMA_FILE = "schema.pg"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it is now. `problem` says why there is no catalogue to check against."""

    path: Path | None
    catalog: Catalog | None = None
    tree: SchemaTree | None = None
    problem: str | None = None


def find_schema(file: Path | None, setting: Path | None, read: Callable[[Path], str]) -> Schema:
    """The schema of a `.gq` file; `read` gives the text of a file, unsaved changes included."""
    try:
        path = setting or (None if file is None else _search(file))
    except OmnigraphError as error:
        return Schema(None, problem=str(error))
    if path is None:
        return Schema(
            None,
            problem=f"no schema found, so only the syntax is checked — put {SCHEMA_FILE} beside "
            "the file or above it, or set `query.schema` in omnigraph.yaml",
        )
    try:
        text = read(path)
    except (OSError, UnicodeDecodeError):
        return Schema(path, problem=f"the schema '{path}' cannot be read")
    return build_schema(path, text)


@lru_cache(maxsize=8)
def build_schema(path: Path, text: str) -> Schema:
    """The catalogue of a schema text, or why there is none."""
    try:
        tree = parse_schema(text, name=str(path))
        return Schema(path, build_catalog(tree), tree)
    except SourceError as error:
        line = "" if error.location is None else f", line {error.location[0]}"
        return Schema(
            path,
            problem=f"the schema {path.name}{line} is wrong, so only the syntax is checked: "
            f"{error.message}",
        )


def _search(file: Path) -> Path | None:
    for folder in file.parents:
        project = folder / PROJECT_FILE
        schema = load_project(project).query_schema if project.is_file() else None
        if schema is not None:
            return schema
        if (folder / SCHEMA_FILE).is_file():
            return folder / SCHEMA_FILE
        found = sorted(folder.glob("*.pg"))
        if len(found) > 1:
            names = ", ".join(path.name for path in found[:3])
            raise BadRequestError(
                f"several schemas beside each other ({names}), so only the syntax is checked — "
                "set `query.schema` in omnigraph.yaml"
            )
        if found:
            return found[0]
    return None
