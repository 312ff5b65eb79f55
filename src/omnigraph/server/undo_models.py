"""Undo models: the bodies of revert, cherry-pick and restore."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from omnigraph.server.request_models import NotedModel, StrictModel, resolve_branch
from omnigraph.undo_calls import PickCall, RestoreCall, RevertCall

Resolve = Annotated[
    Literal["ours", "theirs"] | dict[str, Any] | list[dict[str, Any]] | None,
    Field(
        description="How conflicts are decided: `ours` (the branch), `theirs`, or one by one; of a "
        "row, `take` may name properties."
    ),
]


class ListedModel(StrictModel):
    """How much a preview lists."""

    changes_max: int | None = Field(
        None, ge=0, description="How many changes a preview lists; its counts are of all of them."
    )


class RevertBody(StrictModel):
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


class RevertPreviewRequest(RevertBody, ListedModel):
    """What to preview, and how many of its changes to list."""


class RevertRequest(RevertBody, NotedModel):
    """Commits to take back, and why."""


class PickBody(StrictModel):
    """Commits to make again on another branch."""

    commits: list[str] = Field(description="Commits, as ids or revisions, in their order.")
    into: str = Field(description="The branch to change.")
    resolve: Resolve = None

    def to_call(self) -> PickCall:
        return PickCall(self.commits, resolve_branch(self.into), self.resolve)


class PickPreviewRequest(PickBody, ListedModel):
    """What to preview, and how many of its changes to list."""


class PickRequest(PickBody, NotedModel):
    """Commits to make again on another branch, and why."""


class RestoreBody(StrictModel):
    """A state to go back to: all of it, or some types or ids."""

    from_: str = Field(alias="from", description="The state: a branch, tag or commit.")
    types: list[str] | None = Field(None, description="Only these types.")
    ids: list[str] | None = Field(None, description="Only nodes and edges with these ids.")
    branch: str | None = Field(None, description="The branch to change; `main` by default.")

    def to_call(self) -> RestoreCall:
        return RestoreCall(self.from_, resolve_branch(self.branch), self.types, self.ids)


class RestorePreviewRequest(RestoreBody, ListedModel):
    """What to preview, and how many of its changes to list."""


class RestoreRequest(RestoreBody, NotedModel):
    """A state to go back to, and why."""
