"""RemoteGraph: one graph of a server, one method per route. Results are the JSON of the wire.

A failed precondition and merge conflicts are raised as the errors of the library; every other error
of a server is a `RemoteError` with its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from omnigraph.client.errors import raise_conflicts
from omnigraph.client.http import Http, Json
from omnigraph.client.remote_requests import RemoteRequests
from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.errors import AddressError, BadRequestError, PreconditionFailed, RemoteError
from omnigraph.pipeline.spooled import show_names
from omnigraph.undo_calls import UndoCall
from omnigraph.wire import BlobContent, BlobPlace, FeedPart, LogPart, QueryCall

if TYPE_CHECKING:
    from omnigraph.manifest.checks import Check

IF_COMMIT_HEADER = "Omnigraph-If-Graph-Commit"
_NO_ROUTE = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
# What a server calls the texts of a query and of a load in its error messages.
_QUERY_NAME, _LOAD_NAME = "query.gq", "data"


def list_graphs(url: str, token: str | None) -> Json:
    """List the graphs of a server."""
    return Http(url, token).call("GET", "/graphs")


def connect(url: str, token: str | None, graph: str | None) -> RemoteGraph:
    """Connect to a graph of a server; without a name, to its only graph.

    Raises:
        AddressError: The server has several graphs.
    """
    server = Http(url, token)
    if graph is None:
        graph = _find_only_graph(server)
    return RemoteGraph(server if graph is None else server.below("graphs", graph))


def _find_only_graph(server: Http) -> str | None:
    """Return the only graph of a server; None if it lists none, since it then is one itself."""
    try:
        listed = server.call("GET", "/graphs").get("graphs", [])
    except RemoteError as error:
        if error.status is None:
            raise
        return None
    names = sorted(str(each["graph_id"]) for each in listed)
    if len(names) > 1:
        raise AddressError(
            f"{server.base} serves several graphs — pick one with --graph: {', '.join(names)}"
        )
    return names[0] if names else None


@dataclass(frozen=True, slots=True)
class RemoteGraph(RemoteRequests):
    """One served graph."""

    http: Http

    @property
    def uri(self) -> str:
        return self.http.base

    def snapshot(self, branch: str) -> Json:
        return self.http.call("GET", "/snapshot", params={"branch": branch})

    def query(self, query: QueryCall) -> Json:
        return self._run(query, "/query", is_mutation=False)

    def mutate(
        self, query: QueryCall, *, if_commit: str | None, note: CommitNote = NO_NOTE
    ) -> Json:
        route, headers = "/mutate", None
        if if_commit is not None:
            route, headers = "/mutate/if-graph-commit", {IF_COMMIT_HEADER: if_commit}
        try:
            return self._run(query, route, is_mutation=True, headers=headers, note=note)
        except RemoteError as error:
            failure = error.details.get("precondition_failure")
            if failure is None:
                raise
            raise PreconditionFailed(
                expected=str(failure.get("expected")), actual=failure.get("actual")
            ) from None

    def _run(
        self,
        query: QueryCall,
        route: str,
        *,
        is_mutation: bool,
        headers: Mapping[str, str] | None = None,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        """Run an ad hoc query, or a stored one, which has to be of the expected kind."""
        body = _drop_missing(
            params=query.params,
            branch=query.branch,
            snapshot=query.snapshot,
            schema_of=query.schema_of,
            **note.to_json(),
        )
        if query.source is None:
            assert query.name is not None
            body["expect_mutation"] = is_mutation
            return self.http.below("queries", query.name).call("POST", "", body=body)
        body |= _drop_missing(query=query.source.text, name=query.name)
        with _name_file(_QUERY_NAME, query.source.path):
            return self.http.call("POST", route, body=body, headers=headers)

    def queries(self) -> Json:
        return self.http.call("GET", "/queries")

    def load(
        self,
        data: Sequence[str] | Mapping[str, Sequence[str]],
        *,
        mode: str,
        branch: str,
        base: str | None,
        embed: bool,
        mapping: str | None = None,
        dry_run: bool = False,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        """Send the files as they are; records also to a server that takes no files."""
        from omnigraph.client.uploads import holds_records, open_parts

        params = _drop_missing(branch=branch, mode=mode, embed=str(embed).lower(), **{"from": base})
        params |= _note_params(note)
        preview = {"dry_run": "true"} if dry_run else {}
        try:
            with open_parts(data, mapping) as parts:
                answer = self.http.call(
                    "POST", "/load/files", files=parts, params={**params, **preview}
                )
        except RemoteError as error:
            # No route, or no branch: the older routes say which.
            is_plain = mapping is None and not dry_run and not isinstance(data, Mapping)
            if error.status not in _NO_ROUTE or not is_plain or not holds_records(list(data)):
                raise
            return self._load_records(list(data), params, embed=embed, note=note)
        return {"uri": self.uri, **answer}

    def _load_records(
        self, paths: Sequence[str], params: Json, *, embed: bool, note: CommitNote
    ) -> Json:
        """Send the records as lines, or in a JSON body to a server without that route."""
        from omnigraph.client.load_text import load_text

        content = load_text(paths)
        with _name_file(_LOAD_NAME, show_names(paths[0]) if len(paths) == 1 else None):
            try:
                answer = self.http.call(
                    "POST",
                    "/load/ndjson",
                    content=content,
                    params=params,
                    headers={"Content-Type": "application/x-ndjson"},
                )
            except RemoteError as error:
                if error.status not in _NO_ROUTE:
                    raise
                body = {**params, "embed": embed, "data": content.decode(errors="replace")}
                body.pop("meta", None)
                body |= note.to_json()
                answer = self.http.call("POST", "/load", body=body)
        return _add_counts({"uri": self.uri, **answer})

    def embed(
        self,
        *,
        branch: str,
        types: Sequence[str] | None,
        reembed_all: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        body = _drop_missing(
            branch=branch, type_names=types, reembed_all=reembed_all, **note.to_json()
        )
        return {**self.http.call("POST", "/embed", body=body), "uri": self.uri}

    def export(
        self, *, branch: str, types: Sequence[str], table_keys: Sequence[str]
    ) -> Iterator[str]:
        body = _drop_missing(branch=branch, type_names=list(types), table_keys=list(table_keys))
        return self.http.lines("POST", "/export", json=body)

    def schema(self, branch: str | None = None) -> Json:
        return self.http.call("GET", "/schema", params=_drop_missing(branch=branch))

    def apply_schema(
        self,
        text: str,
        *,
        branch: str | None,
        allow_data_loss: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        facts = {"schema_source": text, "allow_data_loss": allow_data_loss, **note.to_json()}
        body = {**facts, **_drop_missing(branch=branch)}
        return self.http.call("POST", "/schema/apply", body=body)

    def branches(self) -> Json:
        return self.http.call("GET", "/branches")

    def create_branch(self, name: str, source: str) -> Json:
        return self.http.call("POST", "/branches", body={"name": name, "from": source})

    def delete_branch(self, name: str) -> Json:
        return self.http.below("branches", name).call("DELETE", "")

    def reset_branch(self, name: str, to: str, *, if_commit: str | None, preview: bool) -> Json:
        facts = {"branch": name, "to": to, "preview": preview}
        body = {**facts, **_drop_missing(if_commit=if_commit)}
        return self.http.call("POST", "/branches/reset", body=body)

    def checks(self, branch: str) -> Json:
        return self.http.call("GET", "/checks", params={"branch": branch})

    def apply_checks(
        self, checks: Sequence[Check], *, branch: str, note: CommitNote = NO_NOTE
    ) -> Json:
        body = {"checks": [each.to_json() for each in checks], "branch": branch, **note.to_json()}
        return self.http.call("POST", "/checks", body=body)

    def run_checks(self, branch: str) -> Json:
        return self.http.call("GET", "/checks/run", params={"branch": branch})

    def tags(self) -> Json:
        return self.http.call("GET", "/tags")

    def create_tag(self, name: str, at: str, message: str | None) -> Json:
        return self.http.call(
            "POST", "/tags", body=_drop_missing(name=name, at=at, message=message)
        )

    def delete_tag(self, name: str) -> Json:
        return self.http.below("tags", name).call("DELETE", "")

    def merge(
        self,
        source: str,
        target: str,
        *,
        delete_branch: bool,
        resolve: Any = None,
        note: CommitNote = NO_NOTE,
    ) -> Json:
        body = _drop_missing(
            source=source,
            target=target,
            delete_branch=delete_branch,
            resolve=resolve,
            **note.to_json(),
        )
        with raise_conflicts(target, "merge"):
            return self.http.call("POST", "/branches/merge", body=body)

    def preview_merge(self, source: str, target: str, *, resolve: Any) -> Json:
        # A path of its own: a server that is too old to preview has none, and must not merge.
        body = _drop_missing(source=source, target=target, resolve=resolve)
        return self.http.call("POST", "/branches/merge/preview", body=body)

    def undo(self, asked: UndoCall, note: CommitNote) -> Json:
        body = {**asked.to_json(), **note.to_json()}
        with raise_conflicts(asked.branch, asked.verb):
            return self.http.call("POST", asked.path, body=body)

    def preview_undo(self, asked: UndoCall) -> Json:
        return self.http.call("POST", f"{asked.path}/preview", body=asked.to_json())

    def diff(self, before: str, after: str, *, types: Sequence[str] | None) -> Json:
        return self.http.call("GET", "/diff", params=_diff_params(before, after, types))

    def diff_lines(self, before: str, after: str, *, types: Sequence[str] | None) -> Iterator[str]:
        params = {**_diff_params(before, after, types), "format": "jsonl"}
        return self.http.lines("GET", "/diff", params=params)

    def diff_html(self, before: str, after: str, *, types: Sequence[str] | None) -> str:
        params = {**_diff_params(before, after, types), "format": "html"}
        return self.http.text("GET", "/diff", params=params)

    def commit_changes(self, commit_id: str, asked: FeedPart) -> Json:
        http = self.http.below("commits", commit_id, "changes")
        return http.call("GET", "", params=_feed_params(asked))

    def poll_changes(self, branch: str, asked: FeedPart) -> Json:
        return self.http.call("GET", "/changes", params={"branch": branch, **_feed_params(asked)})

    def change_baseline(self, branch: str, asked: FeedPart) -> Iterator[str]:
        body = {"branch": branch, **_feed_params(asked)}
        return self.http.lines("POST", "/changes/baseline", json=body)

    @contextmanager
    def open_blob(self, asked: BlobPlace) -> Iterator[BlobContent]:
        params = _drop_missing(
            entity=asked.kind,
            type=asked.type_name,
            id=asked.entity_id,
            property=asked.property_name,
            branch=asked.branch,
            snapshot=asked.snapshot,
        )
        with self.http.stream("GET", "/blob", params=params, headers=_range_of(asked)) as response:
            headers = response.headers
            size = headers.get("content-range", "").rpartition("/")[2] or headers["content-length"]
            etag, snapshot = headers["etag"].strip('"'), headers["omnigraph-snapshot-id"]
            yield BlobContent(int(size), etag, snapshot, response.iter_bytes())

    def put_blob(
        self, place: BlobPlace, source: Path | IO[bytes], *, if_match: str | None, note: CommitNote
    ) -> Json:
        params = _drop_missing(
            entity=place.kind,
            type=place.type_name,
            id=place.entity_id,
            property=place.property_name,
            branch=place.branch,
        )
        params |= _note_params(note)
        headers = {"Content-Type": "application/octet-stream"}
        if if_match is not None:
            headers["If-Match"] = f'"{if_match}"'
        with _open_source(source) as file:
            return self.http.call("PUT", "/blob", content=file, params=params, headers=headers)

    def log(self, branch: str, asked: LogPart) -> Json:
        return self.http.call("GET", "/log", params={"branch": branch, **asked.params})

    def history(self, type_name: str, entity_id: str, branch: str) -> Json:
        params = {"type": type_name, "id": entity_id, "branch": branch}
        return self.http.call("GET", "/history", params=params)

    def blame(self, type_name: str, entity_id: str, branch: str) -> Json:
        params = {"type": type_name, "id": entity_id, "branch": branch}
        return self.http.call("GET", "/blame", params=params)

    def bisect(self, query: str, *, good: str, bad: str) -> Json:
        body = {"query": query, "good": good, "bad": bad}
        return self.http.call("POST", "/bisect", body=body)

    def explain(self, query: QueryCall, *, analyze: bool) -> Json:
        assert query.source is not None
        body = _drop_missing(
            query=query.source.text,
            name=query.name,
            params=query.params,
            branch=query.branch,
            analyze=analyze,
        )
        with _name_file(_QUERY_NAME, query.source.path):
            return self.http.call("POST", "/explain", body=body)

    def run_upkeep(self, kind: str, options: Mapping[str, Any]) -> Json:
        from omnigraph.client.jobs import run_job

        return run_job(self.http, kind, _drop_missing(**options))

    def doctor(self) -> Json:
        return self.http.call("GET", "/doctor")

    def jobs(self) -> Json:
        return self.http.call("GET", "/jobs")

    def job(self, job_id: str) -> Json:
        return self.http.below("jobs", job_id).call("GET", "")

    def commits(self, branch: str, asked: LogPart) -> Json:
        return self.http.call("GET", "/commits", params={"branch": branch, **asked.params})

    def commit(self, commit_id: str) -> Json:
        return self.http.below("commits", commit_id).call("GET", "")


@contextmanager
def _open_source(source: Path | IO[bytes]) -> Iterator[IO[bytes]]:
    """The stream, or the file opened.

    Raises:
        BadRequestError: The file cannot be read.
    """
    if not isinstance(source, Path):
        yield source
        return
    try:
        file = source.open("rb")
    except OSError as error:
        raise BadRequestError(f"cannot read '{source}': {error.strerror or error}") from None
    with file:
        yield file


@contextmanager
def _name_file(sent_as: str, path: str | Path | None) -> Iterator[None]:
    """Put the file's own path where a server's error names the text it was sent."""
    try:
        yield
    except RemoteError as error:
        if path is None:
            raise
        location = re.compile(rf"(?m)^(\s*(?:--> )?){re.escape(sent_as)}(?=:\d)")
        text = location.sub(lambda match: f"{match[1]}{path}", error.message)
        raise RemoteError(
            text, status=error.status, code=error.code, details=error.details
        ) from None


def _range_of(asked: BlobPlace) -> Mapping[str, str]:
    if not asked.offset and asked.length is None:
        return {}
    last = "" if asked.length is None else asked.offset + asked.length - 1
    return {"Range": f"bytes={asked.offset}-{last}"}


def _feed_params(asked: FeedPart) -> Json:
    filters = {name.removesuffix("s"): each for name, each in asked.filters.items() if each}
    return _drop_missing(cursor=asked.cursor, start=asked.start, **asked.page, **filters)


def _diff_params(before: str, after: str, types: Sequence[str] | None) -> Json:
    return _drop_missing(**{"from": before}, to=after, type=list(types) if types else None)


def _note_params(note: CommitNote) -> Json:
    """A note as parameters of a URL."""
    entries = [f"{key}={value}" for key, value in note.metadata.items()]
    return _drop_missing(message=note.message, meta=entries or None)


def _drop_missing(**members: Any) -> Json:
    """Build a JSON object of the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def _add_counts(answer: Json) -> Json:
    """Add the sums that older servers leave out of the report of a load."""
    nodes, edges = answer.get("nodes", []), answer.get("edges", [])
    sums = {
        "nodes_loaded": sum(each["entities_loaded"] for each in nodes),
        "edges_loaded": sum(each["entities_loaded"] for each in edges),
        "node_types_loaded": len(nodes),
        "edge_types_loaded": len(edges),
    }
    return {**sums, **answer}
