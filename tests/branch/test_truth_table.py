"""The truth table: every kind of change against every other, each with its stated outcome.

Rows are what the source did, columns what the target did, both since they were one. A cell says

    utd   already up to date        ff   fast forward: the target ends up as the source is
    m     merged: both effects, exactly as the definition of a merge says
    di    divergent insert          du   divergent update        dvu  delete against update
    oe    edge without an end       uv   unique values clash     cv   too many edges

and conflicts leave the target alone. Kinds that differ between the sides are given a different
value on each, so that equal changes are only where the table has them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.merge import MergeOutcome
from omnigraph.errors import MergeConflict, MergeConflicts
from tests.branch.people import change, joined, merged, new_people, previewed, state_of
from tests.depth import cover

Change = Callable[[og.Graph, str, bool], None]
"""Change a branch; the flag says that the branch is the source of the merge."""

CODES = {
    "divergent_insert": "di",
    "divergent_update": "du",
    "delete_vs_update": "dvu",
    "orphan_edge": "oe",
    "unique_violation": "uv",
    "cardinality_violation": "cv",
    "value_constraint_violation": "vv",
}


def noop(graph: og.Graph, branch: str, is_source: bool) -> None:
    pass


def add_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "person", branch, name="eve", age=21 if is_source else 22)


def add_same_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "person", branch, name="zoe", age=7)


def remove_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "gone", branch, name="alice")


def set_property(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "age", branch, name="alice", age=31 if is_source else 32)


def set_same_property(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "age", branch, name="alice", age=33)


def clear_property(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "age", branch, name="alice", age=None)


def write_back(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "age", branch, name="alice", age=99)
    change(graph, "age", branch, name="alice", age=30)


def replace_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "gone", branch, name="alice")
    change(graph, "person", branch, name="alice", age=60 if is_source else 61)


def set_unique(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "email", branch, name="bob" if is_source else "dan", email="me@here")


def add_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "knows", branch, a="alice", b="carol")


def add_parallel_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "knows", branch, a="bob", b="carol")


def remove_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "apart", branch, a="bob")


def add_and_remove_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "knows", branch, a="alice", b="dan")
    change(graph, "apart", branch, a="alice")


def remove_source_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "gone", branch, name="bob")


def remove_target_node(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "gone", branch, name="carol")


def add_only_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "works", branch, a="alice", b="f1" if is_source else "f2")


def swap_only_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    change(graph, "quit", branch, a="bob")
    change(graph, "works", branch, a="bob", b="f2")


def edit_edge(graph: og.Graph, branch: str, is_source: bool) -> None:
    (edge_id,) = state_of(graph, branch)["edge:Knows"]
    data = {"id": edge_id, "since": 2001 if is_source else 2002}
    record = {"edge": "Knows", "from": "bob", "to": "carol", "data": data}
    graph.load([record], mode="merge", branch=branch)


NODE_CHANGES: list[Change] = [
    noop,
    add_node,
    add_same_node,
    remove_node,
    set_property,
    set_same_property,
    clear_property,
    write_back,
    replace_node,
    set_unique,
]

NODE_TABLE = """
                  noop add  same remv set  sets clr  back repl uniq
noop              utd  utd  utd  utd  utd  utd  utd  utd  utd  utd
add_node          ff   di   m    m    m    m    m    m    m    m
add_same_node     ff   m    m    m    m    m    m    m    m    m
remove_node       ff   m    m    m    dvu  dvu  dvu  m    dvu  m
set_property      ff   m    m    dvu  du   du   du   m    du   m
set_same_property ff   m    m    dvu  du   m    du   m    du   m
clear_property    ff   m    m    dvu  du   du   m    m    du   m
write_back        ff   m    m    m    m    m    m    m    m    m
replace_node      ff   m    m    dvu  du   du   du   m    du   m
set_unique        ff   m    m    m    m    m    m    m    m    uv
"""

EDGE_CHANGES: list[Change] = [
    noop,
    add_edge,
    add_parallel_edge,
    remove_edge,
    add_and_remove_edge,
    remove_source_node,
    remove_target_node,
    add_only_edge,
    swap_only_edge,
    edit_edge,
]

EDGE_TABLE = """
                    noop add  par  remv back bob    carol  only swap edit
