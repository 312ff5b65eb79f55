"""Infer a schema from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from omnigraph.catalog import build_catalog
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.infer.relate import FileGuess, relate_files
from omnigraph.infer.sample import read_sample
from omnigraph.infer.write import write_mapping, write_schema
from omnigraph.pipeline.sources import expand_paths
from omnigraph.syntax import parse_schema

PathLike: TypeAlias = str | Path


@dataclass(frozen=True, slots=True)
class InferredSchema:
    """A proposal: a schema, and which file holds which of its types, both as text."""

    schema: str
    mapping: str


def infer_schema(files: PathLike | Sequence[PathLike]) -> InferredSchema:
    """Propose a schema for CSV, JSON Lines, Parquet or Arrow files, from a sample of each.

    Raises:
        BadRequestError: A file cannot be read or has no rows, or two would be of one type.
    """
    paths = _find_files([files] if isinstance(files, str | Path) else files)
    guesses = relate_files([read_sample(path, {}) for path in paths])
    _refuse_shared_names(guesses)
    schema = write_schema(guesses)
    # What is proposed is valid: a name that no rule foresaw must not reach the user as an error.
    build_catalog(parse_schema(schema))
    return InferredSchema(schema, write_mapping(guesses))


def _find_files(files: Sequence[PathLike]) -> list[str]:
    found = list(expand_paths(files, {}))
    if not found:
        raise BadRequestError("there are no files to infer a schema from")
    return found


def _refuse_shared_names(files: Sequence[FileGuess]) -> None:
    paths: dict[str, str] = {}
    for file in files:
        other = paths.setdefault(file.type_name.lower(), file.path)
        if other != file.path:
            raise BadRequestError(
                f"{file.path} and {other} would both be of type {file.type_name} — "
                "name the files after their types"
            )
        names = [each.property for each in file.columns if each.type is not None]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise BadRequestError(
                f"{file.path}: two columns would be the property `{repeated}` — rename one"
            )
