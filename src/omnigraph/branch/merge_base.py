"""Merge base: where two histories were last the same.

Every commit names the head it was made on and, for a merge, the head that was merged. Of all
commits that both heads come from, the base is the one with the fewest steps to both together;
of several as near, the one at the greater manifest version. A criss-cross history has several;
with any of them no change is lost, and at worst a row that both sides have handed to and fro is
reported as a conflict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from omnigraph.errors import BranchNotFound, ConflictError
from omnigraph.manifest import Coordinator, GraphCommit, ManifestState
from omnigraph.manifest.rows import commit_of_row


class CommitDag:
    """The commits of a graph. Reads other branches only when a link leads to one of theirs."""

    def __init__(self, coordinator: Coordinator, states: Iterable[ManifestState]) -> None:
        self._coordinator = coordinator
        self._commits: dict[str, GraphCommit] = {}
        self._unread: list[str] | None = None
        self._read_branches = {state.branch for state in states}
        for state in states:
            self._read(state)

    def _read(self, state: ManifestState) -> None:
        commits = map(commit_of_row, state.commit_rows.to_pylist())
        self._commits.update((commit.commit_id, commit) for commit in commits)

    def _read_another(self) -> bool:
        """Read one more branch; False when all have been."""
        if self._unread is None:
            known = self._coordinator.branches()
            self._unread = [each for each in known if each not in self._read_branches]
        if not self._unread:
            return False
        with suppress(BranchNotFound):  # deleted since it was listed
            self._read(self._coordinator.fresh(self._unread.pop()))
        return True

    def get(self, commit_id: str) -> GraphCommit | None:
        """A commit, None when every branch that knew it is gone."""
        while commit_id not in self._commits and self._read_another():
            pass
        return self._commits.get(commit_id)

    def distances(self, head: GraphCommit) -> Mapping[str, int]:
        """Steps from `head` back to every commit it comes from, itself included."""
        found = {head.commit_id: 0}
        pending = deque([head])
        while pending:
            commit = pending.popleft()
            for parent in self._parents(commit):
                if parent.commit_id not in found:
                    found[parent.commit_id] = found[commit.commit_id] + 1
                    pending.append(parent)
        return found

    def _parents(self, commit: GraphCommit) -> Iterator[GraphCommit]:
        for parent_id in (commit.parent_id, commit.merged_parent_id):
            if parent_id is not None:
                parent = self.get(parent_id)
                if parent is not None:
                    yield parent


def merge_base(dag: CommitDag, source: GraphCommit, target: GraphCommit) -> GraphCommit:
    """The commit that a merge of two heads compares both with.

    Raises:
        ConflictError: The histories have nothing in common.
    """
    from_source, from_target = dag.distances(source), dag.distances(target)
    common = [
        (steps + from_target[commit_id], commit)
        for commit_id, steps in from_source.items()
        if commit_id in from_target and (commit := dag.get(commit_id)) is not None
    ]
    if not common:
        raise ConflictError(
            f"branches '{source.branch}' and '{target.branch}' have no common history — "
            "they cannot be merged"
        )
    return min(common, key=lambda each: (each[0], -each[1].manifest_version, each[1].commit_id))[1]
