"""Branch calls: make, move, merge and remove branches and tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action
from omnigraph.write.recovery import retry_after_recovery

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.branch.reset import ResetResult
    from omnigraph.manifest import Snapshot
    from omnigraph.manifest.tags import Tag
    from omnigraph.pipeline.progress import Listener


class BranchCalls(GraphPart):
    """Branches and tags."""

    def branches(self) -> list[str]:
        """Every branch, `main` first."""
        self._session.read_contract()
        return self._session.coordinator.branches()

    def create_branch(self, name: str, from_: str = MAIN, *, actor: str | None = None) -> Snapshot:
        """Make a branch that shows what the revision `from_` names; nothing is copied."""
        from omnigraph.branch.create import create_branch

        session, made = self._session, canonical_branch(name)
        source = session.find_branch_of(from_)
        session.permit(Action.BRANCH_CREATE, actor=actor, branch=source, target_branch=made)
        session.require_writable()
        return create_branch(session.environment(), name, from_).snapshot()

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch and what only it holds."""
        from omnigraph.branch.delete import delete_branch

        branch = canonical_branch(name)
        self._session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=branch)
        self._session.require_writable()
        delete_branch(self._session.environment(), branch, self._session.store.history)

    def reset_branch(
        self,
        name: str,
        to: str,
        *,
        if_commit: str | None = None,
        preview: bool = False,
        actor: str | None = None,
    ) -> ResetResult:
        """Take a branch that no other branch uses back to an earlier commit of its line.

        What came after it is dropped: no branch knows it any more. A tag on a dropped commit stays
        readable. With `preview` nothing is changed, and the result says what would be dropped.

        Raises:
            BadRequestError: It is `main`, or `to` is not on its line.
            BranchInUse: Another branch comes from a commit that would be dropped.
            PreconditionFailed: The head is not `if_commit`. Nothing was changed.
        """
        from omnigraph.branch.reset import reset_branch

        session, branch = self._session, canonical_branch(name)
        environment = session.environment()
        if preview:
            session.read_contract()
            return reset_branch(environment, branch, to, if_commit=if_commit, is_preview=True)
        session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=branch)
        session.require_writable()
        session.recover()
        return retry_after_recovery(
            environment, None, lambda: reset_branch(environment, branch, to, if_commit=if_commit)
        )

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[False] = ...,
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
        progress: Listener | bool | None = ...,
    ) -> MergeResult: ...

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[True],
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
        progress: Listener | bool | None = ...,
    ) -> MergePreview: ...

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        actor: str | None = None,
        delete_branch: bool = False,
        preview: bool = False,
        resolve: Resolution | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        progress: Listener | bool | None = None,
    ) -> MergeResult | MergePreview:
        """Bring what `source` did into another branch, as one commit or not at all.

        With `preview` nothing is written and the result says what would be. `resolve` decides
        conflicts: `"ours"` keeps what the target has, `"theirs"` what the source has, and a
        mapping or a list says so row by row, or property by property. A merge that changes the
        schema of the target needs the permission to do so. `progress` is told of rows compared and
        written, as that of `load`.

        Raises:
            MergeConflicts: The branches cannot be joined as they are. The target is unchanged.
            ExpectedVersionMismatch: The target changed meanwhile. Merge again.
            ApprovalsMissing: Merges into the target need approvals: open a merge request.
        """
        from omnigraph.branch.merge import preview_merge
        from omnigraph.commit_note import read_note
        from omnigraph.graph.merges import permit_merge, run_merge
        from omnigraph.pipeline.progress import reporting_work

        names = branch, target = canonical_branch(source), canonical_branch(into)
        session = self._session
        if preview:
            catalog = session.read_schema(target).catalog
            with reporting_work(progress):
                return preview_merge(session.environment(), catalog, *names, resolution=resolve)
        who = permit_merge(session, *names, actor)
        if delete_branch:
            session.permit(Action.BRANCH_DELETE, actor=who, target_branch=branch)
        note = read_note(message, metadata)
        facts: dict[str, Any] = {"actor": who, "note": note, "resolution": resolve}
        with reporting_work(progress):
            return run_merge(session, *names, **facts, deletes=delete_branch)

    def tag(
        self, name: str, at: str = MAIN, message: str | None = None, *, actor: str | None = None
    ) -> Tag:
        """Give the commit that a revision names a name. It can be read as long as the tag is there.

        Raises:
            TagExists: The name stands for another commit.
            CommitStateGone: A cleanup has removed the state of the commit.
        """
        from omnigraph.branch.tag import create_tag
        from omnigraph.manifest.revisions import TAG_PREFIX

        session, wanted = self._session, f"{TAG_PREFIX}{name}"
        branch = session.find_branch_of(at)
        who = session.permit(Action.BRANCH_CREATE, actor=actor, branch=branch, target_branch=wanted)
        session.require_writable()
        return create_tag(session.environment(), name, at, message=message, actor=who)

    def tags(self) -> list[Tag]:
        """Every tag, by name."""
        self._session.read_contract()
        return [tag for tag, _ in self._session.coordinator.tags]

    def delete_tag(self, name: str, *, actor: str | None = None) -> None:
        """Remove a tag; its commit stays as long as a cleanup would leave it anyway."""
        from omnigraph.branch.tag import delete_tag
        from omnigraph.manifest.revisions import TAG_PREFIX

        session = self._session
        wanted = f"{TAG_PREFIX}{name}"
        session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=wanted)
        session.require_writable()
        delete_tag(session.environment(), name)
