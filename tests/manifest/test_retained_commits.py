"""States that outlived their branch: each stays until it is let go of, whatever file it is in."""

from __future__ import annotations

from pathlib import Path

from omnigraph.manifest.retained_commits import RetainedCommits
from omnigraph.testing.inside import inside
from tests.graph.reading import add, new_graph


def test_a_state_that_is_let_go_of_takes_no_other_one_along(tmp_path: Path) -> None:
    """A file is named by its first and last commit, and two may come to have the same ones."""
    graph = new_graph(tmp_path / "graph")
    commits = [str(add(graph, "person", name=each).commit_id) for each in "abcd"]
    coordinator = inside(graph).coordinator
    states = [coordinator.commit_states.get(coordinator.commit(each)) for each in commits]
    retained = RetainedCommits(inside(graph).store.texts)
    retained.add([states[0], states[1], states[2]])
    retained.add([states[0], states[2], states[3]])

    retained.retain(commits[:3])

    assert {each.head.commit_id for each in retained} == set(commits[:3])
    assert retained.read(commits[3]) is None
    retained.retain([])
    assert list(retained) == []
