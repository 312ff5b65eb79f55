"""Histories: which commits of another store a branch of this one lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.dataclass import dataclass
from omnigraph.manifest import GraphCommit, ManifestState
from omnigraph.manifest.rows import row_to_commit


@dataclass(frozen=True, slots=True)
class History:
    """The commits that a state comes from, and those of them that the receiver does not know."""

    head: GraphCommit
    commits: Mapping[str, GraphCommit]
    missing: tuple[GraphCommit, ...]

    def line(self, known: Mapping[str, object]) -> list[GraphCommit]:
        """The head and its first parents that are not known, the oldest first."""
        found: list[GraphCommit] = []
        commit: GraphCommit | None = self.head
        while commit is not None and commit.commit_id not in known:
            found.append(commit)
            commit = self.commits.get(commit.parent_id or "")
        return found[::-1]


def list_ids(state: ManifestState) -> Iterator[str]:
    """Every commit that a branch knows."""
    yield from state.commit_rows["object_id"].to_pylist()
    yield from state.ancestor_rows["object_id"].to_pylist()


def list_ancestors(state: ManifestState) -> dict[str, GraphCommit]:
    """Every commit that the head of a branch comes from, by its id."""
    rows = [*state.commit_rows.to_pylist(), *state.ancestor_rows.to_pylist()]
    known = {each.commit_id: each for each in map(row_to_commit, rows)}
    found: dict[str, GraphCommit] = {}
    pending: list[str | None] = [state.head.commit_id]
    while pending:
        commit = known.get(pending.pop() or "")
        if commit is not None and commit.commit_id not in found:
            found[commit.commit_id] = commit
            pending += [commit.parent_id, commit.merged_parent_id]
    return found
