"""Store a query: a text becomes a file of the directory that `queries` names, once it is right."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from omnigraph.catalog.model import Catalog
from omnigraph.compiler import compile_query
from omnigraph.compiler.compile import parse_file
from omnigraph.config.project import QUERY_SUFFIX, StoredEntry
from omnigraph.errors import BadRequestError, ConflictError


def store_query(
    directory: Path,
    entries: Mapping[str, StoredEntry],
    catalog: Catalog,
    name: str,
    text: str,
    *,
    replaces: bool,
) -> dict[str, StoredEntry]:
    """Write `<name>.gq` with all queries of a text, or nothing; the entries with these.

    Raises:
        CompileError, ParseError: A query of the text does not fit the schema.
        BadRequestError: The text has no query of that name, or the file cannot be written.
        ConflictError: A name is taken.
    """
    file = directory / f"{name}{QUERY_SUFFIX}"
    names = [each.name for each in parse_file(text, file.name).queries]
    if name not in names:
        raise BadRequestError(
            f"the text has no query '{name}' — it has {', '.join(names) or 'none'}"
        )
    for each in names:
        compile_query(text, catalog, each, source_name=file.name)
        known = entries.get(each)
        if known is not None and known.file != file:
            raise ConflictError(
                f"'{each}' is stored in '{known.file.name}' already — nothing was stored; change "
                "it there, or give the query another name"
            )
    if not replaces and file.exists():
        raise ConflictError(
            f"'{name}' is stored already — nothing was changed; replace it, or give the query "
            "another name"
        )
    _write(file, text)
    kept = {key: entry for key, entry in entries.items() if entry.file != file}
    return {**kept, **{each: StoredEntry(file) for each in names}}


def _write(file: Path, text: str) -> None:
    """All of it or nothing: a server that watches the directory never reads half a file."""
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=file.parent, suffix=".part", delete=False
        ) as part:
            part.write(text)
        os.chmod(part.name, 0o644)
        os.replace(part.name, file)
    except OSError as error:
        raise BadRequestError(
            f"'{file.name}' cannot be written to the directory of stored queries: "
            f"{error.strerror} — nothing was stored"
        ) from None
