"""The `where` of a statement finds what the same condition finds in a `match`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.compiler import bind_params, require_mutation
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.mutations import Delete
from omnigraph.testing.inside import inside
from omnigraph.write.given_rows import one_row
from omnigraph.write.select_rows import select_rows
from omnigraph.write.staging import MutationStaging, PendingMode
from tests.depth import depth
from tests.executor.query_strategies import Draw, draw_condition, draw_records, draw_schema

CONDITIONS = 12


@settings(max_examples=depth(4, 800), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_where_finds_what_a_match_finds_stored_or_pending(data: st.DataObject) -> None:
    draw = Draw(data)
    schema = draw_schema(draw)
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "g", schema=schema.text(), durability="process")
        graph.load(draw_records(draw, schema), mode="overwrite")
        for _ in range(CONDITIONS):
            type_name = draw.one([*schema.nodes, *schema.edges])
            declared, condition, params = draw_condition(draw, schema, type_name)
            bound = f"$v: {type_name}" if type_name in schema.nodes else _walk(type_name)
            shown = "$v" if type_name in schema.nodes else "$v.id"
            match = f"match {{ {bound}  {condition} }}"
            read = f"query q({declared}) {{ {match} return {{ {shown} as id }} }}"
            where = condition.replace("$v.", "")
            if "$v" in where:
                continue  # `type($v)` has no bare word
            statement = f"query q({declared}) {{ delete {type_name} where {where} }}"

            found = sorted(row["id"] for row in graph.query(read, params=params))

            assert select(graph, statement, params, is_pending=False) == found, statement
            assert select(graph, statement, params, is_pending=True) == found, statement


def _walk(edge: str) -> str:
    return f"$_ $v:{edge[0].lower()}{edge[1:]} $_"


def select(
    graph: og.Graph, statement: str, params: dict[str, Any], *, is_pending: bool
) -> list[str]:
    """The ids that a statement selects; with all rows pending, as after an update of them."""
    ir = require_mutation(og.compile_query(statement, graph.catalog))
    (op,) = ir.ops
    assert isinstance(op, Delete)
    staging = MutationStaging(inside(graph).store.tables, graph.catalog, graph.snapshot())
    entity = graph.catalog.entity(f"{op.entity_kind}:{op.type_name}")
    if is_pending:
        staging.push(entity, PendingMode.MERGE, staging.scan(entity, None))
    given_row = one_row(bind_params(ir.params, params) | {NOW_PARAMETER: 0})
    ids: list[str] = select_rows(entity, op.predicate, given_row, staging, ["id"])["id"].to_pylist()
    return sorted(ids)
