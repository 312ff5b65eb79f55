"""Query source: the text of a query, or the file it names."""

from __future__ import annotations

from pathlib import Path

from omnigraph.catalog import Catalog
from omnigraph.compiler import CompiledQuery, compile_query
from omnigraph.errors import BadRequestError


def compile_source(source: str | Path, catalog: Catalog, name: str | None) -> CompiledQuery:
    """Compile text, or the file it names."""
    text, source_name = read_source(source)
    return compile_query(text, catalog, name, source_name=source_name)


def read_source(source: str | Path) -> tuple[str, str]:
    """The text of a query and what to call it: a path has one line, a query has braces.

    Raises:
        BadRequestError: The file cannot be read.
    """
    if isinstance(source, Path) or ("{" not in source and source.strip().endswith(".gq")):
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise BadRequestError(f"cannot read the query file '{path}': {error}") from error
        return text, str(path)
    return source, "query.gq"
