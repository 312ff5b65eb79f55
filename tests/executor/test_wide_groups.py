"""Groups that are computed row by row agree with plain Python over the same rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, ParamsError

SCHEMA = """
node Person { name: String @key  team: String?  age: I64?  born: Date?  tags: [String]? }
edge Knows: Person -> Person { weight: F64? }
"""
PEOPLE: list[dict[str, Any]] = [
    {
        "name": f"p{n:02d}",
        "team": None if n % 5 == 0 else f"t{n % 3}",
        "age": None if n % 7 == 0 else n % 4,
        "born": None if n % 6 == 0 else f"20{n:02d}-01-0{n % 9 + 1}",
        "tags": None if n % 4 == 0 else [f"x{n % 2}"] * (n % 3),
    }
    for n in range(30)
]
EDGES = [(a, b) for a in range(30) for b in range(30) if (a * 7 + b * 3) % 11 == 0]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("groups") / "g", schema=SCHEMA, durability="process")
    records: list[dict[str, Any]] = [{"type": "Person", "data": each} for each in PEOPLE]
    records += [
        {"edge": "Knows", "from": f"p{a:02d}", "to": f"p{b:02d}", "data": {"weight": a / 4}}
        for a, b in EDGES
    ]
    graph.load(records, mode="overwrite")
    return graph


def ask(graph: og.Graph, body: str, params: str = "", **given: Any) -> list[dict[str, Any]]:
    return graph.query(f"query q({params}) {{ {body} }}", None, given or None).rows()


def null_first(value: Any) -> tuple[bool, Any]:
    return value is not None, value


def test_lists_counts_and_expressions_of_groups_are_those_of_python(graph: og.Graph) -> None:
    """Of pairs of people, by the team of the first: every edge is one row."""
    found = ask(
        graph,
        """match { $a: Person  $a knows $b }
        return {
            $a.team,
            count(distinct $b) as people,
            count(distinct $b.age) as ages,
            collect($b.name order $b.age desc) as names,
            collect(distinct $b.age) as distinct_ages,
            sum($b.age * 2) / count($b) as mean
        }
        having { people > 1  $a.team is null or mean >= 0.0 }
        order { people desc, $a.team }""",
    )

    groups: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for a, b in EDGES:
        groups[PEOPLE[a]["team"]].append((a, b))
    expected = []
    for team, pairs in groups.items():
        pairs.sort()
        ages = [PEOPLE[b]["age"] for _, b in pairs]
        known = [age for age in ages if age is not None]
        by_age = sorted(pairs, key=lambda pair: null_first(PEOPLE[pair[1]]["age"]), reverse=True)
        expected.append(
            {
                "a.team": team,
                "people": len({b for _, b in pairs}),
                "ages": len(set(known)),
                "names": [PEOPLE[b]["name"] for _, b in by_age],
                "distinct_ages": list(dict.fromkeys(known)),
                "mean": 2 * sum(known) / len(pairs),
            }
        )
    expected.sort(key=lambda row: (-row["people"], null_first(row["a.team"])))
    assert found == expected


def test_a_variable_that_is_only_counted_counts_as_often_as_it_matches(graph: og.Graph) -> None:
    found = ask(
        graph,
        """match { $a: Person  $a knows $_ }
        return { case when $a.age is null then "none" else "some" end as kind,
                 count($a) as rows, count(distinct $a) as people, collect($a.name) as names }
        order { kind }""",
    )

    rows: dict[str, list[str]] = defaultdict(list)
    for a, _ in EDGES:
        rows["none" if PEOPLE[a]["age"] is None else "some"].append(PEOPLE[a]["name"])
    assert found == [
        {
            "kind": kind,
            "rows": len(names),
            "people": len(set(names)),
            "names": sorted(names),
        }
        for kind, names in sorted(rows.items())
    ]


def test_distinct_rows_tell_lists_and_objects_apart_by_what_they_hold(graph: og.Graph) -> None:
    found = ask(graph, "match { $a: Person } return distinct { $a.tags, $a { age } as o }")

    expected = {(tuple(p["tags"]) if p["tags"] is not None else None, p["age"]) for p in PEOPLE}
    assert len(found) == len(expected)
    assert {
        (None if row["a.tags"] is None else tuple(row["a.tags"]), row["o"]["age"]) for row in found
    } == expected


def test_pages_of_an_order_are_the_whole_of_it(graph: og.Graph) -> None:
    body = "match { $a: Person } return { $a.name } order { $a.age desc, length($a.name) }"
    whole = ask(graph, body)
    params = "$n: I32 = 7, $skip: I64 = 0"

    pages = [ask(graph, f"{body} limit $n offset $skip", params, skip=at) for at in range(0, 42, 7)]

    assert [row for page in pages for row in page] == whole
    assert pages[-1] == []
    with pytest.raises(BadRequestError, match="limit must not be negative"):
        ask(graph, f"{body} limit $n", "$n: I32", n=-1)


def test_nothing_is_one_row_of_empty_aggregates(graph: og.Graph) -> None:
    body = 'match { $a: Person { name: "nobody" } } return { '
    row = "count(distinct $a) as n, collect($a.name) as l, max($a.born) as m, count($a) + 1 as k }"

    assert ask(graph, body + row) == [{"n": 0, "l": [], "m": None, "k": 1}]
    assert ask(graph, body + row + " having { n > 0 }") == []
    assert ask(graph, body + "$a.team, " + row) == []


def test_a_default_stands_for_what_is_left_out_and_not_for_null(graph: og.Graph) -> None:
    body = "match { $a: Person  $a.age in $ages } return { count($a) as n }"
    params = "$ages: [I64] = [1, 2]"

    assert ask(graph, body, params) == ask(graph, body, params, ages=[1, 2])
    assert ask(graph, body, params, ages=[]) == [{"n": 0}]
    with pytest.raises(ParamsError, match="null is not accepted"):
        ask(graph, body, params, ages=None)


@pytest.fixture(scope="module")
def namesakes(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A person and a robot of one name, and a person of another."""
    graph = og.init(
        tmp_path_factory.mktemp("namesakes") / "g",
        schema="interface Named { name: String @key }\n"
        "node Person implements Named {}\nnode Robot implements Named {}",
        durability="process",
    )
    names = [("Robot", "ada"), ("Person", "ada"), ("Person", "bo")]
    graph.load([{"type": kind, "data": {"name": name}} for kind, name in names], mode="overwrite")
    return graph


