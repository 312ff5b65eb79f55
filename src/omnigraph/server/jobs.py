"""Jobs: writes that can be long, as values that run in this process or another.

A job gets the open graph, the body of the request, and a function that checks the policy for what
the body turns out to contain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from omnigraph.branch.extent import estimate_differing_rows
from omnigraph.branch.merge import MergePreview, MergeResult
from omnigraph.branch.merge_request import MergeRequest
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import (
    BadRequestError,
    BranchNotFound,
    CommitNotFound,
    ConflictError,
    ExpectedVersionMismatch,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.graph import Commit, Graph
from omnigraph.graph.graph import get_session
from omnigraph.graph.merge_requests import complete_request
from omnigraph.manifest import Snapshot
from omnigraph.pipeline.mapping import list_patterns
from omnigraph.pipeline.ranges import is_text
from omnigraph.pipeline.spooled import SpooledFiles, showing_names
from omnigraph.server.fence import with_heads
from omnigraph.server.graphs import OpenGraph
from omnigraph.server.json_values import parse_json, validate
from omnigraph.server.request_models import IngestRequest, resolve_branch
from omnigraph.server.strict_lines import check_lines
from omnigraph.undo_calls import RestoreCall, UndoCall
from omnigraph.wire import (
    blob_written_to_json,
    embed_to_json,
    load_to_json,
    preview_to_json,
    undone_to_json,
)

DEFAULT_MODE = "merge"
LONG_BYTES = 64 * 1024
"""A shorter load takes no longer than a mutation."""
LONG_ROWS = 256
"""A merge of fewer rows takes no longer than a few mutations, nor do their vectors."""

UNTYPED = "data"
"""What a file is sent as whose type is not said."""

Body: TypeAlias = bytes | bytearray


@dataclass(frozen=True, slots=True)
class Load:
    """Where records go and how they meet existing rows."""

    branch: str
    base: str | None
    mode: str
    embed: bool
    actor: str | None
    note: CommitNote = NO_NOTE


@dataclass(slots=True)
class Upload:
    """Files on disk, by the name of their type or as `data`, and how they are mapped."""

    spooled: SpooledFiles
    files: list[tuple[str, str]] = field(default_factory=list)
    mapping: str | None = None
    directory: str | None = None
    size: int = 0


Permit: TypeAlias = Callable[[Load], None]
"""Raises PolicyError when the caller may not load that."""


class Job(Protocol):
    """A write that can be long. It can be pickled."""

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        """Whether it may keep a processor busy for a while."""

    def weigh(self, body: Body) -> int:
        """How many bytes of input it has."""

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        """Run the job and return the body of the answer."""


@dataclass(frozen=True, slots=True)
class LoadDocument:
    """Load the records of a JSON body. It is parsed here, since a long one takes a while."""

    actor: str | None
    depth_max: int

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return self.weigh(body) >= LONG_BYTES

    def weigh(self, body: Body) -> int:
        return len(body)

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        request = validate(IngestRequest, parse_json(body, self.depth_max))
        base = None if request.from_ is None else resolve_branch(request.from_)
        mode = request.mode or DEFAULT_MODE
        branch, note = resolve_branch(request.branch), request.note
        wanted = Load(branch, base, mode, request.embed, self.actor, note)
        permit(wanted)
        return _load_text(opened.graph, wanted, request.data, ignore_members=True)


@dataclass(frozen=True, slots=True)
class LoadLines:
    """Load the lines of a body, by the strict grammar. The caller was authorized already."""

    wanted: Load
    line_bytes_max: int

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return self.weigh(body) >= LONG_BYTES

    def weigh(self, body: Body) -> int:
        return len(body)

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        return _load_text(opened.graph, self.wanted, check_lines(bytes(body), self.line_bytes_max))


@dataclass(frozen=True, slots=True)
class LoadFiles:
    """Load the files of an upload. The caller was authorized already."""

    wanted: Load
    upload: Upload
    is_preview: bool

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return self.weigh(body) >= LONG_BYTES

    def weigh(self, body: Body) -> int:
        return self.upload.size

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        source = self._source()
        if not self.is_preview:
            return _load(opened.graph, self.wanted, **source)
        wanted, graph = self.wanted, opened.graph
        _look_at_target(graph, wanted)
        preview = graph.load(dry_run=True, **source, **_load_options(wanted))
        return preview_to_json(preview, graph.uri, wanted.branch, wanted.mode)

    def _source(self) -> dict[str, Any]:
        upload = self.upload
        if upload.mapping is not None:
            # A client must not make the server read its own files.
            with showing_names():
                list_patterns(upload.mapping)
            return {"mapping": upload.mapping, "data": upload.directory}
        by_type: dict[str, list[str]] = {}
        for name, path in upload.files:
            by_type.setdefault(name, []).append(path)
        if len(by_type) > 1 and UNTYPED in by_type:
            raise BadRequestError(
                "the form has files as `data` and by type — send all of them by type, or a mapping"
            )
        return {"data": by_type.get(UNTYPED, by_type)}


@dataclass(frozen=True, slots=True)
class Embed:
    """Make the vectors that are missing, or all of them."""

    branch: str
    types: tuple[str, ...] | None
    remakes: bool
    actor: str | None
    note: CommitNote = NO_NOTE

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        try:
            entries = opened.graph.snapshot(self.branch).entries.values()
        except OmnigraphError:
            return False  # the run says what is wrong
        return sum(entry.row_count for entry in entries) >= LONG_ROWS

    def weigh(self, body: Body) -> int:
        return 0

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        result = opened.graph.embed(
            branch=self.branch,
            types=self.types,
            reembed_all=self.remakes,
            actor=self.actor,
            message=self.note.message,
            metadata=self.note.metadata,
        )
        return embed_to_json(result, opened.graph.uri)


@dataclass(frozen=True, slots=True)
class PutBlob:
    """Write the bytes of a file into one Blob. The caller was authorized already."""

    cell: tuple[str, str, str, str]
    path: str
    size: int
    branch: str
    if_match: str | None
    actor: str | None
    note: CommitNote

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return self.size >= LONG_BYTES

    def weigh(self, body: Body) -> int:
        return 0  # it goes through no memory, so it may run in the server as well

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        graph = opened.graph
        result = graph.write_blob(
            *self.cell,
            Path(self.path),
            branch=self.branch,
            if_match=self.if_match,
            actor=self.actor,
            message=self.note.message,
            metadata=self.note.metadata,
        )
        commit = find_commit(graph, result.commit_id)
        etag = graph.read_blob(*self.cell, commit=result.commit_id).etag
        return blob_written_to_json(self.branch, self.size, etag, self.actor, commit)


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge one branch into another, and delete the source afterwards if that is wanted.

    Whether the caller may delete it was asked before; `delete_refusal` says why not.
    """

    source: str
    target: str
    actor: str | None
    deletes: bool
    resolution: Any = None
    note: CommitNote = NO_NOTE
    delete_refusal: str | None = None

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        # Most merges are small, and done before another process has read the two branches.
        session = get_session(opened.graph)
        try:
            heads = (session.coordinator.fresh(each) for each in (self.source, self.target))
            rows = estimate_differing_rows(session.store.tables, *(e.snapshot() for e in heads))
        except OmnigraphError:
            return False  # the merge says what is wrong
        return rows >= LONG_ROWS

    def weigh(self, body: Body) -> int:
        return 0

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        merged = opened.graph.merge(
            self.source,
            self.target,
            actor=self.actor,
            resolve=self.resolution,
            message=self.note.message,
            metadata=self.note.metadata,
        )
        return (self.delete_source(opened, merged) if self.deletes else merged).to_json()

    def delete_source(self, opened: OpenGraph, merged: MergeResult) -> MergeResult:
        """Delete the source, if the actor may. The merge stands in any case."""
        if self.delete_refusal is not None:
            return replace(merged, branch_deleted=False, branch_delete_error=self.delete_refusal)
        try:
            opened.graph.delete_branch(merged.source, actor=self.actor)
        except OmnigraphError as error:
            return replace(merged, branch_deleted=False, branch_delete_error=str(error))
        return replace(merged, branch_deleted=True)


