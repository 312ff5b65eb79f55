"""Loads: what a load of a graph needs around the load itself, and its result."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from omnigraph.branch.create import create_branch
from omnigraph.errors import BadRequestError, BranchExists, BranchNotFound
from omnigraph.graph.results import EmbedResult, LoadResult
from omnigraph.graph.session import Session
from omnigraph.manifest import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.pipeline.embed_rows import EmbedRequest, embed_rows
from omnigraph.pipeline.loader import LoadRequest, preview_load, run_load
from omnigraph.pipeline.preview import LoadPreview
from omnigraph.policy import Action
from omnigraph.write.commit import WriteRequest

_E = TypeVar("_E", bound=StrEnum)


def run_load_request(
    session: Session, request: LoadRequest, base: str | None, if_commit: str | None = None
) -> LoadResult:
    """Run a load that is permitted, into a branch that is created from `base` if it is missing.

    Raises:
        PreconditionFailed: `if_commit` is given and is not the head of the branch.
    """
    schema = find_load_schema(session, request.branch, base)
    created = False

    def write(change: WriteRequest) -> GraphCommit | None:
        nonlocal created
        created = base is not None and _create_if_missing(session, request, base)
        return session.write(replace(change, if_commit=if_commit), schema)

    def see() -> Snapshot:
        return _look_at_target(session, request, base)

    outcome = run_load(session.environment(), schema.catalog, request, write, see)
    notes = (*request.input.notes, *outcome.notes)
    if outcome.edges_added:
        notes = (*notes, _describe_added(outcome.edges_added))
    return LoadResult(
        commit_id=outcome.commit.commit_id if outcome.commit else None,
        branch=request.branch,
        base_branch=base,
        branch_created=created,
        mode=request.mode.value,
        tables=outcome.tables,
        rows_embedded=sum(count.embedded for count in outcome.vectors.values()),
        rows_unembedded=sum(count.left_null for count in outcome.vectors.values()),
        rows_rejected=outcome.rows_rejected,
        engine=outcome.engine,
        quarantine=outcome.quarantine,
        notes=notes,
    )


def preview_load_request(session: Session, request: LoadRequest, base: str | None) -> LoadPreview:
    """Count what a load would do, and write nothing."""
    schema = find_load_schema(session, request.branch, base)

    def see() -> Snapshot:
        return _look_at_target(session, request, base)

    see()
    preview = preview_load(session.environment(), schema.catalog, request, see)
    return replace(preview, notes=request.input.notes)


def _describe_added(count: int) -> str:
    what = "1 edge had no id and was" if count == 1 else f"{count} edges had no id and were"
    them = "it" if count == 1 else "them"
    return (
        f"{what} added; with an id, or a key on the edge type (`@key(src, dst)`), a merge "
        f"replaces {them}"
    )


def run_embed_request(session: Session, request: EmbedRequest) -> EmbedResult:
    """Embed what a permitted request asks for."""
    schema = session.require_writable(request.branch)
    outcome = embed_rows(
        session.environment(), schema.catalog, request, lambda change: session.write(change, schema)
    )
    return EmbedResult(
        branch=request.branch,
        commit_ids=tuple(outcome.commits),
        rows_embedded=outcome.embedded,
        rows_unembedded=outcome.left,
        models=outcome.models,
        notes=tuple(outcome.notes),
        engine=outcome.engine,
    )


def find_load_schema(session: Session, branch: str, base: str | None) -> AcceptedSchema:
    """The schema of the branch to load into, or of the one it will be created from.

    Raises:
        BranchNotFound: There is neither.
    """
    name = canonical_branch(branch)
    try:
        return session.require_writable(name)
    except BranchNotFound:
        if base is None:
            raise
        return session.require_writable(canonical_branch(base))


def _look_at_target(session: Session, request: LoadRequest, base: str | None) -> Snapshot:
    """The branch to load into, or the one it will be created from."""
    try:
        return session.coordinator.fresh(request.branch).snapshot()
    except BranchNotFound:
        if base is None:
            raise
        return session.coordinator.fresh(canonical_branch(base)).snapshot()


def permit_load(
    session: Session, branch: str | None, base: str | None, actor: str | None
) -> str | None:
    """Say who loads; when the branch has to be created, that has to be allowed as well."""
    target = canonical_branch(MAIN if branch is None else branch)
    who = session.permit(Action.CHANGE, actor=actor, branch=target)
    if session.policy is None or base is None or target in session.coordinator.branches():
        return who
    return _permit_branch(session, target, base, who)


def _permit_branch(session: Session, branch: str, base: str, actor: str | None) -> str | None:
    source = canonical_branch(base)
    return session.permit(Action.BRANCH_CREATE, actor=actor, branch=source, target_branch=branch)


def _create_if_missing(session: Session, request: LoadRequest, base: str) -> bool:
    branch = request.branch
    if branch in session.coordinator.branches():
        return False
    # The branch may have been deleted since the load was permitted.
    _permit_branch(session, branch, base, request.actor)
    try:
        create_branch(session.environment(), branch, base)
    except BranchExists:
        return False  # another load created it first
    return True


def parse_option(what: str, given: str, allowed: type[_E]) -> _E:
    """The member of an enumeration that a caller names."""
    try:
        return allowed(given)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in allowed)
        raise BadRequestError(f"{what} is {given!r}, expected one of {known}") from None
