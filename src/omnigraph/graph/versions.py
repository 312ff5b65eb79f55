"""Versions: the calls of a graph that name states of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.manifest import MAIN
from omnigraph.policy import Action

if TYPE_CHECKING:
    from omnigraph.graph.session import Session
    from omnigraph.manifest.tags import Tag


class VersionCalls:
    """What `Graph` can do with its past; a part of that class."""

    _session: Session

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
