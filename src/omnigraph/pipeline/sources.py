"""Sources: what a caller names as the input of a load, as files of known types and formats.

text, an iterable of records        records, each with its type
files, patterns, directories        by format; rows get their type from the name of the file
{type: files}                       rows of the types that are named
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from omnigraph.catalog import Catalog, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.pipeline.binding import RowRules
from omnigraph.pipeline.crossing import Machine, share_bytes
from omnigraph.pipeline.embed import has_vectors
from omnigraph.pipeline.exported_models import read_models
from omnigraph.pipeline.formats.json_file import plan_json
from omnigraph.pipeline.formats.model import PlannedFile, TypedFile
from omnigraph.pipeline.formats.table import ENDINGS, JSON, find_format
from omnigraph.pipeline.frames import table_key
from omnigraph.pipeline.input_files import (
    Options,
    is_directory,
    list_files,
    matching,
    plain_name,
    size_of,
)
from omnigraph.pipeline.mapping import read_mapping
from omnigraph.pipeline.ranges import Input, is_text, plan_values
from omnigraph.pipeline.spooled import show_names

PathLike: TypeAlias = str | Path
Files: TypeAlias = PathLike | Sequence[PathLike]
Source: TypeAlias = (
    PathLike | Iterable[Mapping[str, Any]] | Iterable[PathLike] | Mapping[str, Files]
)


def plan_source(
    data: Source | None,
    catalog: Catalog,
    part_bytes: int,
    options: Options,
    mapping: str | None = None,
) -> Input:
    """Cut the input of a load into ranges. `options` are for files in an object store.

    With a mapping, which names files, `data` is nothing or the directory they are in.

    Raises:
        BadRequestError: A file is not there or cannot be read, a pattern matches none, or its type
            is unknown.
    """
    planner = _Planner(catalog, part_bytes, options)
    if mapping is not None:
        return planner.plan(planner.find_mapped(mapping, data))
    match data:
        case None:
            raise BadRequestError("there is nothing to load — give files, records or a mapping")
        case str() if is_text(data):
            return plan_values(data, part_bytes)
        case str() | Path():
            return planner.plan(planner.find_files([data]))
        case Mapping():
            return planner.plan(planner.find_typed(data))
        case list() | tuple() if data and all(isinstance(each, str | Path) for each in data):
            return planner.plan(planner.find_files(data))
        case _:
            return plan_values(data, part_bytes)


def expand_paths(paths: Iterable[PathLike], options: Options) -> Iterator[str]:
    """The files of paths, patterns and directories.

    Raises:
        BadRequestError: A pattern matches none, or a directory has none.
    """
    for path in paths:
        for found in matching(str(path), options):
            yield from list_files(found, ENDINGS, options) if is_directory(found) else [found]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and what is said about its rows; None when its records name their types."""

    path: str
    rules: RowRules | None


@dataclass(frozen=True, slots=True)
class _Planner:
    catalog: Catalog
    part_bytes: int
    options: Options

    def plan(self, files: Iterable[FoundFile]) -> Input:
        found = list(files)
        sizes = [size_of(file.path, self.options) for file in found]
        share = share_bytes(sum(sizes), self.part_bytes, Machine.here())
        planned = [self._plan_file(*each, share) for each in zip(found, sizes, strict=True)]
        ranges = [each for file in planned for each in file.ranges]
        weight = sum(file.weight for file in planned)
        notes = tuple(show_names(note) for file in planned for note in file.notes)
        return Input(
            ranges,
            weight <= self.part_bytes,
            dict(self.options),
            file_bytes=weight,
            parts=len(ranges),
            notes=notes,
            models=self._read_models([file.path for file in found]),
        )

    def _read_models(self, paths: Sequence[str]) -> dict[str, str]:
        """What made the vectors of the files, for a graph that has some: others are not asked."""
        return read_models(paths, self.options) if has_vectors(self.catalog) else {}

    def _plan_file(self, file: FoundFile, size: int, part_bytes: int) -> PlannedFile:
        path, rules = file.path, file.rules
        found = find_format(path, self.options, is_typed=rules is not None)
        if rules is None and found is JSON:
            return plan_json(path, size, part_bytes, self.options)
        rules = rules or RowRules(self._named_type(path))
        return found.plan(TypedFile(path, size, rules), part_bytes, self.options)

    def find_mapped(self, mapping: str, data: Source | None) -> Iterator[FoundFile]:
        """The files that a mapping names, below a directory if one is given."""
        if data is not None and not (isinstance(data, str | Path) and is_directory(str(data))):
            raise BadRequestError(
                "a mapping names the files itself — give it alone, or with their directory"
            )
        for each in read_mapping(mapping, self.catalog, None if data is None else str(data)):
            for path in expand_paths([each.pattern], self.options):
                yield FoundFile(path, each.rules)

    def find_typed(self, data: Mapping[str, Files]) -> Iterator[FoundFile]:
        """The files of types that are named."""
        for name, files in data.items():
            rules = RowRules(self.catalog.entity(table_key(self.catalog, name)))
            for path in expand_paths(_as_list(name, files), self.options):
                yield FoundFile(path, rules)

    def find_files(self, paths: Iterable[PathLike]) -> Iterator[FoundFile]:
        """The files of paths, patterns and directories."""
        for path in expand_paths(paths, self.options):
            yield FoundFile(path, None)

    def _named_type(self, path: str) -> EntityType:
        """The type that a file, or the directory it is in, is named after.

        Raises:
            BadRequestError: There is none.
        """
        stem = os.path.basename(plain_name(path))
        ending = next((each for each in ENDINGS if stem.lower().endswith(each)), "")
        stem = stem[: len(stem) - len(ending)]
        folder = os.path.basename(os.path.dirname(path))
        for name in (stem, folder):
            # An export names files after table keys: `node.Person.parquet`.
            found = self.catalog.by_table_key(name.replace(".", ":", 1))
            found = found or self.catalog.node(name) or self.catalog.edge(name)
            if found is not None:
                return found
        known = [*self.catalog.nodes, *self.catalog.edges]
        what = with_suggestion(f"no type is named '{stem}'", stem, known)
        raise BadRequestError(
            f"{path}: {what} — name the type of its rows (`--type`, or {{type: file}} in Python), "
            "or the file after it; nothing was written"
        )


def _as_list(name: str, files: Files) -> Sequence[PathLike]:
    if isinstance(files, str | Path):
        return [files]
    if isinstance(files, Sequence) and all(isinstance(each, str | Path) for each in files):
        return files
    raise BadRequestError(f"the files of '{name}' are {files!r:.60}, expected a path or several")
