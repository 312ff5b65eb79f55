"""Upkeep of a graph: its schema, its indexes, its health."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.catalog import Catalog
from omnigraph.graph.handle import Handle
from omnigraph.manifest import (
    MAIN,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.upkeep.apply_schema import SchemaResult, apply_schema
from omnigraph.upkeep.cleanup import CleanupReport, cleanup
from omnigraph.upkeep.doctor import DoctorReport, examine
from omnigraph.upkeep.ensure_indices import IndexReport, ensure_indices
from omnigraph.upkeep.findings import Verification
from omnigraph.upkeep.optimize import OptimizeReport, optimize
from omnigraph.upkeep.repair import RepairReport, repair
from omnigraph.upkeep.schema_plan import SchemaPlan, plan_schema
from omnigraph.upkeep.verify import verify_graph
from omnigraph.write.recovery import with_settled_tables


class Maintaining(Handle):
    """The calls that keep a graph right and fast."""

    def plan_schema(self, text: str, *, allow_data_loss: bool = False) -> SchemaPlan:
        """What applying a schema would do, step by step and table by table. Changes nothing."""
        catalog, snapshot = self._reading(MAIN)
        return plan_schema(
            self._store.tables, snapshot, catalog, text, allow_data_loss=allow_data_loss
        )

    def apply_schema(
        self, text: str, *, allow_data_loss: bool = False, actor: str | None = None
    ) -> SchemaResult:
        """Make `text` the schema of the graph, as one commit, or change nothing.

        Raises:
            MigrationError: A step is not supported.
            ConflictError: There are other branches, or another change is in progress.
        """
        who = self._permit(Action.SCHEMA_APPLY, actor=actor, target_branch=MAIN)
        self._writable_catalog()
        environment = self._environment()
        self._settle(full=False)
        result = with_settled_tables(
            environment,
            None,
            lambda: apply_schema(environment, text, allow_data_loss=allow_data_loss, actor=who),
        )
        self._checked_contract()
        return result

    def ensure_indices(self, branch: str = MAIN) -> IndexReport:
        """Build every declared index that is missing on a branch; answers do not change."""
        catalog = self._settled_catalog()
        environment, target = self._environment(), canonical_branch(branch)
        return with_settled_tables(
            environment, None, lambda: ensure_indices(environment, catalog, target)
        )

    def optimize(self) -> OptimizeReport:
        """Compact the tables of main and complete their indexes; answers do not change."""
        catalog = self._settled_catalog()
        return optimize(self._environment(), catalog)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Remove history outside the policy; without `confirm` say what would go.

        `keep` is how many commits of each branch stay, `older_than` how old a version must be.
        """
        self._settled_catalog()
        return cleanup(
            self._environment(),
            [self._store.history, self._store.audit],
            keep=keep,
            older_than=older_than,
            confirm=confirm,
        )

    def repair(self, *, confirm: bool = False, force: bool = False) -> RepairReport:
        """Look for tables that moved without a write of ours; with `confirm` show what is safe."""
        self._settled_catalog()
        return repair(self._environment(), confirm=confirm, force=force)

    def doctor(self) -> DoctorReport:
        """How the graph and the machine stand, with advice. Changes nothing."""
        return examine(self._environment(), self._checked_contract().catalog, self._store.history)

    def verify(self, content: bool = False, *, record: bool = False) -> Verification:
        """Look at every branch, table, file and row; changes nothing.

        `content` reads every file and compares it with the checksum that was recorded when it was
        written. `record` gives files that have none a checksum, as they are now; the graph must
        be open for writing. What is found says in plain words what is wrong, and what fixes it.
        """
        if record:
            self._writable_catalog()
        return verify_graph(
            self._environment(),
            lambda: self._checked_contract().catalog,
            content=content,
            record=record,
        )

    def _settled_catalog(self) -> Catalog:
        """The schema, with everything put right that dead writers left and that can be now."""
        self._writable_catalog()
        self._settle(full=False)
        return self._writable_catalog()
