"""Conditions have three values, computed ones are exact, and both do not depend on how they run."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError
from omnigraph.index import table_view, thresholds

SCHEMA = """
node Pair { key: String @key  a: I64?  b: I64?  x: F64?  y: F32?  text: String?  day: Date? }
edge Next: Pair -> Pair
"""
VALUES = (True, False, None)
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """One pair for each two of 1, 0 and null."""
    graph = og.init(tmp_path_factory.mktemp("pairs") / "g", schema=SCHEMA, durability="process")
    numbers = {True: 1, False: 0, None: None}
    graph.load(
        [
            {"type": "Pair", "data": {"key": f"{a}/{b}", "a": numbers[a], "b": numbers[b]}}
            for a, b in product(VALUES, VALUES)
        ]
        + [{"type": "Pair", "data": {"key": "least", "a": LEAST, "b": -1, "x": 1e308, "y": 0.1}}]
        + [{"type": "Pair", "data": {"key": "most", "a": MOST, "text": "Äß!", "day": "9999-12-31"}}]
        + [{"edge": "Next", "from": "least", "to": "most"}],
        mode="overwrite",
    )
    return graph


def rows(graph: og.Graph, match: str, returns: str, **params: Any) -> list[dict[str, Any]]:
    declared = ", ".join(f"${name}: {kind}" for name, (kind, _) in params.items())
    text = f"query q({declared}) {{ match {{ $p: Pair {match} }} return {{ {returns} }} }}"
    return graph.query(text, params={name: value for name, (_, value) in params.items()}).rows()


def both(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def turn(a: bool | None) -> bool | None:
    return None if a is None else not a


FORMULAS = {
    "$p.a = 1 and $p.b = 1": both,
    "$p.a = 1 or $p.b = 1": lambda a, b: turn(both(turn(a), turn(b))),
    "not ($p.a = 1)": lambda a, _: turn(a),
    "not ($p.a = 1 and not ($p.b = 1))": lambda a, b: turn(both(a, turn(b))),
    "$p.a is null": lambda a, _: a is None,
    "$p.a is not null and $p.b = 1": lambda a, b: both(a is not None, b),
    "$p.a in [1, 7]": lambda a, _: a,
    "not ($p.a in [])": lambda a, _: None if a is None else True,
}


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("form", ["stored", "computed"])
def test_a_condition_has_its_truth_table_as_a_value_and_as_a_filter(
    graph: og.Graph, formula: str, form: str
) -> None:
    """The same table whether the store decides, or every row is computed."""
    written = formula
    if form == "computed":
        written = written.replace("$p.a ", "$p.a + 0 ").replace("$p.b ", "$p.b * 1 ")
    expected = {
        f"{a}/{b}": FORMULAS[formula](a, b)  # type: ignore[no-untyped-call]
        for a, b in product(VALUES, VALUES)
    }

    shown = rows(graph, "", f"$p.key as key, {written} as found")
    kept = rows(graph, f"({written})", "$p.key as key")

    assert {r["key"]: r["found"] for r in shown if r["key"] in expected} == expected
    wanted = {key for key, found in expected.items() if found}
    assert {row["key"] for row in kept} & expected.keys() == wanted


def test_a_null_list_or_text_is_unknown_also_when_turned_around(graph: og.Graph) -> None:
    null_list = ("[I64]?", None)
    assert rows(graph, "$p.a in $xs", "$p.key", xs=null_list) == []
    assert rows(graph, "not ($p.a in $xs)", "$p.key", xs=null_list) == []
    for word in ("contains", "starts_with", "ends_with"):
        assert rows(graph, f"not ($p.key {word} $t)", "$p.key", t=("String?", None)) == []


def test_whole_numbers_are_exact_or_an_error(graph: og.Graph) -> None:
    least = '$p.key = "least"'
    assert rows(graph, least, "$p.a + 1 as n, $p.a % $p.b as r, $p.b - 1 as m") == [
        {"n": LEAST + 1, "r": 0, "m": -2}
    ]
    for overflow in ("$p.a - 1", "-$p.a", "$p.a * 2", "abs($p.a)", "$p.a / 1 + 1"):
        if "/" in overflow:
            assert rows(graph, least, f"{overflow} as n") == [{"n": float(LEAST)}]
            continue
        with pytest.raises(BadRequestError, match="integer overflow"):
            rows(graph, least, f"{overflow} as n")
    # The branch that is not taken is not computed.
    guarded = "case when $p.a > 0 then $p.a - 1 else 0 end as n"
    assert rows(graph, least, guarded) == [{"n": 0}]


def test_what_is_not_finite_is_null(graph: og.Graph) -> None:
    shown = "$p.x * 10 as a, $p.x / 0 as b, 0 % 0 as c, round($p.x, 15) as d, $p.x + 1 as e"

    assert rows(graph, '$p.key = "least"', shown) == [
        {"a": None, "b": None, "c": None, "d": None, "e": 1e308}
    ]


def test_a_narrow_float_meets_a_literal_at_its_width_and_nothing_computed(graph: og.Graph) -> None:
    assert len(rows(graph, "$p.y = 0.1", "$p.key")) == 1
    assert len(rows(graph, "$p.y in [0.1, 3.0]", "$p.key")) == 1
    assert len(rows(graph, "$p.y = 0.1 or $p.y + 1 = 0.0", "$p.key")) == 1
    assert rows(graph, "$p.y + 0.0 = 0.1", "$p.key") == []


def test_letters_map_one_to_one_and_positions_count_from_zero(graph: og.Graph) -> None:
    shown = """lower($p.text) as l, length($p.text) as n, substring($p.text, 1, 1) as s,
               substring($p.text, -5, 2) as f, substring($p.text, 9) as e,
               substring($p.text, 1, -1) as m"""

    assert rows(graph, '$p.key = "most"', shown) == [
        {"l": "äß!", "n": 3, "s": "ß", "f": "Äß", "e": "", "m": ""}
    ]


def test_a_date_stays_in_its_years(graph: og.Graph) -> None:
    most = '$p.key = "most"'
    assert rows(graph, most, "$p.day - days(1) as d, year($p.day) as y") == [
        {"d": "9999-12-30", "y": 9999}
    ]
    with pytest.raises(BadRequestError, match="date out of range"):
        rows(graph, most, "$p.day + days(1) as d")


def test_conditions_over_two_variables_join_rows(graph: og.Graph) -> None:
    match = "$p next $q  $q.a > 0 and ($p.b = 1 or $p.b + $q.a > 7)"

    assert rows(graph, match, "$p.key as p, $q.key as q") == [{"p": "least", "q": "most"}]
    assert rows(graph, "$p next $q  not ($p.a < $q.a)", "$p.key as p") == []


@pytest.mark.slow
def test_a_long_condition_is_not_a_deep_one(graph: og.Graph) -> None:
    """Thousands of parts are one node of the tree, and one pass over the rows."""
    many = " or ".join(f"$p.a = {n}" for n in range(2, 5_000))
    long_list = ", ".join(map(str, range(20_000)))

    assert rows(graph, many, "$p.key") == []
    assert len(rows(graph, f"$p.a in [{long_list}]", "$p.key")) == 6
    with pytest.raises(og.errors.ParseError, match="operands in a row"):
        rows(graph, "1 = " + "+".join(["1"] * 3_000), "$p.key")
    with pytest.raises(og.errors.ParseError, match="nested too deeply"):
        rows(graph, "1 = " + "- " * 5_000 + "1", "$p.key")


@pytest.mark.parametrize(
    ("condition", "found", "looked_up"),
    [
        ("$p.k = 3 or $p.k = 5", [3, 5], 2),
        ("$p.k in [7, 3, 7, 99]", [3, 7], 4),
        ('$p.k = 1 or $p.name = "n2" or $p.name in ["n4"]', [1, 2, 4], 3),
        ("$p.k = 3 or $p.k > 17", [3, 18, 19], None),
        ("not ($p.k = 3 or $p.k = 5)", [n for n in range(20) if n not in (3, 5)], None),
        (f"$p.k in [{', '.join(map(str, range(100)))}]", list(range(20)), None),
    ],
)
def test_a_few_values_are_looked_up_and_not_searched_for(
    tmp_path: Path, condition: str, found: list[int], looked_up: int | None
) -> None:
    """What they cost does not depend on how many rows there are."""
    schema = "node N { k: I64 @key  name: String }"
    with og.init(tmp_path / "g.omni", schema=schema, durability="process") as graph:
        rows = [{"type": "N", "data": {"k": n, "name": f"n{n}"}} for n in range(20)]
        graph.load(rows, mode="append")
        text = (
            f"query q() {{ match {{ $p: N  {condition} }} return {{ $p.k as k }} order {{ k }} }}"
        )

        first, again = (graph.query(text).rows() for _ in range(2))
        shown = str(graph.explain(text, analyze=True))

    assert [row["k"] for row in first] == [row["k"] for row in again] == found
    assert ("looked up" in shown) is (looked_up is not None)
    if looked_up is not None:
        assert f"looked up {looked_up} values in node:N" in shown


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("$p.k = 3 or $p.k = 5", [3, 5]),
        ("$p.k in [7, 3, 7, 99]", [3, 7]),
        ("$p.k = 3 or $p.half = 1 or $p.half = 1.5", [2, 3]),
        ("$p.half in [2, 4.5] or $p.k = -1", [4, 9]),
    ],
)
def test_a_few_numbers_are_compared_one_by_one_before_anything_is_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str, found: list[int]
) -> None:
    """Two look-ups in a column at hand are two comparisons, not a set and a pass with it."""
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(thresholds, "ROWS_DECODED_PER_LOOKUP", 1)
    schema = "node N { k: I64 @key  half: F64 }"
    with og.init(tmp_path / "g.omni", schema=schema, durability="process") as graph:
        rows = [{"type": "N", "data": {"k": n, "half": n / 2}} for n in range(10)]
        graph.load(rows, mode="append")
        text = (
            f"query q() {{ match {{ $p: N  {condition} }} return {{ $p.k as k }} order {{ k }} }}"
        )
        asked = [graph.query(text).rows() for _ in range(3)]
        monkeypatch.setattr(table_view, "to_mask", None)
        asked.append(graph.query(text).rows())

    assert [[row["k"] for row in each] for each in asked] == [found] * 4


def test_a_column_that_has_to_be_among_many_values_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage was asked for each of them, by a text of megabytes."""
    monkeypatch.setattr(thresholds, "SMALL_TABLE_ROWS", 0)
    monkeypatch.setattr(thresholds, "MANY_VALUES", 100)
    with og.init(tmp_path / "g.omni", schema="node N { k: I64 @key  n: I64 }") as graph:
        graph.load([{"type": "N", "data": {"k": n, "n": n}} for n in range(10)], mode="append")
        text = "query q($m: [I64]) { match { $p: N  $p.k in $m } return { count($p) as n } }"

        many = str(graph.explain(text, params={"m": [1] * 100}, analyze=True))
        text = text.replace("$p.k", "$p.n")
        few = str(graph.explain(text, params={"m": [1] * 99}, analyze=True))

    assert "pushed the filter on n" in few
    assert "decoded k of node:N" in many
    assert "pushed" not in many


@pytest.mark.parametrize(
    ("text", "upper", "lower"),
    [
        ("Straße", "STRAßE", "straße"),
        ("ẞ ß", "ẞ ß", "ß ß"),
        ("ß", "ß", "ß"),
        ("ﬁx ŉ", "ﬁX ŉ", "ﬁx ŉ"),
        ("ᾳ ᾼ", "ᾼ ᾼ", "ᾳ ᾳ"),
        ("İı", "İI", "iı"),
    ],
)
def test_letters_change_case_one_to_one(graph: og.Graph, text: str, upper: str, lower: str) -> None:
    """By the simple mapping of Unicode: a letter without one stays, and no text becomes longer."""
    found = rows(
        graph, '{ key: "most" }', "upper($t) as u, lower($t) as l, $p.key", t=("String", text)
    )

    assert found == [{"u": upper, "l": lower, "p.key": "most"}]