@dataclass(frozen=True, slots=True)
class CompleteRequest:
    """Merge a merge request. The caller was authorized for these branches."""

    number: int
    source: str
    target: str
    actor: str | None
    head: str | None = None
    deletes: bool = False
    resolution: Any = None
    delete_refusal: str | None = None

    def _to_merge(self) -> Merge:
        names = self.source, self.target, self.actor
        return Merge(*names, self.deletes, delete_refusal=self.delete_refusal)

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        return self._to_merge().is_long(opened, body)

    def weigh(self, body: Body) -> int:
        return 0

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        merged = complete_request(
            get_session(opened.graph),
            self.number,
            self._permit,
            head=self.head,
            resolution=self.resolution,
        )
        done = self._to_merge().delete_source(opened, merged) if self.deletes else merged
        return {"number": self.number, **done.to_json()}

    def _permit(self, request: MergeRequest) -> str | None:
        if (request.source, request.target) != (self.source, self.target):
            raise ConflictError(
                f"merge request {self.number} is into '{request.target}' by now — nothing was "
                "merged; look at it again"
            )
        return self.actor


@dataclass(frozen=True, slots=True)
class Undo:
    """Revert, cherry-pick or restore. The caller was authorized already."""

    asked: UndoCall
    actor: str | None
    note: CommitNote = NO_NOTE

    def is_long(self, opened: OpenGraph, body: Body) -> bool:
        graph, asked = opened.graph, self.asked
        try:
            if isinstance(asked, RestoreCall):
                pairs = [(asked.revision, asked.branch)]
            else:
                pairs = [(each, f"{each}~1") for each in asked.commits]
            tables = get_session(graph).store.tables
            rows = 0
            for pair in pairs:
                rows += estimate_differing_rows(tables, *map(graph.snapshot, pair))
                if rows >= LONG_ROWS:
                    return True
        except OmnigraphError:
            return False  # the run says what is wrong
        return not pairs  # a session: how much it did is not known before it is looked at

    def weigh(self, body: Body) -> int:
        return 0

    def run(self, opened: OpenGraph, body: Body, permit: Permit) -> dict[str, Any]:
        note = {"message": self.note.message, "metadata": self.note.metadata}
        done = self.asked.ask(opened.graph, self.actor, **note)
        assert not isinstance(done, MergePreview)
        commit = find_commit(opened.graph, done.commit_id)
        return undone_to_json(done, self.asked, self.actor, commit)


