"""The limit on rows: it is about what is held, it can be set, and its advice fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from omnigraph.errors import BadRequestError, ParseError, ResourceLimitError
from omnigraph.executor import functions, joins, steps
from omnigraph.executor.rows import LOOKED_AT_VARIABLE, ROWS_VARIABLE
from omnigraph.graph import Graph, init
from tests.executor.running import run_query

NODES = 12
LIMIT = 20


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Every node leads to every node: 12^k matches of k variables."""
    path: Path = tmp_path_factory.mktemp("full") / "g.omni"
    schema = "node N { k: I32 @key  half: I32 }\nedge To: N -> N { km: I32? }"
    with init(path, schema=schema, durability="process") as graph:
        nodes: list[dict[str, Any]] = [
            {"type": "N", "data": {"k": n, "half": n // 2}} for n in range(NODES)
        ]
        ends = [(a, b) for a in range(NODES) for b in range(NODES)]
        edges = [{"edge": "To", "from": str(a), "to": str(b), "data": {"km": 1}} for a, b in ends]
        graph.load([*nodes, *edges], mode="overwrite")
        yield graph


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(ROWS_VARIABLE, str(LIMIT))
    with patch.object(steps, "BLOCK_ENTRIES", 10), patch.object(joins, "PAIRS_PER_BLOCK", 10):
        yield


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match { $a to $b  $b to $c  $c to $a } return { count($a) as n }", [NODES**3]),
        (
            "match { $a to $b  $b to $c  $c to $d  $d to $a } return { $a.k as k, count($b) as n }",
            [NODES**3] * NODES,
        ),
        (
            """match { $a to $b  not { $b to $c  $c to $a  $c.half > $a.k } }
               return { count($a) as n }""",
            [NODES * len([a for a in range(NODES) if a >= (NODES - 1) // 2])],
        ),
        ("match { $a: N  $b: N  $a.k < $b.k } return { count($a) as n }", [NODES * 11 // 2]),
        ("match { $a: N  $b: N  $a.half = $b.half } return { count($a) as n }", [NODES * 2]),
        (
            "match { $a to $b  $b to $c } return { $c.k as n } order { $a.k, $b.k, $c.k } limit 3",
            [0, 1, 2],
        ),
        ("match { $a to $b  $b to $c  $c to $a } return { $a.half as n } limit 2", [0, 0]),
        ("top 3 by $b.k, $a.k { $a to $b } match { $a: N } return { $a.k as n }", [0, 1, 2]),
    ],
)
def test_what_is_not_held_is_not_limited(full: Graph, text: str, expected: list[int]) -> None:
    """Counts, filters, and orders with a limit go over many more rows than may be held."""
    found = run_query(full, f"query q() {{ {text} }}").rows()

    assert [row["n"] for row in found] == expected


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("match { $a to $b } return { $a.k, $b.k }", "rows .* add a filter or a limit"),
        ("match { $a to $b } return { $a.k } order { $a.k }", "rows .* add a filter or a limit"),
        ("match { $a to $b } return { $a.k, $b.k, count($b) as n }", "groups .* group by fewer"),
        ("match { $a: N  $b: N } return { $a.k, $b.k }", "relate them by a traversal"),
        ("match { $a to $b } return { collect($b.k) as l }", "rows .* add a filter"),
        ("match { $a to $b } return { $a, collect($b { * } order $b.k) as l }", "rows .* add a"),
        ("match { $a to $b } return distinct { $a.k + $b.k as k }", "groups .* group by fewer"),
        (
            "match { $a to $b } return { $a.k - $b.k as d, count(distinct $b) as n }",
            "groups .* group by",
        ),
        ("match { $a: N  optional { $a to $b } } return { $a.k, $b.k }", "rows .* add a filter"),
        ("match { $a: N  either { $a to $b } or { $b to $a } } return { $a.k, $b.k }", "rows .*"),
        ("match { $a shortest to $b } return { $a.k, $b.k }", "pairs of nodes .* fewer hops"),
        ("match { $a $t:shortest to $b } return { hops($t) as n }", "on paths .* fewer hops"),
        ("match { $a all shortest to{1,9} $b } return { $a.k }", "on paths .* fewer hops"),
        ("match { $a shortest to by km $b } return { count($b) as n }", "on paths .* fewer hops"),
        (
            "match { $a: N { k: 0 } $a $t:shortest to $b } return { nodes($t) as n }",
            r"on paths to list .* hops\(\$t\)",
        ),
        ("match { $a to{1,9} $b } return { count($b) as n }", "pairs of nodes .* fewer hops"),
        ("match { $a <to>{2,9} $b } return { $b.k } limit 1", "pairs of nodes .* fewer hops"),
    ],
)
def test_what_is_held_is_limited_and_the_advice_fits(full: Graph, text: str, advice: str) -> None:
    with pytest.raises(ResourceLimitError, match=advice) as caught:
        run_query(full, f"query q() {{ {text} }}")

    assert caught.value.limit == LIMIT
    assert ROWS_VARIABLE in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "match { $a: N  $b: N  $c: N  $a.k + $b.k = $c.k } return { count($a) as n }",
        "match { $a: N  $b: N  $a.k + $b.k > 99 } return { $a.k } limit 1",
        "match { $a to $b  $b to $c  $c to $d  $a.k + $d.k > 99 } return { count($a) as n }",
        "match { $a: N  not { $b: N  $a.k + $b.k > 99 } } return { count($a) as n }",
        "match { $a: N  optional { $a to $b  $b to $c  $a.k + $c.k > 99 } } return { $a.k }",
        "match { $a: N { k: 1 }  $a to{1,2} $b } return { $b.k }",
        "match { $a: N { k: 1 }  $a shortest to $b } return { $b.k }",
        "match { $a: N { k: 1 }  $a $t:shortest to $b } return { $b.k }",
        "match { $a: N { k: 1 }  $a all shortest to $b } return { $b.k }",
        "match { $a: N { k: 1 }  $a shortest to by km $b } return { $b.k }",
    ],
)
def test_a_query_that_tries_too_many_rows_is_ended(
    full: Graph, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """However few it holds: each of these finds next to nothing among very many."""
    query = f"query q() {{ {text} }}"
    run_query(full, query)
    monkeypatch.setenv(LOOKED_AT_VARIABLE, "100")

    with pytest.raises(ResourceLimitError, match=r"rows that a query looks at .* equal values"):
        run_query(full, query)


@pytest.mark.parametrize(
    ("variables", "test"),
    [
        ("$a: N", "$a.k > 99 and $a.half < {n}.0"),
        ("$a: N", "$a.k + {n} = 99"),
        ("$a: N  $b: N", "$a.k = 99 and $b.k > {n}"),
        ("$a to $b", "$a.k + $b.k = {n}99"),
    ],
)
def test_every_test_of_a_wide_condition_is_counted(
    full: Graph, monkeypatch: pytest.MonkeyPatch, variables: str, test: str
) -> None:
    """Few rows and very many tests on each are as much work as the other way round."""
    condition = " or ".join(test.format(n=n) for n in range(500))
    monkeypatch.setenv(LOOKED_AT_VARIABLE, "1000")
    run_query(
        full, f"query q() {{ match {{ {variables}  {test.format(n=1)} }} return {{ $a.k }} }}"
    )

    with pytest.raises(ResourceLimitError, match="the number of rows that a query looks at"):
        run_query(full, f"query q() {{ match {{ {variables}  {condition} }} return {{ $a.k }} }}")


def test_a_product_that_is_too_large_is_refused_before_it_is_begun(
    full: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "match { $a: N  $b: N  $a.k + $b.k > 99 } return { count($a) as n }"
    monkeypatch.setenv(LOOKED_AT_VARIABLE, str(NODES**2 - 1))

    with pytest.raises(ResourceLimitError) as caught:
        run_query(full, f"query q() {{ {text} }}")

    # Blocks are of ten pairs here, and the first of them is not made.
    assert caught.value.actual == NODES**2


def test_a_limit_that_is_not_a_number_is_refused(
    full: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROWS_VARIABLE, "many")

    with pytest.raises(BadRequestError, match="is 'many', expected a positive number"):
        run_query(full, "query q() { match { $a: N } return { $a.k } }")


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (" or ".join(f"$a.k = {n}" for n in range(500)), NODES),
        (" and ".join(f"$a.k != {n}" for n in range(6, 500)), 6),
        (f"$a.k in [{', '.join(map(str, range(2_000)))}]", NODES),
        (f"not ($a.half in [{', '.join(map(str, range(3, 2_000)))}])", 6),
        ("$a.k in $many", NODES),
    ],
    ids=["or", "and", "in", "not in", "a parameter"],
)
def test_a_wide_condition_is_answered(full: Graph, condition: str, found: int) -> None:
    """Thousands of alternatives hold no more rows than one."""
    text = f"query q($many: [I32]) {{ match {{ $a: N  {condition} }} return {{ $a.k }} }}"

    assert len(full.query(text, params={"many": list(range(20_000))}).rows()) == found


@pytest.mark.parametrize("word", [" + ", " - ", " * "])
def test_a_sum_of_too_many_parts_is_refused(full: Graph, word: str) -> None:
    text = word.join(["$a.k"] * 2_000)

    with pytest.raises(ParseError, match="more than 1000 operands"):
        full.query(f"query q() {{ match {{ $a: N }} return {{ {text} as n }} }}")


def test_texts_that_grow_beyond_any_column_are_refused(
    full: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand joined one by one took the square of their length."""
    text = " + ".join(['"ab"'] * 999)
    query = f"query q() {{ match {{ $a: N }} return {{ length({text}) as n }} limit 1 }}"
    assert run_query(full, query).rows() == [{"n": 2 * 999}]
    monkeypatch.setattr(functions, "TEXT_BYTES_MAX", 999)

    with pytest.raises(ResourceLimitError, match=r"bytes of texts to join .* fewer"):
        run_query(full, query)


DIAMONDS = 50


@pytest.fixture(scope="module")
def diamonds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """One diamond after the other: 2^50 shortest paths from end to end."""
    path: Path = tmp_path_factory.mktemp("diamonds") / "g.omni"
    with init(
        path, schema="node N { k: I32 @key }\nedge To: N -> N", durability="process"
    ) as graph:
        steps = [(0, 1), (0, 2), (1, 3), (2, 3)]
        ends = [(3 * n + a, 3 * n + b) for n in range(DIAMONDS) for a, b in steps]
        nodes: list[dict[str, Any]] = [
            {"type": "N", "data": {"k": n}} for n in range(3 * DIAMONDS + 1)
        ]
        edges = [{"edge": "To", "from": str(a), "to": str(b)} for a, b in ends]
        graph.load([*nodes, *edges], mode="overwrite")
        yield graph


@pytest.mark.parametrize(
    ("bounds", "count"), [("{1,}", 2**DIAMONDS), ("{1,99}", None), ("{1,8}", None)]
)
def test_all_shortest_paths_are_counted_before_any_is_made(
    diamonds: Graph, bounds: str, count: int | None
) -> None:
    """What would be far too many is refused; what is out of reach is no row."""
    end = 3 * DIAMONDS
    text = f"$a: N {{ k: 0 }} $b: N {{ k: {end} }} $a $t:all shortest to{bounds} $b"
    query = f"query q() {{ match {{ {text} }} return {{ nodes($t) as way }} }}"
    if count is None:
        assert run_query(diamonds, query).rows() == []
        return

    with pytest.raises(ResourceLimitError, match="on paths to hold") as caught:
        run_query(diamonds, query)

    assert caught.value.limit == LIMIT
    assert caught.value.actual > count


def test_one_shortest_path_through_very_many_is_found(
    diamonds: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROWS_VARIABLE, str(3 * DIAMONDS))
    text = f"$a: N {{ k: 0 }} $b: N {{ k: {3 * DIAMONDS} }} $a $t:shortest to $b"
    query = f"query q() {{ match {{ {text} }} return {{ hops($t) as n, nodes($t) as way }} }}"

    (row,) = run_query(diamonds, query).rows()

    assert row["n"] == 2 * DIAMONDS
    # Ids are texts: of 10 and 11 the first is less, of 9 and 10 the second.
    lesser = [min(str(3 * n + 1), str(3 * n + 2)) for n in range(DIAMONDS)]
    assert row["way"][1::2] == lesser
