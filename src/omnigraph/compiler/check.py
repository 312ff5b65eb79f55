"""Check: a query tree against a catalogue. The first error of a query is the one reported.

parameters → check_match (bindings, check_traversals, check_filters, nested `not`)
           → check_returns → check_order            for a read
           → check_mutations                         for a mutation
"""

from __future__ import annotations

from omnigraph.catalog.model import Catalog
from omnigraph.compiler.check_counts import check_count, check_offset
from omnigraph.compiler.check_having import check_having, make_finish
from omnigraph.compiler.check_match import check_pattern
from omnigraph.compiler.check_order import check_order
from omnigraph.compiler.check_params import check_params, param_scope
from omnigraph.compiler.check_returns import check_returns
from omnigraph.compiler.check_stages import check_stages
from omnigraph.compiler.typed import TypedQuery, TypedRead
from omnigraph.syntax.query_tree import QueryDecl


def check_query(query: QueryDecl, catalog: Catalog) -> TypedQuery:
    """Resolve every name of `query` and type every expression.

    Raises:
        TypeCheckError: The query does not fit the schema; `code` says which rule it breaks.
    """
    params = check_params(query.params, catalog)
    scope = param_scope(params, catalog)
    if query.is_mutation:
        from omnigraph.compiler.check_mutations import check_mutation  # five modules

        return check_mutation(query, params, scope)
    stages = check_stages(query.stages, scope)
    pattern = check_pattern(query.match, scope)
    returns = check_returns(query, scope)
    having = check_having(query, returns, scope)
    order, order_refusals = check_order(query, returns, scope)
    limit = check_count("limit", query.limit, scope)
    offset = check_offset(query, scope)
    return TypedRead(
        name=query.name,
        params=params,
        pattern=pattern,
        returns=returns.items,
        order=order,
        limit=limit,
        offset=offset,
        is_grouped=returns.is_aggregate or returns.is_distinct,
        finish=make_finish(returns, having, order, catalog),
        refusals=returns.refusals + order_refusals,
        stages=stages,
    )
