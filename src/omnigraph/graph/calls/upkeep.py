"""Upkeep: the calls of a graph that keep it fast and sound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.write.recovery import retry_after_recovery

if TYPE_CHECKING:
    from omnigraph.catalog import Catalog
    from omnigraph.upkeep.cleanup import CleanupReport
    from omnigraph.upkeep.doctor import DoctorReport
    from omnigraph.upkeep.ensure_indices import IndexReport
    from omnigraph.upkeep.findings import Verification
    from omnigraph.upkeep.optimize import OptimizeReport
    from omnigraph.upkeep.repair import RepairReport


class UpkeepCalls(GraphPart):
    """What `Graph` can do for itself; a part of that class.

    Answers of queries do not change. `on_progress` is called with an `UpkeepProgress` before each
    step. With a policy, `actor` needs its action.
    """

    def ensure_indices(
        self,
        branch: str = MAIN,
        *,
        actor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> IndexReport:
        """Build every declared index that is missing on a branch; answers do not change."""
        from omnigraph.upkeep.ensure_indices import ensure_indices

        target = canonical_branch(branch)
        catalog = self._begin_upkeep(Action.OPTIMIZE, actor, target)
        environment = self._session.environment()
        tasks = self._session.store.tables.tasks
        return retry_after_recovery(
            environment,
            None,
            lambda: ensure_indices(environment, catalog, target, on_progress, tasks),
        )

    def optimize(
        self,
        *,
        actor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> OptimizeReport:
        """Compact the tables of main and complete their indexes; answers do not change."""
        from omnigraph.upkeep.optimize import optimize

        catalog = self._begin_upkeep(Action.OPTIMIZE, actor)
        tasks = self._session.store.tables.tasks
        return optimize(self._session.environment(), catalog, on_progress, tasks)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
        actor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> CleanupReport:
        """Remove history outside the policy; without `confirm` say what would go.

        `keep` is how many commits of each branch stay, `older_than` how old a version must be.
        """
        from omnigraph.upkeep.cleanup import cleanup

        self._begin_upkeep(Action.CLEANUP, actor)
        return cleanup(
            self._session.environment(),
            [self._session.store.history, self._session.store.audit],
            keep=keep,
            older_than=older_than,
            confirm=confirm,
            on_progress=on_progress,
        )

    def repair(
        self,
        *,
        confirm: bool = False,
        force: bool = False,
        actor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> RepairReport:
        """Find tables that moved outside of Omnigraph; with `confirm` publish what is safe."""
        from omnigraph.upkeep.repair import repair

        self._begin_upkeep(Action.REPAIR, actor)
        return repair(
            self._session.environment(), confirm=confirm, force=force, on_progress=on_progress
        )

    def doctor(self) -> DoctorReport:
        """How the graph and the machine stand, with advice. Changes nothing."""
        from omnigraph.upkeep.doctor import examine

        session = self._session
        return examine(
            session.environment(), session.read_contract().catalog, session.store.history
        )

    def verify(
        self,
        content: bool = False,
        *,
        record: bool = False,
        actor: str | None = None,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Verification:
        """Look at every branch, table, file and row; changes nothing.

        `content` reads every file and compares it with the checksum that was recorded when it was
        written. `record` gives files that have none a checksum, as they are now; the graph must
        be open for writing. What is found says in plain words what is wrong, and what fixes it.
        """
        from omnigraph.storage.content import spread_over_threads
        from omnigraph.upkeep.verify import verify_graph

        if record:
            self._session.permit(Action.OPTIMIZE, actor=actor)
            self._session.require_writable()
        tasks = self._session.store.tables.tasks
        return verify_graph(
            self._session.environment(),
            self._session.read_contract,
            content=content,
            record=record,
            spread=tasks.spread if content and tasks is not None else spread_over_threads,
            on_progress=on_progress,
        )

    def _begin_upkeep(self, action: Action, actor: str | None, branch: str = MAIN) -> Catalog:
        self._session.permit(action, actor=actor)
        return self._session.recover_for_upkeep(branch)


def run_upkeep(
    graph: UpkeepCalls, kind: str, options: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Make the call that a job or a command names; its report as JSON. An age is a text here."""
    given = dict(options)
    if given.get("older_than") is not None:
        from omnigraph.upkeep.retention import parse_duration

        given["older_than"] = parse_duration(given["older_than"])
    calls: dict[str, Callable[..., Any]] = {
        "optimize": graph.optimize,
        "ensure_indices": graph.ensure_indices,
        "cleanup": graph.cleanup,
        "repair": graph.repair,
        "verify": graph.verify,
    }
    report: dict[str, Any] = calls[kind](**given, **more).to_json()
    return report
