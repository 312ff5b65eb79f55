"""Merge base: the state that a merge compares both sides with.

The base is the best common ancestor of two heads: one that no other common ancestor comes from.
There may be several: a branch that was merged into both sides, or merges in both directions at
once. They are merged into a virtual base then, in pairs, each pair over its own base; that is
found only when rows ask for it. How many steps away a commit is plays no part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from omnigraph.branch.commit_dag import CommitDag, Comparison, compare_histories
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError
from omnigraph.manifest import GraphCommit


@dataclass(frozen=True, slots=True)
class VirtualBase:
    """Two bases as one. `find_base` gives what both of them come from, None when nothing is."""

    one: Base
    other: Base
    find_base: Callable[[], Base | None]


Base = GraphCommit | VirtualBase


def merge_base(dag: CommitDag, source: GraphCommit, target: GraphCommit) -> tuple[Base, Comparison]:
    """What a merge of two heads compares both with, and how their histories stand.

    Raises:
        ConflictError: The histories have nothing in common.
    """
    histories = compare_histories(dag, [source], [target])
    if not histories.bases:
        raise ConflictError(
            f"branches '{source.branch}' and '{target.branch}' have no common history — "
            "they cannot be merged"
        )
    return _join(dag, histories.bases), histories


def _join(dag: CommitDag, commits: Iterable[GraphCommit]) -> Base:
    first, *rest = commits
    joined: Base = first
    members = [first]
    for each in rest:
        joined = VirtualBase(joined, each, _base_finder(dag, tuple(members), each))
        members.append(each)
    return joined


def _base_finder(
    dag: CommitDag, ones: tuple[GraphCommit, ...], other: GraphCommit
) -> Callable[[], Base | None]:
    @cache
    def find() -> Base | None:
        bases = compare_histories(dag, ones, [other]).bases
        return _join(dag, bases) if bases else None

    return find


def commits_of(base: Base) -> list[GraphCommit]:
    """The commits that a base is made of, the oldest first."""
    if isinstance(base, GraphCommit):
        return [base]
    return [*commits_of(base.one), *commits_of(base.other)]
