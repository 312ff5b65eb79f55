"""Uploads: the files of a load as a form, each under the name that its user gave it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from omnigraph.errors import BadRequestError
from omnigraph.pipeline.exported_models import find_models
from omnigraph.pipeline.formats.table import JSON, ending_format
from omnigraph.pipeline.input_files import is_directory, open_raw, size_of
from omnigraph.pipeline.mapping import list_patterns
from omnigraph.pipeline.sources import expand_paths
from omnigraph.pipeline.spooled import show_names

Files: TypeAlias = Sequence[str] | Mapping[str, Sequence[str]]
Part: TypeAlias = tuple[str, tuple[str | None, Any]]


def holds_records(paths: Sequence[str]) -> bool:
    """Whether files are records in JSON, as far as their names tell."""
    return not any(map(is_directory, paths)) and all(
        ending_format(path) in (None, JSON) for path in paths
    )


@contextmanager
def open_parts(data: Files, mapping: str | None) -> Iterator[list[Part]]:
    """The parts of a form with all files of a load, open.

    Raises:
        BadRequestError: A file cannot be read or sent, or a pattern matches none.
    """
    with ExitStack() as opened:

        def part(field: str, path: str) -> Part:
            size_of(path, {})
            return field, (_name(path), opened.enter_context(open_raw(path, {})))

        files = list(_list_files(data, mapping))
        parts = [part(field, path) for field, path in files]
        beside = find_models([path for field, path in files if field != "mapping"], {})
        parts += [("models", (_name(path), text)) for path, text in beside.items()]
        if mapping is not None and data:
            [directory] = data
            parts.append(("directory", (None, _name(directory))))
        yield parts


def _list_files(data: Files, mapping: str | None) -> Iterator[tuple[str, str]]:
    if isinstance(data, Mapping):
        for name, paths in data.items():
            yield from ((name, path) for path in expand_paths(paths, {}))
    elif mapping is None:
        yield from (("data", path) for path in expand_paths(data, {}))
    else:
        base = _find_base(data, mapping)
        patterns = [os.path.join(base, each) for each in list_patterns(mapping)]
        yield "mapping", mapping
        for path in dict.fromkeys(expand_paths(patterns, {})):
            yield "data", path


def _find_base(data: Sequence[str], mapping: str) -> str:
    if not data:
        return os.path.dirname(mapping)
    if len(data) == 1 and is_directory(data[0]):
        return data[0]
    raise BadRequestError(
        "a mapping names the files itself — give it alone, or with their directory"
    )


def _name(path: str) -> str:
    """The name a file is sent under; one that goes up is sent as where it leads."""
    name = show_names(path).removeprefix("s3://")
    parts = name.removeprefix("/").rstrip("/").split("/")
    is_plain = {"", ".."}.isdisjoint(parts)
    return name.rstrip("/") if is_plain else os.path.abspath(name)
