"""LocalGraph: a graph in a store behind `GraphCommands`, answering in the JSON of the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from omnigraph import wire
from omnigraph.cli.graph_commands import Json, LoadFiles, StoreOptions
from omnigraph.cli.local_requests import LocalRequests
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.graph import Graph
from omnigraph.manifest.checks import Check
from omnigraph.undo_calls import UndoCall

if TYPE_CHECKING:
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.graph import MutationResult
    from omnigraph.pipeline.progress import Listener
    from omnigraph.upkeep.job_records import JobRecords


@dataclass(frozen=True, slots=True)
class LocalGraph(LocalRequests):
    """One open graph. `uri` is as the caller wrote it, `actor` is who writes."""

    graph: Graph
    uri: str
    actor: str | None = None
    options: StoreOptions = field(default_factory=StoreOptions)
    progress: bool = False
    told: Listener | None = None
    """Is told how far merges, comparisons and schema changes are."""

    def snapshot(self, branch: str) -> Json:
        return wire.snapshot_to_json(self.graph.snapshot(branch))

    def query(self, query: wire.QueryCall) -> Json:
        result = self.graph.query(
            _require_source(query),
            query.name,
            query.params,
            branch=query.branch or "main",
            commit=query.snapshot,
            at=self.options.at,
            schema=query.schema_of or "commit",
            engine=self.options.engine,
        )
        return wire.read_to_json(result, wire.read_target(result, query.snapshot))

    def mutate(
        self, query: wire.QueryCall, *, if_commit: str | None, note: CommitNote = NO_NOTE
    ) -> Json:
        source, branch = _require_source(query), query.branch or "main"
        result = self.graph.mutate(
            source,
            query.name,
            query.params,
            branch=branch,
            if_commit=if_commit,
            message=note.message,
            metadata=note.metadata,
        )
        commit = self.graph.commit(result.commit_id) if result.commit_id else None
        return wire.change_to_json(
            result, branch=branch, query_name=query.name or "", actor=self.actor, commit=commit
        )

    def queries(self) -> Json:
        return {"queries": []}

    def load(
        self,
        data: LoadFiles,
        *,
        mode: str,
        branch: str,
        base: str | None,
        embed: bool,
        mapping: str | None = None,
        dry_run: bool = False,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        files = _list_files(data, is_mapped=mapping is not None)
        options: dict[str, Any] = {
            "mode": mode,
            "branch": branch,
            "base": base,
            "engine": self.options.engine,
            "on_error": self.options.on_error,
            "embed": embed,
            "progress": self.progress,
            "mapping": mapping,
            "message": note.message,
            "metadata": note.metadata,
        }
        if dry_run:
            preview = self.graph.load(files, dry_run=True, **options)
            return wire.preview_to_json(preview, self.uri, branch, mode)
        result = self.graph.load(files, **options)
        commit = self.graph.commit(result.commit_id) if result.commit_id else None
        return wire.load_to_json(result, self.uri, commit, self.actor)

    def embed(
        self,
        *,
        branch: str,
        types: Sequence[str] | None,
        reembed_all: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        result = self.graph.embed(
            branch=branch,
            types=types,
            reembed_all=reembed_all,
            engine=self.options.engine,
            progress=self.progress,
            message=note.message,
            metadata=note.metadata,
        )
        return wire.embed_to_json(result, self.graph.uri)

    def export(
        self, *, branch: str, types: Sequence[str], table_keys: Sequence[str]
    ) -> Iterator[str]:
        records = self.graph.export(
            branch=branch,
            commit=self.options.snapshot,
            types=[*types, *table_keys] or None,
            schema=self.options.schema_of or "commit",
        )
        yield from map(_to_line, records)

    def schema(self, branch: str | None = None) -> Json:
        return {"schema_source": self.graph.branch_schema(branch or "main")}

    def apply_schema(
        self,
        text: str,
        *,
        branch: str | None,
        allow_data_loss: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        result = self.graph.apply_schema(
            text,
            branch=branch or "main",
            allow_data_loss=allow_data_loss,
            message=note.message,
            metadata=note.metadata,
            progress=self.told,
        )
        return wire.schema_applied_to_json(result, self.uri)

    def branches(self) -> Json:
        return {"branches": self.graph.branches()}

    def create_branch(self, name: str, source: str) -> Json:
        made = self.graph.create_branch(name, from_=source)
        return wire.branch_created_to_json(self.uri, source, made.branch, self.actor)

    def delete_branch(self, name: str) -> Json:
        self.graph.delete_branch(name)
        return wire.removed_to_json(self.uri, name, self.actor)

    def reset_branch(self, name: str, to: str, *, if_commit: str | None, preview: bool) -> Json:
        done = self.graph.reset_branch(name, to, if_commit=if_commit, preview=preview)
        return wire.reset_to_json(done, self.actor)

    def checks(self, branch: str) -> Json:
        return wire.checks_to_json(self.graph.checks(branch))

    def apply_checks(
        self, checks: Sequence[Check], *, branch: str, note: CommitNote = NO_NOTE
    ) -> Json:
        done = self.graph.apply_checks(
            checks, branch=branch, message=note.message, metadata=note.metadata
        )
        return done.to_json()

    def run_checks(self, branch: str) -> Json:
        return wire.check_failures_to_json(self.graph.run_checks(branch))

    def tags(self) -> Json:
        return wire.tags_to_json(self.graph.tags())

    def create_tag(self, name: str, at: str, message: str | None) -> Json:
        return self.graph.tag(name, at, message).to_json()

    def delete_tag(self, name: str) -> Json:
        self.graph.delete_tag(name)
        return wire.removed_to_json(self.uri, name, self.actor)

    def merge(
        self,
        source: str,
        target: str,
        *,
        delete_branch: bool,
        resolve: Any = None,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        result = self.graph.merge(
            source,
            target,
            delete_branch=delete_branch,
            resolve=resolve,
            message=note.message,
            metadata=note.metadata,
            progress=self.told,
        )
        return result.to_json()

    def preview_merge(self, source: str, target: str, *, resolve: Any) -> Json:
        found = self.graph.merge(source, target, preview=True, resolve=resolve, progress=self.told)
        return {**wire.merge_preview_to_json(found), "changes": found.changes.to_json()}

    def undo(self, asked: UndoCall, note: CommitNote) -> Json:
        said: Any = {"message": note.message, "metadata": note.metadata}
        done = cast("MergeResult | MutationResult", asked.ask(self.graph, None, **said))
        commit = self.graph.commit(done.commit_id) if done.commit_id else None
        return wire.undone_to_json(done, asked, self.actor, commit)

    def preview_undo(self, asked: UndoCall) -> Json:
        found = cast("MergePreview", asked.ask(self.graph, None, preview=True))
        return {**wire.merge_preview_to_json(found), "changes": found.changes.to_json()}

    def diff(self, before: str, after: str, *, types: Sequence[str] | None) -> Json:
        return self.graph.diff(before, after, types=types, progress=self.told).to_json()

    def diff_lines(self, before: str, after: str, *, types: Sequence[str] | None) -> Iterator[str]:
        return self.graph.diff(before, after, types=types, progress=self.told).to_jsonl()

    def diff_html(self, before: str, after: str, *, types: Sequence[str] | None) -> str:
        return self.graph.diff_html(before, after, types=types)

    def commit_changes(self, commit_id: str, asked: wire.FeedPart) -> Json:
        return self.graph.commit_changes(commit_id, **asked.page, **asked.filters).to_json()

    def poll_changes(self, branch: str, asked: wire.FeedPart) -> Json:
        page = self.graph.poll_changes(
            branch, cursor=asked.cursor, start=asked.start, **asked.page, **asked.filters
        )
        return page.to_json()

    def change_baseline(self, branch: str, asked: wire.FeedPart) -> Iterator[str]:
        return map(_to_line, self.graph.change_baseline(branch, **asked.filters).to_stream())

    @contextmanager
    def open_blob(self, asked: wire.BlobPlace) -> Iterator[wire.BlobContent]:
        snapshot = asked.snapshot or self.graph.snapshot(asked.branch or "main").head.commit_id
        cell = asked.kind, asked.type_name, asked.entity_id, asked.property_name
        blob = self.graph.read_blob(*cell, commit=snapshot)
        end = blob.size if asked.length is None else asked.offset + asked.length
        parts = blob.read_parts(asked.offset, end)
        yield wire.BlobContent(blob.size, blob.etag, snapshot, parts)

    def put_blob(
        self,
        place: wire.BlobPlace,
        source: Path | IO[bytes],
        *,
        if_match: str | None,
        note: CommitNote,
    ) -> Json:
        cell = place.kind, place.type_name, place.entity_id, place.property_name
        branch = place.branch or "main"
        result = self.graph.write_blob(
            *cell,
            source,
            branch=branch,
            if_match=if_match,
            message=note.message,
            metadata=note.metadata,
        )
        assert result.commit_id is not None
        commit = self.graph.commit(result.commit_id)
        blob = self.graph.read_blob(*cell, commit=commit.commit_id)
        return wire.blob_written_to_json(branch, blob.size, blob.etag, self.actor, commit)

    def commits(self, branch: str, asked: wire.LogPart) -> Json:
        return wire.log_to_json(self.graph, branch, asked, merged=False)

    def commit(self, commit_id: str) -> Json:
        return wire.commit_to_json(self.graph.commit(commit_id))

    def log(self, branch: str, asked: wire.LogPart) -> Json:
        return wire.log_to_json(self.graph, branch, asked, merged=True)

    def history(self, type_name: str, entity_id: str, branch: str) -> Json:
        found = self.graph.history(type_name, entity_id, branch=branch)
        return wire.history_to_json(found, branch)

    def blame(self, type_name: str, entity_id: str, branch: str) -> Json:
        found = self.graph.blame(type_name, entity_id, branch=branch)
        return wire.blame_to_json(found, type_name, entity_id, branch)

    def bisect(self, query: str, *, good: str, bad: str) -> Json:
        return wire.commit_to_json(self.graph.bisect(query, good=good, bad=bad))

    def explain(self, query: wire.QueryCall, *, analyze: bool) -> Json:
        explained = self.graph.explain(
            _require_source(query),
            query.name,
            query.params,
            branch=query.branch or "main",
            analyze=analyze,
            engine=self.options.engine,
        )
        return wire.explanation_to_json(explained)

    def run_upkeep(self, kind: str, options: Mapping[str, Any]) -> Json:
        from omnigraph.graph.calls.upkeep import run_upkeep

        given = {name: value for name, value in options.items() if value is not None}
        return run_upkeep(self.graph, kind, given)

    def doctor(self) -> Json:
        return self.graph.doctor().to_json()

    def jobs(self) -> Json:
        records = self._job_records().list_all()
        return {"jobs": [{**each.to_json(), "report": None} for each in records]}

    def job(self, job_id: str) -> Json:
        return self._job_records().find(job_id).to_json()

    def _job_records(self) -> JobRecords:
        from omnigraph.graph.graph import get_session
        from omnigraph.upkeep.job_records import JobRecords

        return JobRecords(get_session(self.graph).store.texts)


def _to_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def _list_files(data: LoadFiles, *, is_mapped: bool) -> Any:
    if isinstance(data, Mapping):
        return data
    if not is_mapped:
        return list(data)
    return (data[0] if len(data) == 1 else list(data)) if data else None


def _require_source(query: wire.QueryCall) -> Path | str:
    if query.source is None:
        raise BadRequestError(
            f"'{query.name}' without --query or -e is a stored query, and those are on a server — "
            "use --server, or give the query"
        )
    return query.source.path or query.source.text
