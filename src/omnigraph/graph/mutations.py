"""Mutations: run as one commit, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.commit_note import CommitNote, read_note
from omnigraph.compiler import require_mutation
from omnigraph.errors import SchemaMoved
from omnigraph.executor import QueryResult, execute
from omnigraph.graph.arguments import check_call
from omnigraph.graph.bound_params import bind_all
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.results import MutationResult
from omnigraph.graph.session import Session
from omnigraph.ir import MutationIR
from omnigraph.manifest import GraphCommit, Snapshot
from omnigraph.manifest.branch_names import canonical_branch
from omnigraph.manifest.vector_models import note_models
from omnigraph.policy import Action
from omnigraph.write.check import check_change
from omnigraph.write.commit import Inserts, WriteRequest
from omnigraph.write.embedding import VectorFiller
from omnigraph.write.mutate import Affected, InsertedRows, run_statements
from omnigraph.write.returned import read_returned
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import NO_ROWS, MutationStaging
from omnigraph.write.touched import tables_of_match, tables_of_mutation


@check_call
def mutate(
    session: Session,
    source: str | Path,
    name: str | None,
    params: Mapping[str, Any] | None,
    *,
    branch: str,
    actor: str | None,
    if_commit: str | None,
    message: str | None,
    metadata: Mapping[str, str] | None,
) -> tuple[MutationResult, GraphCommit | None]:
    """Run a mutation as `Graph.mutate` does; returns its commit as well."""
    target = canonical_branch(branch)
    who = session.permit(Action.CHANGE, actor=actor, branch=target)
    note = read_note(message, metadata)
    run = partial(_run_mutation, session, source, name, params, target, who, if_commit, note)
    try:
        return run()
    except SchemaMoved:
        # What was checked against the schema before is checked against the present one.
        return run()


def _run_mutation(
    session: Session,
    source: str | Path,
    name: str | None,
    params: Mapping[str, Any] | None,
    branch: str,
    actor: str | None,
    if_commit: str | None,
    note: CommitNote,
) -> tuple[MutationResult, GraphCommit | None]:
    """Run a mutation that is permitted. Raises SchemaMoved when it was checked too early."""
    started = perf_counter()
    schema = session.require_writable(branch)
    catalog = schema.catalog
    ir = require_mutation(compile_source(source, catalog, name))
    bound = bind_all(ir.params, params)
    affected = Affected()
    seen = session.coordinator.last_seen(branch).snapshot()
    vectors = VectorFiller(lambda: session.embed_source, session.store.tables, seen)
    inserted = InsertedRows(ir, bound, catalog, vectors)
    noted: dict[str, Any] = {}
    returned: pa.Table | None = None

    def prepare(snapshot: Snapshot, earlier: Mapping[str, pa.Table] = NO_ROWS) -> MutationStaging:
        nonlocal affected, noted, returned
        staging = MutationStaging(session.store.tables, catalog, snapshot, earlier)
        matched = _solve_match(session, ir, bound, catalog, staging)
        affected = run_statements(ir, bound, inserted, staging, matched)
        noted = note_models(vectors.find_changed_models(snapshot))
        check_change(staging)
        returned = read_returned(ir, bound, affected, matched, staging)
        return staging

    commit = session.write(
        WriteRequest(
            kind=WriterKind.MUTATION,
            branch=branch,
            actor=actor,
            touched=tables_of_mutation(ir, catalog),
            prepare=prepare,
            if_commit=if_commit,
            note=note.to_json(),
            properties=lambda: noted,
            inserts=Inserts(inserted.list_ids(), prepare) if ir.is_insert_only else None,
        ),
        schema,
    )
    version = commit.manifest_version if commit else session.coordinator.last_seen(branch).version
    result = MutationResult(
        commit_id=commit.commit_id if commit else None,
        manifest_version=version,
        affected_nodes=affected.total("node"),
        affected_edges=affected.total("edge"),
    )
    if returned is None:
        return result, commit
    elapsed_ms = 1_000 * (perf_counter() - started)
    rows = QueryResult(returned, ir.name, branch, result.commit_id, version, elapsed_ms)
    return replace(result, returned=rows), commit


def _solve_match(
    session: Session,
    ir: MutationIR,
    params: Mapping[str, Any],
    catalog: Catalog,
    staging: MutationStaging,
) -> pa.Table | None:
    """The rows that the statements run over, as the graph is before any of them."""
    if ir.match is None:
        return None
    staging.depend_on_match(tables_of_match(ir, catalog))
    where = (staging.snapshot, catalog, session.store.tables, session.cache)
    return execute(ir.match, params, *where, lambda: session.embed_source)
