"""Answers about the server, its graphs and its jobs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from omnigraph.server.response_models.base import ResponseModel


class HealthOutput(ResponseModel):
    status: Literal["ok"]
    version: str
    internal_schema_version: int
    source_version: str | None = None


class ConfigurationState(ResponseModel):
    state: Literal["current", "refused", "restart_needed"]
    loaded_at: str


class ReadyOutput(ResponseModel):
    status: Literal["ready"]
    graphs: int
    configuration: ConfigurationState


class GraphItem(ResponseModel):
    graph_id: str
    uri: str


class GraphsOutput(ResponseModel):
    graphs: list[GraphItem]


class PermissionsOutput(ResponseModel):
    actor_id: str | None
    actions: list[str] = Field(description="What the caller may do on some branch.")


class JobProgress(ResponseModel):
    done: int
    total: int
    step: str


class JobFailure(ResponseModel):
    error: str
    code: str | None = None


class JobOutput(ResponseModel):
    job_id: str
    kind: Literal["optimize", "ensure_indices", "cleanup", "repair", "verify"]
    options: dict[str, Any]
    state: Literal["queued", "running", "succeeded", "failed", "interrupted"]
    actor_id: str | None
    created_at: int = Field(description="Microseconds since 1970-01-01, UTC.")
    started_at: int | None
    ended_at: int | None
    progress: JobProgress | None
    report: dict[str, Any] | None = Field(description="Left out of lists.", default=None)
    error: JobFailure | None


class JobsOutput(ResponseModel):
    jobs: list[JobOutput]


class DoctorOutput(ResponseModel):
    """What `omnigraph doctor --json` prints."""

    model_config = ConfigDict(extra="allow")
