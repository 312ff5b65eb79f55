"""Compile: query text and a catalogue to a query that can run.

    text → parse_file → select_query → check_query → lower_read → CompiledQuery

A compiled query depends on its text, its name and the shape of the schema, so it is cached by
these three; parse trees are cached by text. Errors are not cached: the next call raises them again.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Literal, TypeAlias

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check import check_query
from omnigraph.compiler.lower import lower_read
from omnigraph.compiler.typed import TypedQuery, TypedRead
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, PlanError, SourceError, with_suggestion
from omnigraph.ir.mutations import MutationIR
from omnigraph.ir.query import Parameter, QueryIR
from omnigraph.nonblocking import may_block
from omnigraph.source_text import SourceText
from omnigraph.syntax.parse_query import parse_query
from omnigraph.syntax.query_tree import QueryDecl, QueryTree

QueryKind: TypeAlias = Literal["read", "mutation"]

PARSED_FILES_MAX = 256
COMPILED_QUERIES_MAX = 1024


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query, checked against a schema and ready to plan."""

    name: str
    kind: QueryKind
    ir: QueryIR | MutationIR
    params: tuple[Parameter, ...]
    description: str | None = None
    instruction: str | None = None


@dataclass(frozen=True, slots=True)
class _Schema:
    """A catalogue as a cache key: equal when the shape and the identities handed out are."""

    shape_hash: str
    next_id: int
    catalog: Catalog = field(compare=False)


def compile_query(
    source: str, catalog: Catalog, name: str | None = None, *, source_name: str = "query.gq"
) -> CompiledQuery:
    """Compile the query `name` of `source`; the name may be left out when there is only one.

    Raises:
        ParseError: The text does not follow the grammar.
        TypeCheckError: The query does not fit the schema.
        BadRequestError: There is no such query, or it is well typed but cannot run.
    """
    schema = _Schema(catalog.shape_hash, catalog.next_id, catalog)
    return _compile(source, name, schema, source_name)


def require_read(query: CompiledQuery) -> QueryIR:
    """The IR of a read; a mutation is refused."""
    if isinstance(query.ir, QueryIR):
        return query.ir
    raise PlanError(
        f"query '{query.name}' is a mutation and was asked to run as a read — "
        "send it to `mutate` (`POST /mutate`)"
    )


def require_mutation(query: CompiledQuery) -> MutationIR:
    """The IR of a mutation; a read is refused."""
    if isinstance(query.ir, MutationIR):
        return query.ir
    raise PlanError(
        f"query '{query.name}' is a read and was asked to run as a mutation — "
        "send it to `query` (`POST /query`)"
    )


@lru_cache(maxsize=PARSED_FILES_MAX)
def parse_file(source: str, source_name: str) -> QueryTree:
    """Parse a query file, or return the tree it had the last time."""
    return parse_query(source, source_name)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _compile(source: str, name: str | None, schema: _Schema, source_name: str) -> CompiledQuery:
    may_block()
    query = select_query(parse_file(source, source_name), name)
    try:
        return _finish(query, check_query(query, schema.catalog))
    except SourceError as error:
        raise error.with_source(SourceText(source_name, source)) from None


def select_query(tree: QueryTree, name: str | None) -> QueryDecl:
    """The first declaration of this name, or the only one when no name is given."""
    if name is None:
        if len(tree.queries) == 1:
            return tree.queries[0]
        raise BadRequestError(_ambiguous(tree))
    for query in tree.queries:
        if query.name == name:
            return query
    names = [query.name for query in tree.queries]
    raise BadRequestError(with_suggestion(f"query '{name}' not found", name, names))


def _ambiguous(tree: QueryTree) -> str:
    if not tree.queries:
        return "the source declares no query"
    names = ", ".join(query.name for query in tree.queries[:10])
    more = ", …" if len(tree.queries) > 10 else ""
    return f"the source declares {len(tree.queries)} queries — name one of {names}{more}"


def _finish(query: QueryDecl, typed: TypedQuery) -> CompiledQuery:
    if typed.refusals:
        raise typed.refusals[0].error()
    ir = lower_read(typed) if isinstance(typed, TypedRead) else typed.ir
    kind: QueryKind = "mutation" if query.is_mutation else "read"
    return CompiledQuery(query.name, kind, ir, ir.params, query.description, query.instruction)
