"""Targets: which snapshot a read is about. A branch as it is now, a commit, a version or a time."""

from __future__ import annotations

from datetime import UTC, datetime

from omnigraph.errors import BadRequestError, NotFoundError
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import Snapshot
from omnigraph.types import parse_datetime


def resolve(
    coordinator: Coordinator,
    *,
    branch: str,
    commit: str | None = None,
    version: int | None = None,
    at: datetime | str | None = None,
) -> Snapshot:
    """The snapshot of a read: of the branch now, unless one of the others says which.

    Raises:
        BadRequestError: More than one of them is given.
        NotFoundError: There is no such branch, commit or version, or nothing as old as `at`.
    """
    if sum(given is not None for given in (commit, version, at)) > 1:
        raise BadRequestError("give one of commit, version and at — each names a snapshot")
    if commit is not None:
        return coordinator.snapshot_of(coordinator.commit(commit))
    name = canonical_branch(branch)
    if version is not None:
        return coordinator.at_version(name, version).snapshot()
    if at is not None:
        return _find_at_time(coordinator, name, _to_microseconds(at))
    return coordinator.fresh(name).snapshot()


def _find_at_time(coordinator: Coordinator, branch: str, instant: int) -> Snapshot:
    """The branch as the newest commit that was made by then left it."""
    for commit in coordinator.commits(branch):
        if commit.created_at <= instant:
            return coordinator.snapshot_of(commit)
    raise NotFoundError(f"branch '{branch}' has no commit as old as that — its first one is newer")


def _to_microseconds(at: datetime | str) -> int:
    if isinstance(at, datetime):
        aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1_000_000)
    # A text names a millisecond; everything made within it counts as made by then.
    return parse_datetime(at) * 1_000 + 999
