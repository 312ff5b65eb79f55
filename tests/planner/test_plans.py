"""Plans: where a match starts, what it binds, what it only counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import build_catalog, compile_query, parse_schema
from omnigraph.compiler import require_read
from omnigraph.planner import Plan, Statistics, format_plan, make_plan
from omnigraph.planner.choose_root import choose_trees
from omnigraph.planner.pattern import Hop, Pattern

CATALOG = build_catalog(
    parse_schema(
        """
        node Person { name: String @key  age: I32? }
        node Town { name: String @key  size: I64? }
        edge Knows: Person -> Person { weight: I32? }
        edge LivesIn: Person -> Town
        """
    )
)
COUNTS = Statistics(
    {
        "node:Person": 100_000,
        "node:Town": 50,
        "edge:Knows": 1_000_000,
        "edge:LivesIn": 100_000,
    }
)


def plan(text: str) -> Plan:
    ir = require_read(compile_query(f"query q() {{ {text} }}", CATALOG))
    return make_plan(ir, CATALOG, COUNTS)


def lines(text: str) -> list[str]:
    return format_plan(plan(text)).splitlines()


def test_what_nothing_reads_is_counted() -> None:
    assert lines("match { $p: Person $p knows $o $p livesIn $t } return { $t.name }") == [
        "scan $t: Town",
        "  count $t to $p along in LivesIn",
        "  count $p to $o along out Knows",
        "project $t.name",
    ]


def test_a_count_of_paths_binds_nothing_and_starts_in_the_middle() -> None:
    found = plan("match { $a: Person $a knows $b $b knows $c } return { count($a) as n }")

    assert found.match.trees[0].root == "b"
    assert found.match.trees[0].is_counted
    assert not any(branch.is_bound for branch in found.match.trees[0].branches)


def test_a_match_by_key_is_where_everything_starts() -> None:
    found = plan('match { $t: Town $p: Person { name: "x" } $p livesIn $t } return { $t.size }')

    assert found.match.trees[0].root == "p"


def test_what_lies_between_two_read_variables_is_bound() -> None:
    found = plan("match { $a: Person $a knows $b $b livesIn $t } return { $a.name, $t.name }")

    assert all(branch.is_bound for branch in found.match.trees[0].branches)


def test_an_order_needs_every_named_variable_for_its_ties() -> None:
    found = plan("match { $a: Person $a knows $b $b knows $_ } return { $a.name } order { $a.age }")

    bound = {branch.child: branch.is_bound for branch in found.match.trees[0].branches}
    assert bound.pop("b")
    assert list(bound.values()) == [False]


def test_a_unique_grouping_key_is_the_root() -> None:
    found = plan(
        "match { $p: Person $p livesIn $t $f knows $p } return { $t.name, $p.name, count($f) as n }"
    )

    assert found.match.trees[0].root == "p"


def test_the_first_sort_key_of_a_limited_query_is_the_root() -> None:
    found = plan(
        "match { $t: Town $p livesIn $t } return { $t.name } order { $p.age desc } limit 3"
    )

    assert found.sort_root == "p"


@pytest.mark.parametrize("tail", ["order { $p.age }", "limit 3"])
def test_without_both_order_and_limit_no_root_is_visited_in_order(tail: str) -> None:
    assert plan(f"match {{ $p: Person }} return {{ $p.name }} {tail}").sort_root is None


def test_hops_that_close_at_a_variable_are_intersected_there() -> None:
    assert "  intersect at $b: $a along out Knows and $a along in Knows" in lines(
        "match { $a: Person $a knows $b $b knows $a } return { $a.name, $b.name }"
    )


def test_a_negation_on_one_variable_is_a_mask_and_one_on_two_is_not() -> None:
    found = plan(
        """match { $a: Person $a knows $b not { $a livesIn $_ } not { $b knows $a } }
           return { $a.name }"""
    )

    assert [each.mask_of for each in found.match.negations] == ["a", None]
    assert {"a", "b"} <= found.match.bound


def test_predicates_go_to_the_variable_they_are_about() -> None:
    assert lines(
        """match { $a: Person $a $w:knows $b $b.age > 3 $w.weight = 1 $a.age < $b.age 1 = 1 }
           return { $a.name }"""
    ) == [
        "if 1 = 1",
        "scan $b: Person where $b.age > 3",
        "  expand $b to $a along $w: in Knows where $w.weight = 1",
        "filter $a.age < $b.age",
        "project $a.name",
    ]


def test_variables_without_a_traversal_between_them_are_trees_of_their_own() -> None:
    found = plan("match { $p: Person $t: Town } return { count($p) as n }")

    assert [tree.is_counted for tree in found.match.trees] == [True, True]


class Passes(tuple[Hop, ...]):
    """Hops that count how often they are iterated over."""

    made = 0

    def __iter__(self) -> Iterator[Hop]:
        type(self).made += 1
        return super().__iter__()


@pytest.mark.parametrize("returned", ["count($v0) as n", "$v0.name"])
def test_a_long_pattern_is_planned_in_proportion(
    monkeypatch: pytest.MonkeyPatch, returned: str
) -> None:
    """The middle of a tree is found from its two ends, not by trying every variable as root."""
    hops = 300
    path = " ".join(f"$v{n} knows $v{n + 1}" for n in range(hops))
    (tree,) = plan(f"match {{ $v0: Person {path} }} return {{ {returned} }}").match.trees
    pattern = Pattern(
        nodes=dict.fromkeys(tree.variables, "Person"),
        hops=Passes(branch.hop for branch in tree.branches),
    )
    looks = 0
    other_end = Hop.other_end

    def counted(hop: Hop, variable: str) -> str:
        nonlocal looks
        looks += 1
        return other_end(hop, variable)

    monkeypatch.setattr(Hop, "other_end", counted)
    monkeypatch.setattr(Passes, "made", 0)
    needed = frozenset({"v0"} if "name" in returned else ())

    (again,) = choose_trees(pattern, needed, CATALOG, COUNTS)

    assert again.root == tree.root == ("v0" if needed else f"v{hops // 2}")
    assert Passes.made == 1
    assert looks <= 10 * hops


def test_the_middle_of_a_tree_with_arms_is_its_root() -> None:
    (tree,) = plan(
        """
        match {
            $a: Person
            $a knows $b $b knows $c $c knows $d $d knows $e $e knows $f
            $c knows $x $x livesIn $t
        }
        return { count($a) as n }
        """
    ).match.trees

    assert tree.root == "c"
