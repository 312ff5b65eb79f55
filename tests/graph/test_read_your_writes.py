"""Read-your-writes: a statement sees what the earlier ones of its query have done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.catalog import arrow_schema, build_catalog
from omnigraph.errors import BadRequestError, ConstraintError
from omnigraph.failpoints import Failpoint, arm_failpoints
from omnigraph.manifest import Snapshot
from omnigraph.storage.predicates import Compare, CompareOp
from omnigraph.syntax import parse_schema
from omnigraph.testing.inside import inside
from omnigraph.write.staging import MutationStaging, PendingMode
from tests.graph.reading import SCHEMA, add, ages, heads, links, names, pins, rows, run, standing

CATALOG = build_catalog(parse_schema(SCHEMA))
PERSON = CATALOG.nodes["Person"]
KNOWS = CATALOG.edges["Knows"]


def people(**ages_by_name: int | None) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {"id": name, "name": name, "age": age, "email": None}
            for name, age in ages_by_name.items()
        ],
        schema=arrow_schema(PERSON),
    )


def staging_over(graph: og.Graph, snapshot: Snapshot | None = None) -> MutationStaging:
    return MutationStaging(inside(graph).store.tables, CATALOG, snapshot or graph.snapshot())


@pytest.mark.accepts("S-017")
def test_an_edge_may_name_nodes_of_its_own_query(graph: og.Graph) -> None:
    add(graph, "pair", a="ann", b="bob")

    assert links(graph) == [("ann", "bob")]


@pytest.mark.accepts("S-017")
def test_cardinality_counts_the_edges_of_the_query(pair: og.Graph) -> None:
    run(pair, 'insert Firm { code: "f" } insert Firm { code: "g" }')
    before = standing(pair)

    with pytest.raises(ConstraintError, match="@card violation"):
        run(
            pair,
            'insert WorksAt { from: "ann", to: "f" } insert WorksAt { from: "ann", to: "g" }',
        )

    assert standing(pair) == before


@pytest.mark.accepts("S-023")
def test_chained_updates_match_the_values_that_earlier_ones_set(graph: og.Graph) -> None:
    """The second update must not match what was committed, the third not what was pending."""
    run(graph, 'insert Person { name: "a", age: 1 } insert Person { name: "b", age: 10 }')

    result = run(
        graph,
        """
        update Person set { age: 10 } where age = 1
        update Person set { age: 20 } where age = 10
        update Person set { age: 99 } where age = 1
        """,
    )

    assert ages(graph) == {"a": 20, "b": 20}
    assert result.affected_nodes == 3


@pytest.mark.accepts("S-026")
def test_the_last_write_of_a_key_in_one_query_wins(graph: og.Graph) -> None:
    run(
        graph,
        """
        insert Person { name: "a", age: 1 }
        update Person set { age: 2 } where name = "a"
        insert Person { name: "b", age: 5 }
        insert Person { name: "b", age: 6 }
        """,
    )

    assert ages(graph) == {"a": 2, "b": 6}


@pytest.mark.accepts("S-026")
def test_of_several_records_of_one_id_a_merge_keeps_the_last(graph: og.Graph) -> None:
    records = [{"type": "Person", "data": {"name": "a", "age": age}} for age in (1, 2, 3)]

    graph.load(records, mode="merge")

    assert ages(graph) == {"a": 3}


def keep_heads(graph: og.Graph, seen: list[dict[str, int]]) -> None:
    seen.append(heads(graph))


@pytest.mark.accepts("S-020", "S-065")
def test_no_head_moves_before_the_sidecar_is_there(pair: og.Graph) -> None:
    """Statements run, are checked and are staged; until the commit step every HEAD is its pin."""
    writes: list[tuple[set[str], Callable[[], object]]] = [
        (
            {"node:Person", "edge:Knows"},
            lambda: run(
                pair, 'insert Person { name: "cy" } insert Knows { from: "cy", to: "ann" }'
            ),
        ),
        ({"node:Person", "edge:Knows"}, lambda: run(pair, 'delete Person where name = "cy"')),
    ]
    for mode in ("merge", "append", "overwrite"):
        record = {"type": "Firm", "data": {"code": mode}}
        writes.append(({"node:Firm"}, partial(pair.load, [record], mode=mode)))

    for written, write in writes:
        before, seen = pins(pair), list[dict[str, int]]()
        with arm_failpoints({Failpoint.RECOVERY_SIDECAR_WRITE: partial(keep_heads, pair, seen)}):
            write()
        assert seen == [before]
        assert pins(pair) == heads(pair) == {k: v + (k in written) for k, v in before.items()}


@pytest.mark.accepts("S-019", "S-033")
def test_the_first_touch_captures_the_pin_and_later_ones_keep_it(pair: og.Graph) -> None:
    staging = staging_over(pair)
    first = staging.touch(PERSON)
    add(pair, "person", name="cy")

    staging.push(PERSON, PendingMode.MERGE, people(dee=1))

    assert staging.touch(PERSON) is first
    assert staging.read_versions == {"node:Person": first.entry.version}
    assert first.entry.version == pins(pair)["node:Person"] - 1
    assert (first.entry.table_path, first.entry.table_branch) == (
        pair.snapshot().entries["node:Person"].table_path,
        None,
    )


@pytest.mark.accepts("S-033")
@pytest.mark.parametrize(
    ("first", "second", "becomes"),
    [
        (PendingMode.APPEND, PendingMode.APPEND, PendingMode.APPEND),
        (PendingMode.APPEND, PendingMode.MERGE, PendingMode.MERGE),
        (PendingMode.MERGE, PendingMode.APPEND, PendingMode.MERGE),
    ],
)
def test_an_append_among_merges_is_a_merge(
    pair: og.Graph, first: PendingMode, second: PendingMode, becomes: PendingMode
) -> None:
    staging = staging_over(pair)
    staging.push(PERSON, first, people(a=1))
    staging.push(PERSON, second, people(b=1))

    assert staging.pending["node:Person"].mode is becomes


def test_rows_of_another_shape_are_refused(pair: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="expected"):
        staging_over(pair).push(PERSON, PendingMode.MERGE, pa.table({"id": ["a"]}))


def test_an_empty_push_changes_nothing(pair: og.Graph) -> None:
    staging = staging_over(pair)

    staging.push(PERSON, PendingMode.MERGE, people())

    assert staging.list_pins() == {}


@pytest.mark.parametrize(
    ("act", "is_strict"),
    [
        (lambda s: s.push(PERSON, PendingMode.MERGE, people(a=1)), False),
        (lambda s: s.push(PERSON, PendingMode.MERGE, people(a=1), is_strict=True), True),
        (lambda s: s.delete(PERSON, pa.array(["ann"])), True),
    ],
)
def test_the_strictest_kind_of_a_table_counts(pair: og.Graph, act: object, is_strict: bool) -> None:
    staging = staging_over(pair)
    staging.push(PERSON, PendingMode.MERGE, people(z=1))
    act(staging)  # type: ignore[operator]

    assert staging.is_strict is is_strict


@pytest.mark.accepts("S-021")
def test_a_scan_lays_pending_rows_over_committed_ones(graph: og.Graph) -> None:
    run(graph, 'insert Person { name: "a", age: 1 } insert Person { name: "b", age: 2 }')
    staging = staging_over(graph)
    staging.push(PERSON, PendingMode.MERGE, people(b=1, c=1))
    one = Compare("age", CompareOp.EQ, pa.scalar(1, pa.int32()))
    two = Compare("age", CompareOp.EQ, pa.scalar(2, pa.int32()))

    assert sorted(staging.scan(PERSON, None)["id"].to_pylist()) == ["a", "b", "c"]
    assert sorted(staging.scan(PERSON, one)["id"].to_pylist()) == ["a", "b", "c"]
    assert staging.scan(PERSON, two, ["id"]).num_rows == 0
    assert staging.scan(PERSON, one, ["id", "age"]).column_names == ["id", "age"]


@pytest.mark.accepts("S-034", "S-035", "S-036")
def test_a_statement_that_fails_late_leaves_every_head_alone(pair: og.Graph) -> None:
    before = standing(pair)

    with pytest.raises(ConstraintError):
        run(
            pair,
            """
            insert Person { name: "cy" }
            update Person set { age: 3 } where name = "ann"
            insert Knows { from: "cy", to: "nobody" }
            """,
        )

    assert standing(pair) == before
    assert add(pair, "pair", a="cy", b="dee").affected_nodes == 2
    assert names(pair) == ["ann", "bob", "cy", "dee"]
    assert rows(pair, "Knows")[-1]["src"] == "cy"
