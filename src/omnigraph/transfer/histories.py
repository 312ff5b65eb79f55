"""Histories: which commits of another store a branch of this one lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from omnigraph.dataclass import dataclass
from omnigraph.manifest import GraphCommit, ManifestState
from omnigraph.manifest.history import find_makers
from omnigraph.manifest.rows import row_to_commit
from omnigraph.storage.control import ControlTable
from omnigraph.write.environment import WriteEnvironment


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


@dataclass(frozen=True, slots=True)
class KnownCommits:
    """Tells which commits the branches of a store know, by reading few of these.

    `near` are those that are likely to. That a commit is known only its branch can tell; that it is
    not, the history table can, too. For one transfer: what no branch knew is not looked up again.
    """

    target: WriteEnvironment
    history: ControlTable
    near: tuple[str, ...]
    _absent: set[str] = field(default_factory=set)

    def find(self, commit_ids: Collection[str]) -> set[str]:
        """Those of these commits that some branch knows now."""
        coordinator, texts = self.target.coordinator, self.target.texts
        found = self._ask(self.near, commit_ids)
        pending = set(commit_ids) - found - self._absent
        if pending:
            made_on, uncovered = find_makers(coordinator, self.history, texts, pending)
            found |= self._ask([each for each in uncovered if each not in self.near], pending)
            recorded = [each for each in pending - found if each in made_on]
            if recorded:
                makers = [made_on[each] for each in recorded]
                found |= self._ask([*makers, *coordinator.branches()], recorded)
            self._absent.update(pending - found)
        return found

    def _ask(self, branches: Iterable[str], commit_ids: Collection[str]) -> set[str]:
        """Those of the commits that these branches know; reads none once all are found."""
        wanted, found = set(commit_ids), set[str]()
        for state in self.target.coordinator.fresh_each(dict.fromkeys(branches)):
            found |= wanted.intersection(list_ids(state))
            if len(found) == len(wanted):
                break
        return found


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
