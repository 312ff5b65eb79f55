"""Mutations: run as one commit, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import time_ns
from typing import Any

import pyarrow as pa

from omnigraph.compiler import bind_params, require_mutation
from omnigraph.graph.query_source import compile_source
from omnigraph.graph.results import MutationResult
from omnigraph.graph.session import Session
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import Insert
from omnigraph.manifest import Snapshot
from omnigraph.manifest.vector_models import note_models
from omnigraph.write.check import check_change
from omnigraph.write.commit import Inserts, WriteRequest
from omnigraph.write.embedding import VectorFiller
from omnigraph.write.mutate import Affected, InsertedRows, run_statements
from omnigraph.write.sidecar import WriterKind
from omnigraph.write.staging import NO_ROWS, MutationStaging
from omnigraph.write.touched import tables_of_mutation


def run_mutation(
    session: Session,
    source: str | Path,
    name: str | None,
    params: Mapping[str, Any] | None,
    branch: str,
    actor: str | None,
    if_commit: str | None,
) -> MutationResult:
    """Run a mutation that is permitted. Raises SchemaMoved when it was checked too early."""
    catalog = session.require_writable()
    ir = require_mutation(compile_source(source, catalog, name))
    bound = bind_params(ir.params, params) | {NOW_PARAMETER: time_ns() // 1_000_000}
    affected = Affected()
    seen = session.coordinator.last_seen(branch).snapshot()
    vectors = VectorFiller(session.embed_source, session.store.tables, seen)
    inserted = InsertedRows(ir, bound, catalog, vectors)
    noted: dict[str, Any] = {}

    def prepare(snapshot: Snapshot, earlier: Mapping[str, pa.Table] = NO_ROWS) -> MutationStaging:
        nonlocal affected, noted
        staging = MutationStaging(session.store.tables, catalog, snapshot, earlier)
        affected = run_statements(ir, bound, inserted, staging)
        noted = note_models(vectors.find_changed_models(snapshot))
        check_change(staging)
        return staging

    is_insert_only = all(isinstance(op, Insert) for op in ir.ops)
    commit = session.write(
        WriteRequest(
            kind=WriterKind.MUTATION,
            branch=branch,
            actor=actor,
            touched=tables_of_mutation(ir, catalog),
            prepare=prepare,
            if_commit=if_commit,
            properties=lambda: noted,
            inserts=Inserts(inserted.list_ids(ir), prepare) if is_insert_only else None,
        ),
        catalog,
    )
    version = commit.manifest_version if commit else session.coordinator.last_seen(branch).version
    return MutationResult(
        commit_id=commit.commit_id if commit else None,
        manifest_version=version,
        affected_nodes=affected.total("node"),
        affected_edges=affected.total("edge"),
    )
