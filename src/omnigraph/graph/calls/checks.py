"""Check calls: the queries that have to hold on a branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.branch.apply_checks import ChecksResult
    from omnigraph.errors import CheckFailure
    from omnigraph.manifest.checks import Check


class CheckCalls(GraphPart):
    """Checks of a branch."""

    def checks(self, branch: str = MAIN) -> list[Check]:
        """The checks of a branch or another revision, by name."""
        from omnigraph.manifest.revisions import find_revision

        self._session.read_contract()
        found = find_revision(self._session.coordinator, branch).checks
        return [found[name] for name in sorted(found)]

    def apply_checks(
        self,
        checks: str | Path | Sequence[Check | str | Path],
        *,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ChecksResult:
        """Make these the checks of a branch, as one commit; others that it has go.

        A directory stands for its `.gq` files, with their settings in `checks.yaml`.

        Raises:
            BadRequestError: A query does not fit the schema, or is no read without parameters.
            ChecksFailed: A new check does not hold now. Nothing is changed.
        """
        from omnigraph.branch.apply_checks import apply_checks
        from omnigraph.commit_note import read_note
        from omnigraph.graph.check_files import read_checks
        from omnigraph.manifest.checks import Check

        given = [checks] if isinstance(checks, str | Path) else list(checks)
        files = read_checks([each for each in given if not isinstance(each, Check)])
        wanted = [*files, *(each for each in given if isinstance(each, Check))]
        session, target = self._session, canonical_branch(branch)
        who = session.permit(Action.SCHEMA_APPLY, actor=actor, target_branch=target)
        catalog, note = session.require_writable(target).catalog, read_note(message, metadata)
        environment = session.environment()
        return apply_checks(environment, catalog, target, wanted, actor=who, note=note)

    def run_checks(self, branch: str = MAIN) -> list[CheckFailure]:
        """The checks of a branch or another revision that do not hold there, with their rows."""
        from omnigraph.write.checks import run_checks

        session = self._session
        catalog, snapshot = session.read((branch, None, None, None))
        checks = [snapshot.checks[name] for name in sorted(snapshot.checks)]
        return run_checks(checks, snapshot, catalog, session.store.tables, session.cache)
