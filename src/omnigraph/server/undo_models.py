"""Undo models: the bodies of revert, cherry-pick and restore."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from omnigraph.server.request_models import NotedModel, StrictModel, resolve_branch
from omnigraph.undo_calls import PickCall, RestoreCall, RevertCall

Resolve = Annotated[
    Literal["ours", "theirs"] | dict[str, Any] | list[dict[str, Any]] | None,
    Field(description="How conflicts are decided: `ours` (the branch), `theirs`, or one by one."),
]


class RevertPreviewRequest(StrictModel):
    """Commits to take back: by name, or those of an actor or a session, since a time."""

    commits: list[str] = Field(default_factory=list, description="Commits, as ids or revisions.")
    actor: str | None = Field(None, description="All commits of this actor, instead of names.")
    session: str | None = Field(
        None, description="All commits with this `session` in their metadata, instead of names."
    )
    since: str | None = Field(None, description="Only those made since this time.")
    branch: str | None = Field(None, description="The branch to change; `main` by default.")
    resolve: Resolve = None

    def to_call(self) -> RevertCall:
        chosen = self.actor, self.session, self.since
        return RevertCall(self.commits, resolve_branch(self.branch), *chosen, self.resolve)


class RevertRequest(RevertPreviewRequest, NotedModel):
    """Commits to take back, and why."""


class PickPreviewRequest(StrictModel):
    """Commits to make again on another branch."""

    commits: list[str] = Field(description="Commits, as ids or revisions, in their order.")
    into: str = Field(description="The branch to change.")
    resolve: Resolve = None

    def to_call(self) -> PickCall:
        return PickCall(self.commits, resolve_branch(self.into), self.resolve)


class PickRequest(PickPreviewRequest, NotedModel):
    """Commits to make again on another branch, and why."""


class RestorePreviewRequest(StrictModel):
    """A state to go back to: all of it, or some types or ids."""

    from_: str = Field(alias="from", description="The state: a branch, tag or commit.")
    types: list[str] | None = Field(None, description="Only these types.")
    ids: list[str] | None = Field(None, description="Only nodes and edges with these ids.")
    branch: str | None = Field(None, description="The branch to change; `main` by default.")

    def to_call(self) -> RestoreCall:
        return RestoreCall(self.from_, resolve_branch(self.branch), self.types, self.ids)


class RestoreRequest(RestorePreviewRequest, NotedModel):
    """A state to go back to, and why."""