def find_commit(graph: Graph, commit_id: str | None) -> Commit | None:
    """The commit of a write; None when there is none, or its branch is deleted by now."""
    if commit_id is None:
        return None
    try:
        return graph.commit(commit_id)
    except CommitNotFound:
        return None


def _load_text(
    graph: Graph, wanted: Load, data: str, *, ignore_members: bool = False
) -> dict[str, Any]:
    """Load text; a client must not make the server read the file of a path."""
    if not is_text(data):
        raise BadRequestError("`data` should be records, one JSON object per line")
    return _load(graph, wanted, data=data, ignore_members=ignore_members)


def _load(graph: Graph, wanted: Load, **source: Any) -> dict[str, Any]:
    seen = _look_at_target(graph, wanted)
    try:
        result = graph.load(**source, **_load_options(wanted))
    except ExpectedVersionMismatch as error:
        raise (with_heads(error, graph, seen) if wanted.base is None else error) from None
    commit = find_commit(graph, result.commit_id)
    return load_to_json(result, graph.uri, commit, wanted.actor)


def _load_options(wanted: Load) -> dict[str, Any]:
    return {
        "mode": wanted.mode,
        "branch": wanted.branch,
        "base": wanted.base,
        "actor": wanted.actor,
        "embed": wanted.embed,
        "message": wanted.note.message,
        "metadata": wanted.note.metadata,
    }


def _look_at_target(graph: Graph, wanted: Load) -> Snapshot:
    """What the load will find.

    Raises:
        NotFoundError: The branch is not there and nothing says what to make it from.
    """
    try:
        return graph.snapshot(wanted.branch if wanted.base is None else wanted.base)
    except BranchNotFound as missing:
        if wanted.base is not None:
            raise
        raise NotFoundError(
            f"branch '{missing.branch}' not found; pass `from` to create it"
        ) from None
