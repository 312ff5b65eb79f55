"""Mutations against the reference evaluator: random statements over random graphs."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.compiler import bind_params, compile_query, require_mutation
from omnigraph.errors import BadRequestError
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.testing.changed import Changed, change
from omnigraph.testing.evaluator import GraphData, read_graph
from omnigraph.testing.inside import inside
from tests.depth import depth
from tests.executor.mutation_strategies import draw_mutation, drop_repeated, make_writable
from tests.executor.query_strategies import Draw, Query, draw_records, draw_schema
from tests.executor.test_differential import as_texts, with_ticks

pytestmark = pytest.mark.slow

MUTATIONS_PER_GRAPH = depth(10, 25)
NEW_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


def read(graph: og.Graph) -> GraphData:
    return read_graph(graph.snapshot(), graph.catalog, inside(graph).store.tables)


def list_rows(data: GraphData) -> list[tuple[str, dict[str, Any]]]:
    nodes = [(name, dict(row)) for name, rows in data.nodes.items() for row in rows.values()]
    return nodes + [(name, dict(row)) for name, rows in data.edges.items() for row in rows]


def as_bag(rows: list[dict[str, Any]], known: str) -> Counter[str]:
    """Rows without order; ids that were not there before are as good as one another."""

    def hide(found: re.Match[str]) -> str:
        return found[0] if found[0] in known else "new"

    return Counter(NEW_ID.sub(hide, text) for text in as_texts(rows))


def as_content(data: GraphData, known: str) -> Counter[str]:
    rows = [dict(sorted(row.items())) | {"#kind": kind} for kind, row in list_rows(data)]
    return as_bag(rows, known)


def expect(query: Query, before: GraphData) -> Changed | None:
    """What the reference says, or None where it refuses."""
    ir = require_mutation(compile_query(query.text, before.catalog))
    params = bind_params(ir.params, query.params) | {NOW_PARAMETER: 0}
    try:
        return change(ir, params, before)
    except BadRequestError:
        return None


def run_both(graph: og.Graph, query: Query) -> bool:
    """Mutate the graph and the reference; tell whether it was accepted."""
    before = read(graph)
    known = str(list_rows(before))
    commits = len(graph.commits())
    expected = expect(query, before)
    if expected is None:
        with pytest.raises(BadRequestError):
            graph.mutate(query.text, params=query.params)
        assert as_content(read(graph), known) == as_content(before, known)
        assert len(graph.commits()) == commits
        return False

    result = graph.mutate(query.text, params=query.params)

    counts = (expected.affected_nodes, expected.affected_edges)
    assert (result.affected_nodes, result.affected_edges) == counts
    assert as_content(read(graph), known) == as_content(expected.data, known)
    assert len(graph.commits()) == commits + bool(sum(counts))
    if expected.returned is None:
        assert result.returned is None
    else:
        assert result.returned is not None
        found = with_ticks(result.returned.table)
        assert as_bag(found, known) == as_bag(expected.returned, known)
    return True


SCHEMA = """
node Ann { key: String @key  small: I32?  other: I32?  text: String? }
node Bob { key: String @key  small: I32? }
node Log { text: String?  small: I32? }
edge Likes: Ann -> Bob { small: I32?  text: String? }
edge Knows: Ann -> Ann { small: I32? }
edge Once: Ann -> Bob { small: I32?  text: String?  @key(src, dst) }
"""
RECORDS: list[dict[str, Any]] = [
    *({"type": "Ann", "data": {"key": f"a{n}", "small": n, "text": f"t{n}"}} for n in range(4)),
    *({"type": "Bob", "data": {"key": f"b{n}", "small": n}} for n in range(3)),
    {"type": "Log", "data": {"text": "one", "small": 1}},
    # Two beside each other, one alone, and one to the same end from elsewhere.
    *(
        {"edge": "Likes", "from": a, "to": b, "data": {"small": n, "text": "l"}}
        for n, (a, b) in enumerate([("a0", "b0"), ("a0", "b0"), ("a0", "b1"), ("a1", "b0")])
    ),
    *({"edge": "Knows", "from": a, "to": b} for a, b in [("a0", "a1"), ("a1", "a2"), ("a2", "a2")]),
    {"edge": "Once", "from": "a0", "to": "b0", "data": {"small": 5, "text": "kept"}},
]
ROWS = "$rows: [{ key: String, small: I32?, text: String? }]"
DIRECTED = {
    "kept, null and replaced": """
        upsert Ann { key: "a0", small: 9 } upsert Ann { key: "a1", text: null }
        insert Ann { key: "a2", other: 3 } upsert Ann { key: "new", small: 1 }""",
    "the last of two writes": """
        upsert Ann { key: "a0", small: 1 } upsert Ann { key: "a0", other: 2 }
        insert Ann { key: "n", small: 1, other: 1 } insert Ann { key: "n", small: 2 } as $x
        return { $x { * } as x }""",
    "at the same time": "update Ann set { small: other, other: small } where small >= 0",
    "what earlier statements wrote": """
        update Ann set { small: coalesce(small, 0) + 10 } where key != "a3"
        update Ann set { text: "big" } where small > 9 as $x
        return { $x.key, $x.small, $x.text }""",
    "as it was matched": """
        match { $a: Ann  $a.small >= 0 } update $a set { small: $a.small + 1, other: $a.small }
        update $a set { text: $a.text + "!" } return { $a.key, $a.small, $a.other, $a.text }""",
    "each once": """
        match { $a likes $b } update $a set { text: "seen" } update $b set { small: 7 }
        return { $a.key, $b.small }""",
    "two values for one": "match { $a likes $b } update $a set { text: $b.key }",
    "two values by upsert": """
        match { $a likes $b } upsert Ann { key: $a.key, text: $b.key }""",
    "one value from many rows": """
        match { $a likes $b } upsert Bob { key: $b.key, small: 4 } as $x
        return { $a.key, $x.key, $x.small }""",
    "a log for each row": """
        match { $a likes $b } insert Log { text: $a.key + $b.key } as $x
        return { $a.key, $x.text }""",
    "null is skipped": """
        match { $a: Ann  optional { $a likes $b } } update $b set { small: 8 }
        return { $a.key, $b.small }""",
    "null is no end": """
        match { $a: Ann  optional { $a likes $b } } insert Likes { from: $a, to: $b }""",
    "beside each other": """
        upsert Likes { from: "a0", to: "b0", small: 70 } upsert Likes { from: "a3", to: "b2" }
        upsert Once { from: "a0", to: "b0", small: 6 }
        insert Once { from: "a1", to: "b0", small: 1 }
        insert Likes { from: "a1", to: "b0" } as $x return { $x.small }""",
    "a keyed edge again": 'insert Once { from: "a0", to: "b0", text: "new" }',
    "edges of a match": """
        match { $a $l:likes $b  $b.key = "b0" } update $l set { small: $l.small * 2 }
        upsert Once { from: $a, to: $b, text: "again" } return { $a.key, $l.small }""",
    "by its ends": """
        update Likes set { text: "x" + from, small: small + 1 } where from = "a0" or to = "b2" as $x
        return { $x.text, $x.small }""",
    "one after the other": """
        for $r in $rows { upsert Bob { key: $r.key, small: $r.small } as $x
        update Bob set { small: small + 100 } where key = $r.key and small is not null }
        return { $r.key, $x.small }""",
    "rows with gaps": """
        for $r in $rows { insert Ann { key: $r.key, small: $r.small, text: $r.text } }""",
    "an edge is deleted": """
        delete Likes where from = "a1" and to = "b0" as $x return { $x { * } as x }""",
    "cascades are counted once": """
        match { $a knows $b  $b.key = "a2" } delete $a delete $b return { $a.key, $b.key }""",
    "all that is left": "delete Ann where key is not null delete Likes where small is null",
    "nothing": 'match { $a: Ann { key: "none" } } delete $a return { $a.key }',
}
"""One for each rule of statements, in an order that leaves something for the next."""
GIVEN = {
    "rows": [
        {"key": "b1", "small": 1},
        {"key": "b9", "small": None, "text": "t"},
        {"key": "b1", "small": 2, "text": "u"},
    ]
}


def test_each_rule_of_statements_is_that_of_the_reference(tmp_path: Path) -> None:
    """What random statements meet only now and then."""
    refused = set()
    with og.init(tmp_path / "g.omni", schema=SCHEMA, durability="process") as graph:
        graph.load(RECORDS, mode="overwrite")
        for name, body in DIRECTED.items():
            declared, params = (ROWS, GIVEN) if "$rows" in body else ("", {})
            if not run_both(graph, Query(f"query q({declared}) {{ {body} }}", params)):
                refused.add(name)

    assert refused == {"two values for one", "two values by upsert", "null is no end"}


@settings(
    max_examples=depth(3, 200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # A case is small as it is drawn; shrinking would build a graph for every attempt.
    phases=[Phase.generate],
)
@given(data=st.data())
def test_mutations_do_what_the_reference_does(data: st.DataObject) -> None:
    """Rows, counts, commits and what comes back, statement by statement; or both refuse."""
    draw = Draw(data)
    schema = make_writable(draw_schema(draw))
    records = drop_repeated(draw_records(draw, schema))
    note(f"{schema.text()}\n{json.dumps(records)}")
    with (
        TemporaryDirectory() as folder,
        og.init(Path(folder) / "g.omni", schema=schema.text(), durability="process") as graph,
    ):
        graph.load(records, mode="overwrite")
        for _ in range(MUTATIONS_PER_GRAPH):
            query = draw_mutation(draw, schema)
            note(f"{query.text}\n{query.params}")
            run_both(graph, query)
