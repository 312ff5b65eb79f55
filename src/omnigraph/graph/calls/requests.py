"""Request calls: what a graph can do with merge requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from omnigraph.graph.calls.part import GraphPart
from omnigraph.manifest import MAIN
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.merge import MergeResult
    from omnigraph.branch.merge_request import MergeRequest, RequestList
    from omnigraph.graph.merge_requests import RequestPreview
    from omnigraph.pipeline.progress import Listener


class RequestCalls(GraphPart):
    """What `Graph` can do with merge requests; a part of that class."""

    def open_merge_request(
        self,
        source: str,
        into: str = MAIN,
        *,
        title: str,
        description: str | None = None,
        reviewers: Sequence[str] = (),
        actor: str | None = None,
    ) -> MergeRequest:
        """Ask for a branch to be reviewed and merged into another. Nothing is merged yet."""
        from omnigraph.graph.merge_requests import open_request

        names = canonical_branch(source), canonical_branch(into)
        who = self._session.permit(
            Action.MERGE_REQUEST, actor=actor, branch=names[0], target_branch=names[1]
        )
        return open_request(
            self._session,
            *names,
            title=title,
            description=description,
            reviewers=reviewers,
            actor=who,
        )

    def merge_requests(
        self, state: str = "open", *, limit: int | None = None, before: int | None = None
    ) -> RequestList:
        """The merge requests that are open, merged or closed, or all, newest first.

        With `before` those of smaller numbers. They come without what only `merge_request` works
        out, such as which approvals count.
        """
        from omnigraph.graph.merge_requests import list_requests

        return list_requests(self._session, state, limit=limit, before=before)

    def merge_request(self, number: int) -> MergeRequest:
        """A merge request as it is now: what was said, which approvals count, what is missing.

        Raises:
            MergeRequestNotFound: There is none of that number.
        """
        from omnigraph.graph.merge_requests import find_request

        return find_request(self._session, number)

    def preview_merge_request(self, number: int) -> RequestPreview:
        """What merging an open request would do now, and the checks that the merge is held to."""
        from omnigraph.graph.merge_requests import preview_request

        return preview_request(self._session, number)

    def edit_merge_request(
        self,
        number: int,
        *,
        title: str | None = None,
        description: str | None = None,
        reviewers: Sequence[str] | None = None,
        target: str | None = None,
        actor: str | None = None,
    ) -> MergeRequest:
        """Change what is given. Approvals are of one target: another one needs new ones."""
        from omnigraph.graph.merge_requests import edit_request

        changed = {
            "title": title,
            "description": description,
            "reviewers": reviewers,
            "target": target,
        }
        permit = self._permit_request(actor)
        return edit_request(self._session, number, permit, changed)

    def comment_on_merge_request(
        self,
        number: int,
        text: str,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        id: str | None = None,  # noqa: A002 — the API names it so
        property: str | None = None,  # noqa: A002 — the API names it so
        actor: str | None = None,
    ) -> MergeRequest:
        """Say something about a request, or about a type, an entity or a property of one."""
        from omnigraph.graph.merge_requests import comment_on_request

        permit = self._permit_request(actor)
        return comment_on_request(self._session, number, permit, text, (type, id, property))

    def approve_merge_request(
        self,
        number: int,
        *,
        head: str | None = None,
        text: str | None = None,
        actor: str | None = None,
    ) -> MergeRequest:
        """Approve the source as it is now; with `head`, only while that commit is its head.

        An approval counts for that head and the present target, unless it is the author's.

        Raises:
            SourceMoved: The source has another head.
        """
        from omnigraph.branch.merge_request import EventKind
        from omnigraph.graph.merge_requests import give_verdict

        permit = self._permit_verdict(actor)
        kind = EventKind.APPROVED
        return give_verdict(self._session, number, permit, kind, head=head, text=text)

    def request_changes(
        self, number: int, text: str | None = None, *, actor: str | None = None
    ) -> MergeRequest:
        """Object to a merge. Where approvals are required, that stands in its way.

        It stands until the same actor approves or withdraws it.
        """
        from omnigraph.branch.merge_request import EventKind
        from omnigraph.graph.merge_requests import give_verdict

        permit = self._permit_verdict(actor)
        return give_verdict(self._session, number, permit, EventKind.CHANGES_REQUESTED, text=text)

    def withdraw_approval(self, number: int, *, actor: str | None = None) -> MergeRequest:
        """Take back what the actor has approved or objected to."""
        from omnigraph.graph.merge_requests import withdraw_verdict

        permit = self._permit_verdict(actor)
        return withdraw_verdict(self._session, number, permit)

    def close_merge_request(
        self, number: int, text: str | None = None, *, actor: str | None = None
    ) -> MergeRequest:
        """Close a request that is not to be merged; `reopen_merge_request` opens it again."""
        from omnigraph.graph.merge_requests import close_request

        permit = self._permit_request(actor)
        return close_request(self._session, number, permit, text)

    def reopen_merge_request(
        self, number: int, text: str | None = None, *, actor: str | None = None
    ) -> MergeRequest:
        """Open a closed request again."""
        from omnigraph.graph.merge_requests import reopen_request

        permit = self._permit_request(actor)
        return reopen_request(self._session, number, permit, text)

    def complete_merge_request(
        self,
        number: int,
        *,
        head: str | None = None,
        resolve: Resolution | None = None,
        delete_branch: bool = False,
        actor: str | None = None,
        progress: Listener | bool | None = None,
    ) -> MergeResult:
        """Merge the source of a request, as one commit or not at all; see `merge`.

        The commit has the title as its message, and `merge_request` in its metadata. With `head`,
        only while that commit is the head of the source.

        Raises:
            ApprovalsMissing: The policy asks for more approvals of what the source is now.
            MergeRequestNotOpen: It is merged or closed.
            SourceMoved: The source moved on meanwhile.
            MergeConflicts: The branches cannot be joined as they are. The request stays open.
            ChecksFailed: A check does not hold for what the merge would leave. It stays open.
        """
        from omnigraph.graph.merge_requests import complete_request
        from omnigraph.pipeline.progress import reporting_work

        session = self._session
        session.permit_somewhere(Action.BRANCH_MERGE, actor=actor)

        def permit(request: MergeRequest) -> str | None:
            names = {"branch": request.source, "target_branch": request.target}
            who = session.permit(Action.BRANCH_MERGE, actor=actor, **names)
            if delete_branch:
                session.permit(Action.BRANCH_DELETE, actor=who, target_branch=request.source)
            return who

        with reporting_work(progress):
            return complete_request(
                session, number, permit, head=head, resolution=resolve, deletes=delete_branch
            )

    def _permit_request(self, actor: str | None) -> Callable[[MergeRequest], str | None]:
        return self._permit_action(Action.MERGE_REQUEST, actor)

    def _permit_verdict(self, actor: str | None) -> Callable[[MergeRequest], str | None]:
        return self._permit_action(Action.MERGE_APPROVE, actor)

    def _permit_action(
        self, action: Action, actor: str | None
    ) -> Callable[[MergeRequest], str | None]:
        session = self._session
        session.permit_somewhere(action, actor=actor)

        def permit(request: MergeRequest) -> str | None:
            names = {"branch": request.source, "target_branch": request.target}
            return session.permit(action, actor=actor, **names)

        return permit
