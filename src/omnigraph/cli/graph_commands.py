"""GraphCommands: what a command may ask of any graph, whether in a store or behind a server.

`LocalGraph` and `RemoteGraph` implement it and answer in the JSON of the wire. What only a store
can do is not part of it: options of such commands are `StoreOptions`, and commands that need the
store itself get a `Graph` from `Call.open_store`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from omnigraph.commit_note import NO_NOTE, CommitNote
from omnigraph.dataclass import dataclass
from omnigraph.undo_calls import UndoCall
from omnigraph.wire import BlobContent, BlobPlace, FeedPart, LogPart, QueryCall

if TYPE_CHECKING:
    from omnigraph.manifest.checks import Check

Json = dict[str, Any]
LoadFiles = Sequence[str] | Mapping[str, Sequence[str]]
"""Files whose records name their types, or files by type."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Options that servers do not take; each is named after its flag."""

    at: str | None = None
    snapshot: str | None = None
    schema_of: str | None = None
    engine: str = "auto"
    on_error: str = "reject"


class GraphCommands(Protocol):
    """One graph. A stored query must be of the kind of the method that runs it."""

    def snapshot(self, branch: str) -> Json: ...
    def query(self, query: QueryCall) -> Json: ...
    def mutate(
        self, query: QueryCall, *, if_commit: str | None, note: CommitNote = NO_NOTE
    ) -> Json: ...
    def queries(self) -> Json: ...

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
    ) -> Json: ...

    def embed(
        self,
        *,
        branch: str,
        types: Sequence[str] | None,
        reembed_all: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json: ...

    def export(
        self, *, branch: str, types: Sequence[str], table_keys: Sequence[str]
    ) -> Iterator[str]:
        """Yield one JSON line per record, as they are read."""
        ...

    def schema(self, branch: str | None = None) -> Json: ...
    def apply_schema(
        self,
        text: str,
        *,
        branch: str | None,
        allow_data_loss: bool,
        note: CommitNote = NO_NOTE,
    ) -> Json: ...
    def branches(self) -> Json: ...
    def create_branch(self, name: str, source: str) -> Json: ...
    def delete_branch(self, name: str) -> Json: ...
    def checks(self, branch: str) -> Json: ...
    def apply_checks(
        self, checks: Sequence[Check], *, branch: str, note: CommitNote = NO_NOTE
    ) -> Json: ...
    def run_checks(self, branch: str) -> Json: ...
    def tags(self) -> Json: ...
    def create_tag(self, name: str, at: str, message: str | None) -> Json: ...
    def delete_tag(self, name: str) -> Json: ...
    def merge(
        self,
        source: str,
        target: str,
        *,
        delete_branch: bool,
        resolve: Any = None,
        note: CommitNote = NO_NOTE,
    ) -> Json: ...
    def preview_merge(self, source: str, target: str, *, resolve: Any) -> Json: ...
    def undo(self, asked: UndoCall, note: CommitNote) -> Json: ...
    def preview_undo(self, asked: UndoCall) -> Json: ...
    def diff(self, before: str, after: str, *, types: Sequence[str] | None) -> Json: ...

    def diff_lines(self, before: str, after: str, *, types: Sequence[str] | None) -> Iterator[str]:
        """Yield one JSON line per change, as they are read."""
        ...

    def diff_html(self, before: str, after: str, *, types: Sequence[str] | None) -> str: ...
    def commit_changes(self, commit_id: str, asked: FeedPart) -> Json: ...
    def poll_changes(self, branch: str, asked: FeedPart) -> Json: ...

    def change_baseline(self, branch: str, asked: FeedPart) -> Iterator[str]:
        """Yield the records as JSON lines, and behind them the cursor."""
        ...

    def open_blob(self, asked: BlobPlace) -> AbstractContextManager[BlobContent]: ...

    def put_blob(
        self, place: BlobPlace, source: Path | IO[bytes], *, if_match: str | None, note: CommitNote
    ) -> Json:
        """Make a file, or what a stream holds, the bytes of a Blob."""
        ...

    def commits(self, branch: str, asked: LogPart) -> Json: ...
    def commit(self, commit_id: str) -> Json: ...
    def log(self, branch: str, asked: LogPart) -> Json: ...
    def history(self, type_name: str, entity_id: str, branch: str) -> Json: ...
    def blame(self, type_name: str, entity_id: str, branch: str) -> Json: ...
    def explain(self, query: QueryCall, *, analyze: bool) -> Json: ...

    def run_upkeep(self, kind: str, options: Mapping[str, Any]) -> Json:
        """Run upkeep to its end and return its report. Options that are None are left out."""
        ...

    def doctor(self) -> Json: ...
    def jobs(self) -> Json: ...
    def job(self, job_id: str) -> Json: ...