@pytest.mark.parametrize(
    "returned",
    [
        "return { $x, collect($x) as found }",
        "return { $x, count($x) as n } having { n = 1 }",
        "return distinct { $x }",
        "return distinct { $x, count($x) as n }",
        "return distinct { $x, collect(distinct $x) as found }",
    ],
)
def test_entities_of_two_types_with_one_id_are_two_groups(
    namesakes: og.Graph, returned: str
) -> None:
    """Whether groups are added up, collected or finished, an entity is its type and its id."""
    found = ask(namesakes, f"match {{ $x: Named }} {returned} order {{ $x desc }}")

    assert [row["x"] for row in found] == ["bo", "ada", "ada"]


def test_a_list_of_distinct_entities_has_both_of_one_id(namesakes: og.Graph) -> None:
    (row,) = ask(namesakes, "match { $x: Named } return { collect(distinct $x) as found }")

    assert row["found"] == ["ada", "ada", "bo"]


@pytest.mark.parametrize(
    "returned",
    [
        "return { $x, min(type($x)) as kind, count($x) as n } having { n > 0 }",
        "return { $x, min(type($x)) as kind, count($x) as n, collect($x) as all }",
        "return distinct { $x, count($x) as n, min(type($x)) as kind }",
    ],
)
def test_groups_of_equal_ids_are_ordered_by_their_types(namesakes: og.Graph, returned: str) -> None:
    found = ask(namesakes, f"match {{ $x: Named }} {returned} order {{ n }}")

    assert [row["kind"] for row in found] == ["Person", "Robot", "Person"]


def test_the_type_of_a_variable_orders_even_where_it_is_one(namesakes: og.Graph) -> None:
    """It is a value of the row, though every row has the same; ties go on by id."""
    for asked in (
        "match { $x: Person } return { $x } order { type($x) desc } limit 1",
        "match { $x: Person } return distinct { $x, type($x) as t } order { type($x) } limit 1",
        "top 1 by type($x) { $x: Person } match { $x: Person } return { $x }",
    ):
        assert [row["x"] for row in ask(namesakes, asked)] == ["ada"]
