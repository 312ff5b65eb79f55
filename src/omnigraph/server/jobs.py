"""Jobs: writes that can be long, loads and merges, as values that run in this process or another.

A job gets the open graph, the body of the request, and a function that checks the policy for what
the body turns out to contain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from omnigraph.branch.extent import estimate_differing_rows
from omnigraph.branch.merge import MergeResult
from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    CommitNotFound,
    ExpectedVersionMismatch,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.graph import Commit, Graph
from omnigraph.graph.graph import get_session
from omnigraph.pipeline.ranges import is_text
from omnigraph.policy import Action
from omnigraph.server.fence import with_heads
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.json_values import parse_json, validate
from omnigraph.server.request_models import IngestRequest, resolve_branch
from omnigraph.server.strict_lines import check_lines
from omnigraph.wire import load_to_json

DEFAULT_MODE = "merge"
LONG_BYTES = 64 * 1024
"""A shorter load takes no longer than a mutation."""
LONG_ROWS = 256
"""A merge of fewer rows takes no longer than a few mutations."""

Body: TypeAlias = bytes | bytearray


@dataclass(frozen=True, slots=True)
class Load:
    """Where records go and how they meet existing rows."""

    branch: str
    base: str | None
    mode: str
    embed: bool
    actor: str | None


Permit: TypeAlias = Callable[[Load], None]
"""Raises PolicyError when the caller may not load that."""


class Job(Protocol):
    """A write that can be long. It can be pickled."""

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        """Whether it may keep a processor busy for a while."""

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        """Run the job and return the body of the answer."""


@dataclass(frozen=True, slots=True)
class LoadDocument:
    """Load the records of a JSON body. It is parsed here, since a long one takes a while."""

    actor: str | None
    depth_max: int

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return len(body) >= LONG_BYTES

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        request = validate(IngestRequest, parse_json(body, self.depth_max))
        base = None if request.from_ is None else resolve_branch(request.from_)
        mode = request.mode or DEFAULT_MODE
        wanted = Load(resolve_branch(request.branch), base, mode, request.embed, self.actor)
        permit(wanted)
        return _load(opened.graph, wanted, request.data, ignore_members=True)


@dataclass(frozen=True, slots=True)
class LoadLines:
    """Load the lines of a body, by the strict grammar. The caller was authorized already."""

    wanted: Load
    line_bytes_max: int

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return len(body) >= LONG_BYTES

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        return _load(opened.graph, self.wanted, check_lines(bytes(body), self.line_bytes_max))


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge one branch into another, and delete the source afterwards if that is wanted."""

    source: str
    target: str
    actor: str | None
    deletes: bool
    resolution: Any = None

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        # Most merges are small, and done before another process has read the two branches.
        session = get_session(opened.graph)
        try:
            heads = (session.coordinator.fresh(each) for each in (self.source, self.target))
            rows = estimate_differing_rows(session.store.tables, *(e.snapshot() for e in heads))
        except OmnigraphError:
            return False  # the merge says what is wrong
        return rows >= LONG_ROWS

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        merged = opened.graph.merge(
            self.source, self.target, actor=self.actor, resolve=self.resolution
        )
        return (self._delete_source(opened, merged) if self.deletes else merged).to_json()

    def _delete_source(self, opened: OpenGraph, merged: MergeResult) -> MergeResult:
        """Delete the source, if the actor may. The merge stands in any case."""
        try:
            opened.gate.require(self.actor, Action.BRANCH_DELETE, target_branch=merged.source)
            opened.graph.delete_branch(merged.source, actor=self.actor)
        except OmnigraphError as error:
            return replace(merged, branch_deleted=False, branch_delete_error=str(error))
        return replace(merged, branch_deleted=True)


def find_commit(graph: Graph, commit_id: str | None) -> Commit | None:
    """The commit of a write; None when there is none, or its branch is deleted by now."""
    if commit_id is None:
        return None
    try:
        return graph.commit(commit_id)
    except CommitNotFound:
        return None


def _load(graph: Graph, wanted: Load, data: str, *, ignore_members: bool = False) -> dict[str, Any]:
    """Load text; a client must not make the server read the file of a path.

    Raises:
        NotFoundError: The branch is not there and nothing says what to make it from.
    """
    if not is_text(data):
        raise BadRequestError("`data` should be records, one JSON object per line")
    try:
        seen = graph.snapshot(wanted.branch if wanted.base is None else wanted.base)
    except BranchNotFound as missing:
        if wanted.base is not None:
            raise
        raise NotFoundError(
            f"branch '{missing.branch}' not found; pass `from` to create it"
        ) from None
    try:
        result = graph.load(
            data,
            mode=wanted.mode,
            branch=wanted.branch,
            base=wanted.base,
            actor=wanted.actor,
            embed=wanted.embed,
            ignore_members=ignore_members,
        )
    except ExpectedVersionMismatch as error:
        raise (with_heads(error, graph, seen) if wanted.base is None else error) from None
    commit = find_commit(graph, result.commit_id)
    return load_to_json(result, graph.uri, commit, wanted.actor)
