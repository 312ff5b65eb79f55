"""Graph: every call of an open graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from omnigraph.compiler import require_read
from omnigraph.errors import BadRequestError, OmnigraphError, SchemaMoved
from omnigraph.executor import QueryResult
from omnigraph.graph.arguments import check_calls
from omnigraph.graph.blobs import BlobCalls
from omnigraph.graph.bound_params import bind_all
from omnigraph.graph.history_calls import HistoryCalls
from omnigraph.graph.picture_calls import PictureCalls, draw_matches
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.reads import explain_read, require_engine, run_read
from omnigraph.graph.request_calls import RequestCalls
from omnigraph.graph.results import EmbedResult, LoadResult, MutationResult
from omnigraph.graph.session import Session
from omnigraph.graph.undo import UndoCalls
from omnigraph.graph.upkeep import UpkeepCalls
from omnigraph.graph.versions import CheckCalls, SchemaCalls, TransferCalls, VersionCalls
from omnigraph.index import open_tables
from omnigraph.manifest import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.policy import Action

# A program loads what it uses: other packages are imported by the calls that need them.
if TYPE_CHECKING:
    from omnigraph.branch.changes import ChangeSet
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.diff import ChangeFilter, CommitChanges, State, Target
    from omnigraph.branch.feed import Baseline, ChangeFeed, ChangePage, CommitPage
    from omnigraph.branch.merge import MergePreview, MergeResult
    from omnigraph.executor.explain import Explanation
    from omnigraph.graph.blob_reader import BlobReader
    from omnigraph.pipeline.preview import LoadPreview
    from omnigraph.pipeline.progress import Listener
    from omnigraph.pipeline.scan import TableScan
    from omnigraph.pipeline.sources import Source
    from omnigraph.write.audit import RecoveryRecord


def _load_argument_types() -> dict[str, Any]:
    """The types of arguments that are not imported above."""
    from omnigraph.branch.choices import Resolution
    from omnigraph.branch.diff import Target
    from omnigraph.manifest.checks import Check
    from omnigraph.pipeline.progress import Listener
    from omnigraph.pipeline.sources import Source

    return {
        "Check": Check,
        "Listener": Listener,
        "Resolution": Resolution,
        "Source": Source,
        "Target": Target,
    }


@check_calls(_load_argument_types)
class Graph(
    HistoryCalls,
    VersionCalls,
    UndoCalls,
    CheckCalls,
    RequestCalls,
    SchemaCalls,
    PictureCalls,
    UpkeepCalls,
    TransferCalls,
    BlobCalls,
):
    """One graph, open. Synchronous and thread-safe; use as a context manager or call `close`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def uri(self) -> str:
        return self._session.uri

    def refresh(self) -> None:
        """Look again at what was read before; finish or undo what dead writers left."""
        self._session.refresh()

    def close(self) -> None:
        """Release everything. Using the graph afterwards is an error."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.uri} ({self._session.mode})>"

    def _repr_html_(self) -> str | None:
        """The graph at a glance; a notebook shows the line of `repr` when it cannot be read."""
        from omnigraph.display import sheet_to_html
        from omnigraph.graph.overview import make_overview

        try:
            return sheet_to_html(make_overview(self))
        except OmnigraphError:
            return None

    # Reading

    def query(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
        engine: str = "local",
    ) -> QueryResult:
        """Run a read over one snapshot: of a branch now, or of a commit, version or time.

        The past is read in the schema of its commit; a query that fits only the schema of today,
        or any with `schema="current"`, is answered through stable identities. The engine is
        `local`, this process; `spark`; or with `auto` Spark for what does not fit `cache_bytes`.
        """
        started = perf_counter()
        require_engine(engine)
        session = self._session
        catalog, snapshot, ir = session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: require_read(compile_source(source, catalog, name)),
        )
        bound = bind_all(ir.params, params)
        draw = partial(draw_matches, session, catalog, snapshot, source, name, params)
        return run_read(session, ir, bound, catalog, snapshot, engine, started, draw)

    def run_query_at(
        self,
        version: int,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        schema: str = "commit",
    ) -> QueryResult:
        """Run a read over `main` as it stood at a manifest version."""
        return self.query(source, name, params, version=version, schema=schema)

    def explain(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        analyze: bool = False,
        engine: str = "local",
    ) -> Explanation:
        """Show every stage of a read: IR and plan, and with `analyze` what running it did.

        On Spark also its own plan, which depends on the parameters.
        """
        require_engine(engine)
        session = self._session
        catalog, snapshot = session.read((branch, None, None, None))
        ir = require_read(compile_source(source, catalog, name))
        bound: dict[str, Any] = {}
        if analyze or engine != "local":
            bound = bind_all(ir.params, params)
        return explain_read(session, ir, bound, catalog, snapshot, engine=engine, analyze=analyze)

    def algorithm(
        self,
        name: str,
        *,
        node: str,
        edge: str,
        params: Mapping[str, Any] | None = None,
        engine: str = "auto",
        branch: str = MAIN,
        commit: str | None = None,
        write_to: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> QueryResult:
        """Compute something about every node: `id` and a column, or a few, with its values.

        `name` is one of `pagerank`, `components`, `communities`, `degrees`, `triangles` and
        `distances`. With `write_to` the first value is also written to that property, as one
        commit; nothing is written when the branch has moved meanwhile.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.algorithms import compute, write_back

        require_engine(engine)
        read_note(message, metadata)
        if write_to is not None and commit is not None:
            raise BadRequestError("`write_to` writes to a branch — leave out `commit`")
        session, target = self._session, canonical_branch(branch)
        if write_to is not None:
            actor = session.permit(Action.CHANGE, actor=actor, branch=target)
        catalog, snapshot = session.read((target, commit, None, None))
        found = compute(session, catalog, snapshot, name, node, edge, params or {}, engine)
        if write_to is None:
            return found
        about = {"actor": actor, "message": message, "metadata": metadata}
        written = write_back(self, found, node, write_to, target, **about)
        return replace(found, commit_id=written)

    @overload
    def export(
        self,
        path: None = None,
        *,
        branch: str = ...,
        commit: str | None = ...,
        version: int | None = ...,
        types: Sequence[str] | None = ...,
        schema: str = ...,
        format: str = ...,
        engine: str = ...,
        progress: Listener | bool | None = ...,
    ) -> Iterator[dict[str, Any]]: ...

    @overload
    def export(
        self,
        path: str | Path,
        *,
        branch: str = ...,
        commit: str | None = ...,
        version: int | None = ...,
        types: Sequence[str] | None = ...,
        schema: str = ...,
        format: str = ...,
        engine: str = ...,
        progress: Listener | bool | None = ...,
    ) -> Path: ...

    def export(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        types: Sequence[str] | None = None,
        schema: str = "commit",
        format: str = "jsonl",  # noqa: A002 — the word of the API
        engine: str = "auto",
        progress: Listener | bool | None = None,
    ) -> Path | Iterator[dict[str, Any]]:
        """Write a snapshot as load records (or Parquet) to `path`, or yield the records.

        Loading an export with mode `overwrite` into a fresh graph of the same schema gives the
        same rows, ids too: that of the commit, or with `schema="current"` that of today.
        """
        from omnigraph.pipeline.export import select_tables
        from omnigraph.pipeline.run_export import run_export

        catalog, snapshot, _ = self._session.read_as(
            (branch, commit, version, None),
            schema,
            lambda catalog, _: select_tables(catalog, types),
        )
        return run_export(
            self._session.store.tables,
            catalog,
            snapshot,
            path=None if path is None else Path(path),
            types=types,
            file_format=format,
            engine=engine,
            progress=progress,
            spark=self._session.settings.spark,
        )

    def nodes(self, type: str, **selection: Any) -> TableScan:  # noqa: A002 — the word of the API
        """The rows of a node type at a snapshot: of a branch now, or a commit, version or time."""
        return self.scan(f"node:{type}", **selection)

    def edges(self, type: str, **selection: Any) -> TableScan:  # noqa: A002 — the word of the API
        """The rows of an edge type at a snapshot: of a branch now, or a commit, version or time."""
        return self.scan(f"edge:{type}", **selection)

    def scan(
        self,
        type: str,  # noqa: A002 — the word of the API
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
        columns: Sequence[str] | None = None,
    ) -> TableScan:
        """The rows of a type, by its name or table key, at a pinned snapshot."""
        from omnigraph.pipeline.frames import table_key
        from omnigraph.pipeline.scan import scan_at

        tables, spark = self._session.store.tables, self._session.settings.spark
        _, _, scan = self._session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, snapshot: scan_at(
                tables, snapshot, table_key(catalog, type), columns, spark
            ),
        )
        return scan

    def entity_at(
        self,
        table_key: str,
        id: str,  # noqa: A002 — the API names it so
        version: int,
        *,
        branch: str = MAIN,
        schema: str = "commit",
    ) -> dict[str, Any] | None:
        """One node or edge as it was at a manifest version, None when it was not there."""
        from omnigraph.branch.entities import entry_of, read_entity

        _, _, entry = self._session.read_as(
            (branch, None, version, None), schema, lambda _, found: entry_of(found, table_key)
        )
        return read_entity(self._session.store.tables, entry, id)

    def read_blob(
        self,
        kind: str,
        type: str,  # noqa: A002 — the word of the API
        id: str,  # noqa: A002 — the API names it so
        property: str,  # noqa: A002 — the API names it so
        *,
        branch: str = MAIN,
        commit: str | None = None,
        version: int | None = None,
        at: datetime | str | None = None,
        schema: str = "commit",
    ) -> BlobReader:
        """The bytes of one Blob of a node or edge (`kind`), at a snapshot.

        Raises:
            BadRequestError: There is no such kind, type or property, or the property is no Blob.
            NotFoundError: There is no such node or edge, or its value is null.
        """
        from omnigraph.graph.blob_reader import blob_table, read_blob

        tables = self._session.store.tables
        catalog, snapshot, key = self._session.read_as(
            (branch, commit, version, at),
            schema,
            lambda catalog, _: blob_table(catalog, kind, type, property),
        )
        handle = open_tables(snapshot, catalog, tables, self._session.cache).view(key).handle
        return read_blob(tables, handle, key, id, property)

    def recoveries(self) -> list[RecoveryRecord]:
        """Every write that recovery had to finish or undo, oldest first."""
        from omnigraph.write.audit import list_recoveries

        self._session.read_contract()
        return list_recoveries(self._session.store.audit)

    def commit(self, commit_id: str) -> GraphCommit:
        """The commit that a revision names: by its id, on whichever branch it is, or otherwise."""
        from omnigraph.manifest.revisions import find_commit

        self._session.read_contract()
        return find_commit(self._session.coordinator, commit_id)

    def snapshot(self, branch: str = MAIN) -> Snapshot:
        """What a branch shows now, or another revision: a pin per table."""
        from omnigraph.manifest.revisions import find_revision

        self._session.read_contract()
        return find_revision(self._session.coordinator, branch)

    def snapshot_at_version(self, version: int, *, branch: str = MAIN) -> Snapshot:
        """What a branch showed at a manifest version."""
        self._session.read_contract()
        return self._session.coordinator.at_version(canonical_branch(branch), version).snapshot()

    # Writing

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit, or change nothing.

        `message` and `metadata` say why; like those of every write they stay with the commit.

        Raises:
            ExpectedVersionMismatch: Another writer changed a table this one depends on.
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
            ConstraintError: The result would break a rule of the schema.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.mutations import run_mutation

        target = canonical_branch(branch)
        who = self._session.permit(Action.CHANGE, actor=actor, branch=target)
        note = read_note(message, metadata)
        run = partial(
            run_mutation, self._session, source, name, params, target, who, if_commit, note
        )
        try:
            return run()
        except SchemaMoved:
            # What was checked against the schema before is checked against the present one.
            return run()

    @overload
    def load(
        self,
        data: Source | None = ...,
        *,
        mode: str,
        dry_run: Literal[True],
        mapping: str | Path | None = ...,
        branch: str = ...,
        base: str | None = ...,
        actor: str | None = ...,
        engine: str = ...,
        on_error: str = ...,
        quarantine: str | Path | None = ...,
        embed: bool = ...,
        ignore_members: bool = ...,
        progress: Listener | bool | None = ...,
        storage_options: Mapping[str, str] | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> LoadPreview: ...

    @overload
    def load(
        self,
        data: Source | None = ...,
        *,
        mode: str,
        dry_run: Literal[False] = ...,
        mapping: str | Path | None = ...,
        branch: str = ...,
        base: str | None = ...,
        actor: str | None = ...,
        engine: str = ...,
        on_error: str = ...,
        quarantine: str | Path | None = ...,
        embed: bool = ...,
        ignore_members: bool = ...,
        progress: Listener | bool | None = ...,
        storage_options: Mapping[str, str] | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> LoadResult: ...

    def load(
        self,
        data: Source | None = None,
        *,
        mode: str,
        mapping: str | Path | None = None,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        dry_run: bool = False,
        ignore_members: bool = False,
        progress: Listener | bool | None = None,
        storage_options: Mapping[str, str] | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> LoadResult | LoadPreview:
        """Load records as one commit, or nothing.

        `data` is a path, directory or glob, a list of them, `{type: files}`, text, or an iterable
        of records; or `mapping`, a YAML file, names files, types and columns. `mode` is
        `"overwrite"`, `"append"` or `"merge"`. With `base` a missing branch is created from it
        first. `on_error="quarantine"` loads the good records and writes the others, with reasons,
        to the file `quarantine`, or to one below the graph that the result names. `dry_run` reads
        and checks everything, writes nothing and returns a `LoadPreview`. A load that changes
        nothing makes no commit. Input on `s3://` is read with `storage_options`, or with those of
        the graph. With `ignore_members` a record may have members beside `type` and `data`.

        Raises:
            BadRowsError: Records break a rule of the schema; all of them are named, up to a cap.
            KeyConflict: An appended id is there already.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import (
            find_load_schema,
            parse_option,
            permit_load,
            preview_load_request,
            run_load_request,
        )
        from omnigraph.pipeline.loader import LoadRequest, part_bytes
        from omnigraph.pipeline.model import LoadMode, OnError
        from omnigraph.pipeline.sources import plan_source
        from omnigraph.pipeline.spooled import showing_names

        who = permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch, base).catalog
        options = storage_options or self._session.store.tables.storage_options
        note = read_note(message, metadata)
        with showing_names():
            request = LoadRequest(
                input=plan_source(
                    data, catalog, part_bytes(), options, None if mapping is None else str(mapping)
                ),
                mode=parse_option("load mode", mode, LoadMode),
                branch=canonical_branch(branch),
                actor=who,
                engine=engine,
                on_error=parse_option("on_error", on_error, OnError),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                ignores_members=ignore_members,
                note=note,
                embed_source=self._session.embed_source,
                spark=self._session.settings.spark,
            )
            if dry_run:
                return preview_load_request(self._session, request, base)
            return run_load_request(self._session, request, base)

    def ingest(
        self,
        data: Source,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        **options: Any,
    ) -> LoadResult:
        """Load into a branch, which is created from `from_branch` when it is missing."""
        result: LoadResult = self.load(data, mode=mode, branch=branch, base=from_branch, **options)
        return result

    def load_dataframe(
        self,
        df: Any,
        *,
        type: str | None = None,  # noqa: A002 — the word of the API
        edge: str | None = None,
        mode: str,
        **options: Any,
    ) -> LoadResult:
        """Load a Spark, pandas, polars or Arrow frame of one type: columns are its properties.

        An edge frame has `src` and `dst`, or `from` and `to`.
        """
        from omnigraph.graph.loads import find_load_schema, permit_load
        from omnigraph.pipeline.frames import table_key

        if (type is None) == (edge is None):
            raise BadRequestError("name the type of the rows: give one of `type` and `edge`")
        branch, base, actor = (options.get(each) for each in ("branch", "base", "actor"))
        permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch or MAIN, base).catalog
        kind = "node" if edge is None else "edge"
        key = table_key(catalog, str(type if edge is None else edge), kind=kind)
        return self.load_dataframes({key: df}, mode=mode, **options)

    def load_dataframes(
        self,
        frames: Mapping[str, Any],
        *,
        mode: str,
        branch: str = MAIN,
        base: str | None = None,
        actor: str | None = None,
        engine: str = "auto",
        on_error: str = "reject",
        quarantine: str | Path | None = None,
        embed: bool = True,
        progress: Listener | bool | None = None,
        properties: Mapping[str, str] | None = None,
        if_commit: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Load frames, by type name, as one commit, or nothing. See `load_dataframe`.

        Raises:
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import (
            find_load_schema,
            parse_option,
            permit_load,
            run_load_request,
        )
        from omnigraph.pipeline.engine import uses_spark
        from omnigraph.pipeline.frames import Frames, spool_frames, table_key
        from omnigraph.pipeline.loader import LoadRequest, part_bytes
        from omnigraph.pipeline.model import LoadMode, OnError

        who = permit_load(self._session, branch, base, actor)
        catalog = find_load_schema(self._session, branch, base).catalog
        note = read_note(message, metadata)
        by_key = Frames(
            {table_key(catalog, name): frame for name, frame in frames.items()}, catalog
        )
        spark = by_key.spark or self._session.settings.spark
        for_spark = by_key.spark is not None or uses_spark(engine, spark, stays=True)
        tables = self._session.store.tables
        with spool_frames(by_key, tables, part_bytes(), for_spark=for_spark) as rows:
            request = LoadRequest(
                input=rows,
                mode=parse_option("load mode", mode, LoadMode),
                branch=canonical_branch(branch),
                actor=who,
                engine=engine,
                on_error=parse_option("on_error", on_error, OnError),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                embed_source=self._session.embed_source,
                spark=spark,
                properties=properties or {},
                note=note,
            )
            return run_load_request(self._session, request, base, if_commit)

    def embed(
        self,
        *,
        branch: str = MAIN,
        types: Collection[str] | None = None,
        reembed_all: bool = False,
        actor: str | None = None,
        engine: str = "auto",
        progress: Listener | bool | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> EmbedResult:
        """Make the `@embed` vectors that are missing, in several commits if they are many.

        A run that is interrupted keeps what it has committed; the next one goes on from there.
        With `reembed_all` every vector of a type is made anew, in one commit: so a graph changes
        its model.

        Raises:
            EmbeddingModelMismatch: The chosen model is not the one that the graph records.
            EmbeddingFailed: The provider failed.
        """
        from omnigraph.commit_note import read_note
        from omnigraph.graph.loads import run_embed_request
        from omnigraph.pipeline.embed_rows import EmbedRequest

        target = canonical_branch(branch)
        who = self._session.permit(Action.CHANGE, actor=actor, branch=target)
        request = EmbedRequest(
            branch=target,
            source=self._session.embed_source,
            types=types,
            remakes=reembed_all,
            actor=who,
            note=read_note(message, metadata),
            engine=engine,
            spark=self._session.settings.spark,
            progress=progress,
        )
        return run_embed_request(self._session, request)

    # Branches

    def branches(self) -> list[str]:
        """Every branch, `main` first."""
        self._session.read_contract()
        return self._session.coordinator.branches()

    def create_branch(self, name: str, from_: str = MAIN, *, actor: str | None = None) -> Snapshot:
        """Make a branch that shows what the revision `from_` names; nothing is copied."""
        from omnigraph.branch.create import create_branch

        session, made = self._session, canonical_branch(name)
        source = session.find_branch_of(from_)
        session.permit(Action.BRANCH_CREATE, actor=actor, branch=source, target_branch=made)
        session.require_writable()
        return create_branch(session.environment(), name, from_).snapshot()

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        """Remove a branch and what only it holds."""
        from omnigraph.branch.delete import delete_branch

        branch = canonical_branch(name)
        self._session.permit(Action.BRANCH_DELETE, actor=actor, target_branch=branch)
        self._session.require_writable()
        delete_branch(self._session.environment(), branch, self._session.store.history)

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[False] = ...,
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergeResult: ...

    @overload
    def merge(
        self,
        source: str,
        into: str = ...,
        *,
        actor: str | None = ...,
        delete_branch: bool = ...,
        preview: Literal[True],
        resolve: Resolution | None = ...,
        message: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> MergePreview: ...

    def merge(
        self,
        source: str,
        into: str = MAIN,
        *,
        actor: str | None = None,
        delete_branch: bool = False,
        preview: bool = False,
        resolve: Resolution | None = None,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> MergeResult | MergePreview:
        """Bring what `source` did into another branch, as one commit or not at all.

        With `preview` nothing is written and the result says what would be. `resolve` decides
        conflicts: `"ours"` keeps what the target has, `"theirs"` what the source has, and a
        mapping or a list says so row by row, or property by property. A merge that changes the
        schema of the target needs the permission to do so.

        Raises:
            MergeConflicts: The branches cannot be joined as they are. The target is unchanged.
            ExpectedVersionMismatch: The target changed meanwhile. Merge again.
            ApprovalsMissing: Merges into the target need approvals: open a merge request.
        """
        from omnigraph.branch.merge import preview_merge
        from omnigraph.commit_note import read_note
        from omnigraph.graph.merges import permit_merge, run_merge

        names = branch, target = canonical_branch(source), canonical_branch(into)
        session = self._session
        if preview:
            catalog = session.read_schema(target).catalog
            return preview_merge(session.environment(), catalog, *names, resolution=resolve)
        who = permit_merge(session, *names, actor)
        if delete_branch:
            session.permit(Action.BRANCH_DELETE, actor=who, target_branch=branch)
        note = read_note(message, metadata)
        facts: dict[str, Any] = {"actor": who, "note": note, "resolution": resolve}
        return run_merge(session, *names, **facts, deletes=delete_branch)

    def diff(
        self,
        from_: Target,
        to: Target,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> ChangeSet:
        """What differs between two states: branches, commits, versions or times."""
        from omnigraph.branch.diff import ChangeFilter, diff_states

        before, after = map(self._find_state, (from_, to))
        wanted = ChangeFilter(kinds, types, ops)
        wanted.check([before.catalog, after.catalog])
        return diff_states(self._session.store.tables, before, after, wanted)

    def diff_html(
        self,
        from_: Target,
        to: Target,
        *,
        title: str | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> str:
        """A diff as one page that works offline: what changed, drawn and listed."""
        wanted = {"kinds": kinds, "types": types, "ops": ops}
        return "".join(stream_diff_html(self, from_, to, title=title, **wanted))

    def changes(
        self,
        since: str,
        *,
        branch: str = MAIN,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Iterator[CommitChanges]:
        """What every commit of a branch changed after `since`, oldest first.

        A type is followed through renames, by any name that it has had.
        """
        from omnigraph.branch.diff import changes_since

        session, wanted = self._session, self._follow(kinds, types, ops)
        session.read_contract()
        return changes_since(
            session.store.tables, session.coordinator, self._find_state, since, branch, wanted
        )

    def poll_changes(
        self,
        branch: str = MAIN,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> ChangePage:
        """Read the next page of a branch's changes, with a cursor to go on from.

        Begin with a `start` (`"now"`, `"beginning"`, `"after:COMMIT"`). While a page has a
        `next_page_token`, pass it on; the last page has a `cursor` for the next poll. Filters are
        part of a cursor; a type is followed through renames, by any name that it has had. A reader
        that stops anywhere and goes on from its last cursor loses nothing, and may see some changes
        twice.

        Raises:
            ChangeCursorRejected: The token is damaged, or of another branch or filter.
            ChangeFeedGap: A cleanup removed states that were not read yet.
        """
        wanted = self._follow(kinds, types, ops)
        return self._feed().poll(
            branch, wanted, cursor=cursor, start=start, page_token=page_token, limit=limit
        )

    def commit_changes(
        self,
        commit_id: str,
        *,
        page_token: str | None = None,
        limit: int | None = None,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> CommitPage:
        """Read a page of what one commit changed, against its first parent."""
        wanted = self._follow(kinds, types, ops)
        return self._feed().read_commit(commit_id, wanted, page_token, limit)

    def change_baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Collection[str] | None = None,
        types: Collection[str] | None = None,
        ops: Collection[str] | None = None,
    ) -> Baseline:
        """The records of a branch as it is now, and the cursor of what comes after them."""
        from omnigraph.branch.feed import Baseline, list_types

        wanted = self._follow(kinds, types, ops)
        commit, cursor = self._feed().pin(branch, wanted)
        names = list_types(self._find_state(commit.commit_id).catalog, wanted)
        records = self.export(commit=commit.commit_id, types=names) if names else iter(())
        return Baseline(commit.commit_id, cursor, records)

    def _follow(
        self,
        kinds: Collection[str] | None,
        types: Collection[str] | None,
        ops: Collection[str] | None,
    ) -> ChangeFilter:
        """A filter of changes over time, in which types have other names."""
        from omnigraph.branch.diff import ChangeFilter

        had = self._session.list_types_had() if types else ()
        return ChangeFilter(kinds, types, ops).follow_types(had)

    def _feed(self) -> ChangeFeed:
        from omnigraph.branch.feed import ChangeFeed

        session = self._session
        session.read_contract()
        return ChangeFeed(
            session.store.tables, session.coordinator, self._find_state, session.feed_changes
        )

    def _find_state(self, target: Target) -> State:
        """A snapshot with the schema it is in."""
        from omnigraph.branch.diff import State, find_snapshot

        session = self._session
        snapshot = find_snapshot(session.coordinator, target)
        catalog, shown = session.view_in_own_schema(snapshot, session.read_contract())
        return State(shown, catalog)


def get_session(graph: Graph) -> Session:
    """The inside of an open graph, for the other packages of Omnigraph: no part of the API."""
    return graph._session


def poll_small_pages(
    graph: Graph,
    branch: str,
    *,
    page_bytes: int,
    kinds: Collection[str] | None,
    types: Collection[str] | None,
    ops: Collection[str] | None,
    **place: Any,
) -> ChangePage:
    """As `Graph.poll_changes`, in pages for a reader that may take long to read one."""
    return graph._feed().poll(
        branch, graph._follow(kinds, types, ops), page_bytes=page_bytes, **place
    )


def stream_diff_html(
    graph: Graph, from_: Target, to: Target, *, title: str | None = None, **wanted: Any
) -> Iterator[str]:
    """As `Graph.diff_html`, in parts that are written while the changes are read."""
    from omnigraph.branch.html import stream_diff_page
    from omnigraph.branch.surroundings import find_changed_subgraph

    before, after = map(graph._find_state, (from_, to))
    changes = graph.diff(before.snapshot, after.snapshot, **wanted)
    shown = find_changed_subgraph(changes, before.catalog, after, graph._session.store.tables)
    return stream_diff_page(changes, title=title or f"{from_} → {to}", subgraph=shown)
