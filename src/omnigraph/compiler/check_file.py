"""Check a file: each of its queries on its own, so that a wrong one hides no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check import check_query
from omnigraph.compiler.typed import TypedQuery
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError, SourceError
from omnigraph.syntax.query_tree import QueryDecl


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """One declaration, with what checking it gave: a typed query, or the error."""

    query: QueryDecl
    is_repeated: bool
    typed: TypedQuery | None = None
    error: OmnigraphError | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it can run."""
        return self.typed is not None and not self.typed.refusals


def check_file(queries: Iterable[QueryDecl], catalog: Catalog) -> Iterator[CheckedQuery]:
    """Check every query of a file, in its order."""
    seen: set[str] = set()
    for query in queries:
        is_repeated = query.name in seen
        seen.add(query.name)
        try:
            yield CheckedQuery(query, is_repeated, typed=check_query(query, catalog))
        except (SourceError, BadRequestError) as error:
            yield CheckedQuery(query, is_repeated, error=error)
