"""What response models share."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


Outcome = Literal["already_up_to_date", "fast_forward", "merged"]
EntityKind = Literal["node", "edge"]


class Commit(ResponseModel):
    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970-01-01, UTC.")
    message: str | None
    metadata: dict[str, str]
    graph_branch: str | None
    graph_manifest_version: int


class CommitsOutput(ResponseModel):
    commits: list[Commit]
    notes: list[str] = Field(default=[], description="What is not stored any more, or hidden.")
