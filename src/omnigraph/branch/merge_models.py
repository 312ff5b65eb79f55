"""Merge models: which model made the vectors of a merged table.

the target's table since the base   the models of both sides   the merged table records
unchanged                           any                        the source's
changed                             equal, or one unknown      the one that is known
changed                             different                  a conflict
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from omnigraph.branch.conflicts import ConflictKind
from omnigraph.branch.plan import Snapshots, TablePlan
from omnigraph.branch.virtual_base import entry_of, is_same_entry
from omnigraph.dataclass import dataclass
from omnigraph.errors import MergeConflict


@dataclass(slots=True)
class MergedModels:
    """The models that change in the target, by property id, and what cannot be merged."""

    changed: dict[int, str | None] = field(default_factory=dict)
    conflicts: list[MergeConflict] = field(default_factory=list)


def merge_models(
    three: Snapshots, plans: Mapping[str, TablePlan], *, may_adopt: bool = True
) -> MergedModels:
    """Decide the model of every vector property of the tables that a merge changes.

    With `may_adopt` a table that the target has not changed gets all that the source did.
    """
    merged = MergedModels()
    if three.source.vector_models == three.target.vector_models:
        return merged
    for key, plan in plans.items():
        if not len(plan.delta):
            continue
        base = entry_of(three.base, key, three.snapshot_of)
        is_adopted = may_adopt and is_same_entry(base, plan.target_entry)
        _merge_table(merged, three, plan, is_adopted=is_adopted)
    return merged


def _merge_table(
    merged: MergedModels, three: Snapshots, plan: TablePlan, *, is_adopted: bool
) -> None:
    for found in plan.entity.properties.values():
        theirs = three.source.vector_models.get(found.property_id)
        ours = three.target.vector_models.get(found.property_id)
        if found.embed is None or theirs == ours:
            continue
        if is_adopted or ours is None:
            merged.changed[found.property_id] = theirs
        elif theirs is not None:
            merged.conflicts.append(
                MergeConflict(
                    ConflictKind.EMBEDDING_MODELS,
                    plan.table_key,
                    None,
                    f"the vectors of '{plan.entity.name}.{found.name}' are of model '{ours}' in "
                    f"the target and of '{theirs}' in the source — make those of one side anew "
                    "with `omnigraph embed --reembed-all`",
                )
            )
