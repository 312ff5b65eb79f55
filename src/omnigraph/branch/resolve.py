"""Resolve: from a plan and the caller's choices to what will be written, or the open conflicts.

Resolving one conflict can cause another: a node that is not taken leaves its edges without an end.
So the rules are checked again after every round of choices, until a round finds nothing new. A
rule that is still broken although it was resolved counts as a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from omnigraph.branch.choices import Choice, Choices, Picks
from omnigraph.branch.conflicts import Contest, Edit
from omnigraph.branch.mixed_rows import apply_edits, mix_sides
from omnigraph.branch.plan import Plan, Snapshots, TablePlan, plan_unchanged
from omnigraph.branch.rules import MergedGraph
from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.manifest import Snapshot
from omnigraph.storage.tables import TableStorage

_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class ResolvedMerge:
    """The plans to write, the versions they rest on, resolved conflicts and open ones."""

    plans: Mapping[str, TablePlan] = field(default_factory=dict)
    read_versions: Mapping[str, int] = field(default_factory=dict)
    resolved: Sequence[tuple[MergeConflict, Choice]] = ()
    conflicts: Sequence[MergeConflict] = ()


def resolve_conflicts(
    tables: TableStorage,
    catalog: Catalog,
    three: Snapshots,
    plan: Plan,
    choices: Choices,
    *,
    is_checked: bool,
) -> ResolvedMerge:
    """Apply the choices and check the result.

    `is_checked` says that the result is a state which was checked when it was written, as it is
    for a fast forward.
    """
    round_ = _Round(catalog, choices)
    plans = dict(plan.tables)
    reads = {key: each.target_entry.version for key, each in plans.items()}
    contests: Iterable[Contest] = plan.contests
    while True:
        edits = round_.take(contests)
        if edits:
            plans = apply_edits(
                tables,
                plans,
                edits,
                lambda key: plan_unchanged(tables, catalog, three.source, three.target, key),
            )
            reads |= {key: each.target_entry.version for key, each in plans.items()}
        if is_checked and not edits:
            reads |= _rests_on(catalog, three.target, plans)
            break
        graph = MergedGraph(tables, catalog, three.source, three.target, plans, reads)
        contests = round_.unseen(graph.find_contests())
        if not contests:
            break
    resolved = [each for _, each in sorted(round_.resolved.items())]
    open_ = [each for _, each in sorted(round_.open.items())]
    choices.check_used([*open_, *(conflict for conflict, _ in resolved)])
    return ResolvedMerge(plans, reads, resolved, open_)


def _rests_on(catalog: Catalog, target: Snapshot, plans: Mapping[str, TablePlan]) -> dict[str, int]:
    """The tables whose rows a rule would compare with the delta, if it had to be checked.

    While they stand still the result is the checked state. Once one moves, an edge that is brought
    may have lost its node, or a node that is taken away may have got an edge.
    """
    removed = {key: plan.delta.rows["after"].null_count for key, plan in plans.items()}
    bringing = {key for key, plan in plans.items() if removed[key] < len(plan.delta)}
    removing = {key for key, count in removed.items() if count}
    keys: set[str] = set()
    for edge in catalog.edges.values():
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key in bringing:
            keys |= ends
        if ends & removing:
            keys.add(edge.table_key)
    return {key: target.entries[key].version for key in keys}


@dataclass(slots=True)
class _Round:
    """The conflicts met so far: resolved by a choice, or open."""

    catalog: Catalog
    choices: Choices
    resolved: dict[_Key, tuple[MergeConflict, Choice]] = field(default_factory=dict)
    open: dict[_Key, MergeConflict] = field(default_factory=dict)

    def take(self, contests: Iterable[Contest]) -> list[Edit]:
        """Resolve what can be; returns the edits."""
        edits: list[Edit] = []
        for each in contests:
            choice = self.choices.find(each.conflict)
            if choice is None or isinstance(choice, str):
                found = each.ours if choice == "ours" else each.theirs
            else:
                found = self._mix(each, choice)
            if choice is None or found is None:
                self.open.setdefault(_key(each.conflict), each.conflict)
            else:
                self.resolved[_key(each.conflict)] = (each.conflict, choice)
                edits += found
        return edits

    def _mix(self, contest: Contest, picks: Picks) -> Sequence[Edit] | None:
        """The row as it was chosen property by property; None while one is left to choose."""
        conflict = contest.conflict
        mixed = mix_sides(self.catalog.entity(conflict.table_key), contest, picks)
        if mixed is None:
            return None
        if mixed.missing:
            names = ", ".join(mixed.missing)
            told = replace(conflict, message=f"{conflict.message}; still to choose: {names}")
            self.open[_key(conflict)] = told
            return None
        return mixed.edits

    def unseen(self, contests: Iterable[Contest]) -> list[Contest]:
        """The new ones. A conflict that was resolved and is still there becomes an open one."""
        new = []
        for each in contests:
            key = _key(each.conflict)
            if key in self.resolved:
                del self.resolved[key]
                self.open[key] = each.conflict
            elif key not in self.open:
                new.append(each)
        return new


def _key(conflict: MergeConflict) -> _Key:
    """What a conflict is known by, in the order of reports."""
    return conflict.table_key, conflict.row_id or "", conflict.kind, conflict.message
