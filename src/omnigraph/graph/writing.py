"""Writing to a graph: mutations and loads, each one commit or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import time_ns
from typing import Any

from omnigraph.branch.create import create_branch
from omnigraph.catalog import Catalog
from omnigraph.compiler import (
    bind_params,
    require_mutation,
)
from omnigraph.errors import BadRequestError, BranchExists, SchemaMoved
from omnigraph.graph.handle import Handle
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.results import LoadResult, MutationResult
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.manifest import (
    MAIN,
    GraphCommit,
    Snapshot,
)
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.pipeline.frames import Frames, spool_frames, table_key
from omnigraph.pipeline.loader import LoadRequest, part_bytes, run_load
from omnigraph.pipeline.model import LoadMode, OnError
from omnigraph.pipeline.progress import Listener
from omnigraph.pipeline.ranges import Source, plan_input
from omnigraph.policy import Action
from omnigraph.upkeep.self_care import compact_if_due
from omnigraph.write.check import check_change
from omnigraph.write.commit import WriteRequest, run_write
from omnigraph.write.environment import queue_keys
from omnigraph.write.mutate import Affected, InsertedRows, run_statements
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import MutationStaging
from omnigraph.write.touched import tables_of_mutation

_SCHEMA_LOOKS_MAX = 3


class Writing(Handle):
    """The calls that make commits."""

    def mutate(
        self,
        source: str | Path,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        if_commit: str | None = None,
    ) -> MutationResult:
        """Run a mutation as one commit, or change nothing.

        Raises:
            ExpectedVersionMismatch: Another writer changed a table this one depends on.
            PreconditionFailed: `if_commit` is given and is not the head of the branch.
            ConstraintError: The result would break a rule of the schema.
        """
        target = canonical_branch(branch)
        who = self._permit(Action.CHANGE, actor=actor, branch=target)
        try:
            return self._mutate(source, name, params, target, who, if_commit)
        except SchemaMoved:
            # What was checked against the schema before is checked against the present one.
            return self._mutate(source, name, params, target, who, if_commit)

    def _mutate(
        self,
        source: str | Path,
        name: str | None,
        params: Mapping[str, Any] | None,
        target: str,
        actor: str | None,
        if_commit: str | None,
    ) -> MutationResult:
        catalog = self._writable_catalog()
        query = compile_source(source, catalog, name)
        ir = require_mutation(query)
        bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
        affected = Affected()
        inserted = InsertedRows(ir, bound, catalog, self._embedder)

        def prepare(snapshot: Snapshot) -> MutationStaging:
            nonlocal affected
            staging = MutationStaging(self._store.tables, catalog, snapshot)
            affected = run_statements(ir, bound, inserted, staging)
            check_change(staging)
            return staging

        commit = self._write(
            WriteRequest(
                kind=WriterKind.MUTATION,
                branch=target,
                actor=actor,
                touched=tables_of_mutation(ir, catalog),
                prepare=prepare,
                if_commit=if_commit,
            ),
            catalog,
        )
        return MutationResult(
            commit_id=commit.commit_id if commit else None,
            manifest_version=(
                commit.manifest_version if commit else self._coordinator.last_seen(target).version
            ),
            affected_nodes=affected.total("node"),
            affected_edges=affected.total("edge"),
        )

    def load(
        self,
        data: Source,
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
        storage_options: Mapping[str, str] | None = None,
    ) -> LoadResult:
        """Load records as one commit, or nothing.

        `data` is a path, a glob, a list of paths, text, or an iterable of records; `mode` is
        `"overwrite"`, `"append"` or `"merge"`. With `base` a missing branch is created from it
        first. `on_error="quarantine"` loads the good records and writes the others, with reasons,
        to the file `quarantine`, or to one below the graph that the result names. Input on
        `s3://` is read with `storage_options`, or with those of the graph.

        Raises:
            BadRowsError: Records break a rule of the schema; all of them are named, up to a cap.
            KeyConflict: An appended id is there already.
        """
        who = self._permit_load(branch, base, actor)
        request = LoadRequest(
            input=plan_input(
                data, part_bytes(), storage_options or self._store.tables.storage_options
            ),
            mode=_load_mode(mode),
            branch=canonical_branch(branch),
            actor=who,
            engine=engine,
            on_error=_on_error(on_error),
            quarantine_path=None if quarantine is None else str(quarantine),
            progress=progress,
            embeds=embed,
            spark=self._settings.spark,
        )
        return self._load(request, base)

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
        return self.load(data, mode=mode, branch=branch, base=from_branch, **options)

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
        if (type is None) == (edge is None):
            raise BadRequestError("name the type of the rows: give one of `type` and `edge`")
        self._permit_load(*(options.get(each) for each in ("branch", "base", "actor")))
        catalog = self._writable_catalog()
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
    ) -> LoadResult:
        """Load frames, by type name, as one commit, or nothing. See `load_dataframe`."""
        who = self._permit_load(branch, base, actor)
        catalog = self._writable_catalog()
        by_key = Frames(
            {table_key(catalog, name): frame for name, frame in frames.items()}, catalog
        )
        with spool_frames(by_key, self._store.tables, part_bytes()) as rows:
            request = LoadRequest(
                input=rows,
                mode=_load_mode(mode),
                branch=canonical_branch(branch),
                actor=who,
                engine=engine,
                on_error=_on_error(on_error),
                quarantine_path=None if quarantine is None else str(quarantine),
                progress=progress,
                embeds=embed,
                spark=by_key.spark or self._settings.spark,
                properties=properties or {},
            )
            return self._load(request, base)

    def _load(self, request: LoadRequest, base: str | None) -> LoadResult:
        catalog = self._writable_catalog()
        if base is None:
            self._coordinator.last_seen(request.branch)
        created = False

        def write(change: WriteRequest) -> GraphCommit | None:
            nonlocal created
            created = base is not None and self._create_if_missing(request, base)
            return self._write(change, catalog)

        outcome = run_load(self._environment(), catalog, request, write)
        return LoadResult(
            commit_id=outcome.commit.commit_id if outcome.commit else None,
            branch=request.branch,
            base_branch=base,
            branch_created=created,
            mode=request.mode.value,
            tables=outcome.tables,
            rows_embedded=outcome.rows_embedded,
            rows_rejected=outcome.rows_rejected,
            engine=outcome.engine,
            quarantine=outcome.quarantine,
        )

    def _permit_load(self, branch: str | None, base: str | None, actor: str | None) -> str | None:
        """Say who loads; when the branch has to be made, that has to be allowed as well."""
        target = canonical_branch(MAIN if branch is None else branch)
        who = self._permit(Action.CHANGE, actor=actor, branch=target)
        if self._policy is None or base is None or target in self._coordinator.branches():
            return who
        return self._permit_branch(target, base, who)

    def _permit_branch(self, branch: str, base: str, actor: str | None) -> str | None:
        source = canonical_branch(base)
        return self._permit(Action.BRANCH_CREATE, actor=actor, branch=source, target_branch=branch)

    def _create_if_missing(self, request: LoadRequest, base: str) -> bool:
        branch = request.branch
        if branch in self._coordinator.branches():
            return False
        # The branch may have gone since the load was let in.
        self._permit_branch(branch, base, request.actor)
        try:
            create_branch(self._environment(), branch, base)
        except BranchExists:
            return False  # another load made it first
        return True

    def _write(self, request: WriteRequest, catalog: Catalog) -> GraphCommit | None:
        environment = replace(self._environment(), schema_hash=catalog.shape_hash)
        queues = queue_keys(request.touched.all, request.branch)
        self._settle(full=False, wait_for=queues)
        commit = run_write(environment, request)
        if commit is not None and self._self_care:
            compact_if_due(environment, request.branch, request.touched.written)
        return commit


def _load_mode(mode: str) -> LoadMode:
    try:
        return LoadMode(mode)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in LoadMode)
        raise BadRequestError(f"load mode is {mode!r}, expected one of {known}") from None


def _on_error(on_error: str) -> OnError:
    try:
        return OnError(on_error)
    except ValueError:
        known = ", ".join(f"'{each}'" for each in OnError)
        raise BadRequestError(f"on_error is {on_error!r}, expected one of {known}") from None
