"""What one branch deleted is still a key of another: its rows are replaced, and not added again."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og
from tests.branch.people import change, new_people, state_of


def test_a_row_that_a_branch_deleted_and_added_again_is_not_new_on_main(tmp_path: Path) -> None:
    new_people(tmp_path / "graph").close()
    graph = og.open(tmp_path / "graph")  # it has written nothing, so it knows no keys
    graph.create_branch("dev")
    change(graph, "gone", branch="dev", name="bob")
    change(graph, "person", branch="dev", name="bob", age=1)  # reads the keys there

    change(graph, "age", name="bob", age=2)
    change(graph, "person", name="bob", age=3)

    assert state_of(graph)["node:Person"]["bob"]["age"] == 3  # refuses ids that occur twice
    assert state_of(graph, "dev")["node:Person"]["bob"]["age"] == 1
    assert graph.verify().is_clean
