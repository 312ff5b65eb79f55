"""A write that failed before its publish is finished by the next write, whatever kind that is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.branch.merge import MergeResult
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints

SCHEMA = "node Person { slug: String @key  name: String? }\n"
WIDER = "node Person { slug: String @key  name: String?  title: String? }\n"
ADD = "query add($s: String) { insert Person { slug: $s } }"
ALL = "query all() { match { $p: Person } return { $p.slug } order { $p.slug } }"


def apply_wider(graph: og.Graph) -> None:
    assert graph.apply_schema(WIDER).applied


def merge_dev(graph: og.Graph) -> None:
    assert isinstance(graph.merge("dev"), MergeResult)


@pytest.mark.accepts("S-112")
@pytest.mark.parametrize(
    ("next_write", "has_branch", "expected"),
    [
        pytest.param(apply_wider, False, ["lost"], id="apply_schema"),
        pytest.param(merge_dev, True, ["dev", "lost"], id="merge"),
    ],
)
def test_the_next_write_on_the_same_handle_heals(
    tmp_path: Path, next_write: Callable[[og.Graph], None], has_branch: bool, expected: list[str]
) -> None:
    """Neither a refresh nor a reopen is needed, and the rows of the failed write are kept."""
    graph = og.init(tmp_path / "g.omni", schema=SCHEMA, durability="process")
    if has_branch:
        graph.create_branch("dev")
        graph.mutate(ADD, "add", {"s": "dev"}, branch="dev")
    point = Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER
    with arm_failpoints({point: "raise"}), pytest.raises(FailpointError):
        graph.mutate(ADD, "add", {"s": "lost"})

    next_write(graph)

    assert [row["p.slug"] for row in graph.query(ALL)] == expected
    assert [record.kind for record in graph.recoveries()] == ["RolledForward"]
