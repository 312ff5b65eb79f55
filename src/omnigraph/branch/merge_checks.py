"""Merge checks: which checks the target of a merge has afterwards.

source vs base   target vs base   then
same             any              the target's check stays
changed          same             the source's is taken
changed          changed alike    the target's stays
changed          changed          a conflict
"""

from __future__ import annotations

from dataclasses import field

from omnigraph.branch.conflicts import ConflictKind
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict
from omnigraph.manifest.checks import Check, Checks, list_changes


@dataclass(slots=True)
class MergedChecks:
    """The checks that change in the target, None where one goes, and what cannot be merged."""

    changed: dict[str, Check | None] = field(default_factory=dict)
    conflicts: list[MergeConflict] = field(default_factory=list)


def merge_checks(base: Checks, ours: Checks, theirs: Checks) -> MergedChecks:
    """Decide every check that the source has changed since the base."""
    merged = MergedChecks()
    for name, check in list_changes(base, theirs).items():
        if ours.get(name) == check:
            continue
        if ours.get(name) == base.get(name):
            merged.changed[name] = check
        else:
            merged.conflicts.append(
                MergeConflict(
                    ConflictKind.DIVERGENT_CHECK,
                    "checks",
                    name,
                    f"check '{name}' was changed on both sides — make it the same on both with "
                    "`omnigraph checks apply`",
                )
            )
    return merged
