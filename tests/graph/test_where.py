"""The `where` of a statement finds what the same condition finds in a `match`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.compiler import bind_params, require_mutation
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.mutations import Delete
from omnigraph.storage.predicates import Predicate, columns_of
from omnigraph.testing.inside import inside
from omnigraph.write import select_rows as selecting
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


KEYS = """node Text { k: String @key  n: I32? }
node Whole { k: I32 @key }
node Wide { k: U64 @key }
node Truth { k: Bool @key }
node Day { k: Date @key }
node Instant { k: DateTime @key }
node Both { a: String  b: I64  @key(a, b) }
edge Reads: Text -> Text { on: Date  @key(src, dst, on) }
node Plain { k: String }
node Part { k: F64 @key }
"""
ROWS: list[dict[str, Any]] = [
    *({"type": "Text", "data": {"k": each}} for each in ("a", "b'c", "")),
    *({"type": "Whole", "data": {"k": each}} for each in (-1, 0, 2**31 - 1)),
    *({"type": "Wide", "data": {"k": each}} for each in (0, 9, 2**64 - 1)),
    *({"type": "Truth", "data": {"k": each}} for each in (True, False)),
    *({"type": "Day", "data": {"k": each}} for each in ("1969-12-31", "2026-01-02")),
    *({"type": "Instant", "data": {"k": each}} for each in ("1969-12-31T23:59:59.999Z",)),
    *({"type": "Both", "data": {"a": each, "b": 7}} for each in ("x", '"')),
    {"edge": "Reads", "from": "a", "to": "b'c", "data": {"on": "2026-01-02"}},
    {"type": "Plain", "data": {"k": "a"}},
    *({"type": "Part", "data": {"k": each}} for each in (-0.0, 1.5)),
]


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[og.Graph]:
    path = tmp_path_factory.mktemp("keyed") / "graph"
    with og.init(path, schema=KEYS, durability="process") as graph:
        graph.load(ROWS, mode="overwrite")
        yield graph


@pytest.mark.parametrize(
    ("type_name", "condition", "names_ids"),
    [
        ("Text", 'k = "b\'c"', True),
        ("Text", 'k = ""', True),
        ("Text", 'k = "a" and n is null', True),
        ("Text", 'k in ["a", "", "nowhere"]', True),
        ("Text", 'k != "a"', False),
        ("Text", 'k = "a" or k = ""', False),
        ("Whole", "k = -1", True),
        ("Whole", "k = 0.0", True),
        ("Whole", "k = 0.5", False),
        ("Wide", "k = 9", True),
        ("Truth", "k = false", True),
        ("Day", 'k = date("1969-12-31")', True),
        ("Instant", 'k = datetime("1969-12-31T23:59:59.999Z")', True),
        ("Both", 'b = 7 and a = "\\""', True),
        ("Both", 'a = "x"', False),
        ("Plain", 'k = "a"', False),
        ("Part", "k = 0.0", False),
    ],
)
def test_a_condition_on_whole_keys_is_looked_up_by_ids(
    keyed: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    type_name: str,
    condition: str,
    names_ids: bool,
) -> None:
    """Ids have an index; the same rows are found without looking them up."""
    asked: list[Predicate | None] = []
    scan = MutationStaging.scan

    def spy(self: MutationStaging, entity: Any, predicate: Any, columns: Any = None) -> Any:
        asked.append(predicate)
        return scan(self, entity, predicate, columns)

    statement = f"query q() {{ delete {type_name} where {condition} }}"
    with monkeypatch.context() as patch:
        patch.setattr(MutationStaging, "scan", spy)
        found = select(keyed, statement, {}, is_pending=False)

    asked_ids = any("id" in columns_of(each) for each in asked if each is not None)
    assert asked_ids is names_ids
    monkeypatch.setattr(selecting, "name_ids", lambda *_: None)
    assert found == select(keyed, statement, {}, is_pending=False)
    assert bool(found) is (condition != "k = 0.5")


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
