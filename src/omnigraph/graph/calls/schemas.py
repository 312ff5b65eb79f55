"""Schema calls: the accepted schema of a branch, and changing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.graph.calls.part import GraphPart
from omnigraph.graph.schema_text import SchemaText
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.write.recovery import retry_after_recovery

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.pipeline.progress import Listener
    from omnigraph.upkeep.apply_schema import SchemaResult
    from omnigraph.upkeep.schema_plan import SchemaPlan


class SchemaCalls(GraphPart):
    """Schemas."""

    @property
    def schema(self) -> SchemaText:
        """The accepted schema of `main`, as it was written."""
        return SchemaText(self._session.read_contract().source)

    @property
    def catalog(self) -> Catalog:
        """The types of the accepted schema of `main`."""
        return self._session.read_contract().catalog

    def branch_schema(self, branch: str = MAIN) -> SchemaText:
        """The accepted schema of a branch, as it was written."""
        return SchemaText(self._session.read_schema(canonical_branch(branch)).source)

    def branch_catalog(self, branch: str = MAIN) -> Catalog:
        """The types of the accepted schema of a branch."""
        return self._session.read_schema(canonical_branch(branch)).catalog

    def plan_schema(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        progress: Listener | bool | None = None,
    ) -> SchemaPlan:
        """What applying a schema would do, step by step and table by table. Changes nothing.

        `progress` is told of the rows that are checked, as that of `load`.
        """
        from omnigraph.pipeline.progress import reporting_work
        from omnigraph.upkeep.schema_plan import plan_schema

        session = self._session
        catalog, snapshot = session.read((canonical_branch(branch), None, None, None))
        with reporting_work(progress):
            return plan_schema(
                session.store.tables, snapshot, catalog, text, allow_data_loss=allow_data_loss
            )

    def apply_schema(
        self,
        text: str,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        progress: Listener | bool | None = None,
    ) -> SchemaResult:
        """Make `text` the schema of a branch, as one commit, or change nothing.

        Other branches stay in the schema they are in. `progress` is told of rows checked and
        written, as that of `load`.

        Raises:
            MigrationError: A step is not supported.
            ConflictError: Another change is in progress, or `allow_data_loss` would remove for
                good what another branch has.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.pipeline.progress import reporting_work
        from omnigraph.upkeep.apply_schema import apply_schema

        session, target = self._session, canonical_branch(branch)
        who = session.permit(Action.SCHEMA_APPLY, actor=actor, target_branch=target)
        session.require_writable(target)
        environment, note = session.environment(), read_note(message, metadata)
        session.recover()

        def apply() -> SchemaResult:
            return apply_schema(
                environment,
                text,
                branch=target,
                allow_data_loss=allow_data_loss,
                actor=who,
                note=note,
            )

        with reporting_work(progress):
            result = retry_after_recovery(environment, None, apply)
        session.read_contract()
        return result