noop                utd  utd  utd  utd  utd  utd    utd    utd  utd  utd
add_edge            ff   m    m    m    m    m      oe     m    m    m
add_parallel_edge   ff   m    m    m    m    oe     oe     m    m    m
remove_edge         ff   m    m    m    m    m      m      m    m    dvu
add_and_remove_edge ff   m    m    m    m    m      m      m    m    m
remove_source_node  ff   m    oe   m    m    m      m      m    oe   dvu+oe
remove_target_node  ff   oe   oe   m    m    m      m      m    m    dvu+oe
add_only_edge       ff   m    m    m    m    m      m      cv   m    m
swap_only_edge      ff   m    m    m    m    oe     m      m    cv   m
edit_edge           ff   m    m    dvu  m    dvu    dvu    m    m    du
"""

UNSUPPORTED = {"dropProperty", "addLabel", "removeLabel"}
"""Kinds of other systems that no mutation of ours can express."""


def read_table(text: str, kinds: list[Change]) -> dict[tuple[str, str], set[str]]:
    """(source kind, target kind) → what the cell says. The header only labels."""
    _, *lines = text.strip("\n").splitlines()
    names = [kind.__name__ for kind in kinds]
    cells = {}
    for line in lines:
        source, *outcomes = line.split()
        for target, outcome in zip(names, outcomes, strict=True):
            cells[source, target] = set(outcome.split("+"))
    return cells


TABLES = {
    "nodes": (NODE_CHANGES, read_table(NODE_TABLE, NODE_CHANGES)),
    "edges": (EDGE_CHANGES, read_table(EDGE_TABLE, EDGE_CHANGES)),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_change_has_a_row_and_a_column(kind: str) -> None:
    """A new kind has to be given its outcomes, or this fails."""
    changes, cells = TABLES[kind]
    names = [each.__name__ for each in changes]

    assert len(names) == len(set(names)) == 10
    assert list(cells) == [(source, target) for source in names for target in names]
    known = {each.__name__ for part, _ in TABLES.values() for each in part}
    assert not known & UNSUPPORTED
    in_module = {
        name
        for name, value in globals().items()
        if getattr(value, "__module__", None) == __name__
        and list(getattr(value, "__annotations__", {}))
        == ["graph", "branch", "is_source", "return"]
    }
    assert in_module == known


def conflicts_of(graph: og.Graph, source: str, target: str) -> tuple[MergeConflict, ...]:
    """What a merge raises; the preview says the same."""
    seen = previewed(graph, source, target).conflicts
    if not seen:
        return ()
    with pytest.raises(MergeConflicts) as raised:
        merged(graph, source, target)
    assert raised.value.conflicts == tuple(seen)
    return raised.value.conflicts


def check_cell(
    graph: og.Graph, source: str, target: str, base_states: dict[str, object], expected: set[str]
) -> None:
    """Merge `source` into `target` and compare with the cell and with the definition."""
    base, before = base_states["base"], state_of(graph, target)
    conflicts = conflicts_of(graph, source, target)
    if conflicts:
        assert {CODES[each.kind] for each in conflicts} == expected
        assert state_of(graph, target) == before
        return
    result = merged(graph, source, target)
    outcomes = {
        MergeOutcome.ALREADY_UP_TO_DATE: "utd",
        MergeOutcome.FAST_FORWARD: "ff",
        MergeOutcome.MERGED: "m",
    }
    assert {outcomes[result.outcome]} == expected
    assert state_of(graph, target) == joined(base, state_of(graph, source), before)  # type: ignore[arg-type]
    assert merged(graph, source, target).outcome is MergeOutcome.ALREADY_UP_TO_DATE


def choose_cells(cells: dict[tuple[str, str], set[str]]) -> list[tuple[str, str]]:
    """Cells that show every row, column and outcome; in `make torture`, all of them."""
    return cover(cells, lambda cell: {("row", cell[0]), ("column", cell[1]), *cells[cell]})


def is_still(expected: set[str]) -> bool:
    """Whether a cell leaves the target as it is."""
    return not expected & {"m", "ff"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_the_truth_table_between_two_branches(kind: str, tmp_path: Path) -> None:
    """`make test` runs cells that show every row, column and outcome; `make torture` runs all."""
    changes, cells = TABLES[kind]
    run_cells = {cell: cells[cell] for cell in choose_cells(cells)}
    graph = new_people(tmp_path / "graph")
    states = {"base": state_of(graph)}
    for each in changes:
        for side in ("source", "target"):
            graph.create_branch(f"{side}-{each.__name__}")
            each(graph, f"{side}-{each.__name__}", side == "source")

    # First the cells that leave the target alone, then those that need one for themselves.
    in_order = sorted(run_cells.items(), key=lambda cell: not is_still(cell[1]))
    for (source, target), expected in in_order:
        place = f"target-{target}"
        if not is_still(expected):
            place = f"cell-{source}-{target}"
            graph.create_branch(place, f"target-{target}")
        check_cell(graph, f"source-{source}", place, states, expected)  # type: ignore[arg-type]


@pytest.mark.accepts("S-163")
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.slow
def test_the_truth_table_into_main(kind: str, tmp_path: Path) -> None:
    """`make test` runs cells that show every row, column and outcome; `make torture` runs all."""
    changes, cells = TABLES[kind]
    make = {each.__name__: each for each in changes}
    for source, target in choose_cells(cells):
        with new_people(tmp_path / f"{source}-{target}") as graph:
            states = {"base": state_of(graph)}
            graph.create_branch("source")
            make[source](graph, "source", True)
            make[target](graph, "main", False)
            check_cell(graph, "source", "main", states, cells[source, target])  # type: ignore[arg-type]
