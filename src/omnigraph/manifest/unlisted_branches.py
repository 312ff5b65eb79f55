"""Unlisted branches: branches of `__manifest` that no reader is shown.

One is the lock of schema changes: creating a branch either succeeds or finds it taken, in every
process and on every store. The others are prepared by a transfer, which publishes to them before
they get their names; what a dead transfer leaves is removed by the next one.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from omnigraph.errors import BranchNotFound, ConflictError, ForkExists, ForkInUse
from omnigraph.manifest.branch_names import PREPARED, SCHEMA_APPLY_LOCK, lance_branch
from omnigraph.manifest.freshness import BranchStates
from omnigraph.manifest.model import ManifestState
from omnigraph.storage.control import ControlTable
from omnigraph.storage.predicates import IsIn
from omnigraph.ulids import new_ulid


class UnlistedBranches:
    """The unlisted branches of one graph."""

    def __init__(self, control: ControlTable, states: BranchStates) -> None:
        self._control = control
        self._states = states

    def prepare(
        self, origin: ManifestState, commit_ids: Collection[str] | None = None
    ) -> ManifestState:
        """Make a branch that is never listed, to be published to before it gets its name.

        With `commit_ids` it forgets all commits but these.
        """
        name = f"{PREPARED}{new_ulid()}"
        self._control.create_branch(
            name, source=lance_branch(origin.branch), version=origin.version
        )
        if commit_ids is not None:
            rows = pa.concat_tables([origin.commit_rows, origin.ancestor_rows])
            gone = [each for each in rows["object_id"].to_pylist() if each not in commit_ids]
            if gone:
                self._control.delete_rows(IsIn("object_id", pa.array(gone)), branch=name)
            return self._states.fresh(name)
        branch_id = self._states.read_branch_id(name)
        return self._states.remember(replace(origin, branch=name, branch_id=branch_id))

    def remove_prepared(self) -> None:
        """Remove what dead receivers have prepared, and what no branch comes from any more."""
        for name in self._control.branch_names():
            if name.startswith(PREPARED):
                with suppress(ForkInUse):
                    self._control.delete_branch(name)
                    self._states.forget(name)

    def lock_schema(self, *, is_stale: bool) -> None:
        """Take the lock of schema changes: a branch of the manifest that is never listed.

        With `is_stale` the holder of an existing lock is known to be dead, and it is taken over.

        Raises:
            ConflictError: Another schema change holds it.
        """
        for _ in range(2):
            version = self._control.latest_version()
            with self._control.power_cut.mark_unfinished(lance_branch(SCHEMA_APPLY_LOCK)):
                try:
                    self._control.create_branch(SCHEMA_APPLY_LOCK, source=None, version=version)
                except ForkExists as collision:
                    if collision.has_ref and not is_stale:
                        break
                    if collision.has_ref:
                        self._control.delete_branch(SCHEMA_APPLY_LOCK)
                    else:
                        self._control.delete_branch_tree(SCHEMA_APPLY_LOCK)
                    continue
            return
        raise ConflictError("a schema change is already in progress — try again when it is done")

    def unlock_schema(self) -> None:
        """Give the lock of schema changes back; nothing to give back is success."""
        with suppress(BranchNotFound):
            self._control.delete_branch(SCHEMA_APPLY_LOCK)
