"""Genesis: create a graph, so that of two concurrent attempts exactly one succeeds.

`_schema.pg` is the claim: it is created only if absent, and the process that created it goes on.
When a later step fails the claim is released, so the same command can be retried.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import pyarrow as pa

from omnigraph.catalog import Catalog, arrow_schema
from omnigraph.errors import GraphExists, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.contract import (
    FILES,
    IR_FILE,
    SOURCE_FILE,
    STATE_FILE,
    build_contract_texts,
)
from omnigraph.manifest.history import commits_to_rows
from omnigraph.manifest.model import MAIN, Change, GraphCommit, RegisterTable, UpdatePin
from omnigraph.manifest.rows import (
    SCHEMA,
    change_to_row,
    commit_to_row,
    head_to_row,
    rows_to_table,
    schema_to_row,
)
from omnigraph.manifest.schemas import keep_schema
from omnigraph.manifest.stamp import fresh_stamp
from omnigraph.storage.control import ControlTable
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.storage.location import table_path
from omnigraph.storage.tables import TableStorage
from omnigraph.ulids import new_ulid

log = logging.getLogger("omnigraph.manifest")


def create_graph(
    texts: GraphTexts,
    tables: TableStorage,
    manifest: ControlTable,
    history: ControlTable,
    *,
    source: str,
    catalog: Catalog,
    actor: str | None,
) -> None:
    """Lay down an empty graph.

    Raises:
        GraphExists: A graph, or part of one, is already there.
    """
    is_whole = manifest.exists()
    if is_whole or any(texts.exists(name) for name in FILES):
        raise GraphExists(str(tables.root), is_partial=not is_whole)
    contract = build_contract_texts(source, catalog)
    if not texts.write_text_if_absent(SOURCE_FILE, contract[SOURCE_FILE]):
        raise GraphExists(str(tables.root), is_partial=True)
    try:
        hit(Failpoint.INIT_AFTER_SCHEMA_PG_WRITTEN)
        for name in (IR_FILE, STATE_FILE):
            texts.write_text(name, contract[name])
        hit(Failpoint.INIT_AFTER_SCHEMA_CONTRACT_WRITTEN)
        schema_id = keep_schema(texts, source, catalog)
        commit = _build_first_commit(actor)
        changes = _create_tables(tables, catalog)
        history.create(commits_to_rows([commit]))
        # Last: a graph exists from the moment it has a manifest.
        manifest.create(_build_manifest_rows(changes, commit, catalog.shape_hash, schema_id))
        hit(Failpoint.INIT_AFTER_COORDINATOR_INIT)
    except BaseException:
        _release_claim(texts, manifest)
        raise


def _build_first_commit(actor: str | None) -> GraphCommit:
    return GraphCommit(
        commit_id=new_ulid(),
        branch=MAIN,
        manifest_version=1,
        parent_id=None,
        merged_parent_id=None,
        actor=actor,
        created_at=time.time_ns() // 1_000,
    )


def _create_tables(tables: TableStorage, catalog: Catalog) -> list[Change]:
    changes: list[Change] = []
    for entity in catalog.entities():
        path = table_path(entity.kind, entity.name)
        created = tables.create_table(tables.root.table(path), arrow_schema(entity))
        hit(Failpoint.INIT_AFTER_TABLE)
        changes.append(RegisterTable(entity.table_key, path))
        changes.append(
            UpdatePin(
                table_key=entity.table_key,
                version=created.version,
                table_branch=None,
                row_count=0,
                manifest_path=created.manifest_path,
                transaction_uuid=created.transaction_uuid,
            )
        )
    return changes


def _build_manifest_rows(
    changes: Sequence[Change], commit: GraphCommit, schema_hash: str, schema_id: str
) -> pa.Table:
    rows = [
        *map(change_to_row, changes),
        commit_to_row(commit),
        head_to_row(MAIN, commit.commit_id),
        schema_to_row(schema_hash, schema_id),
    ]
    return rows_to_table(rows).cast(SCHEMA.with_metadata(fresh_stamp()))


def _release_claim(texts: GraphTexts, manifest: ControlTable) -> None:
    """Give the location back, unless the graph is whole. Never hides the first error."""
    try:
        if manifest.exists():
            return
        for name in FILES:
            texts.delete(name)
    except OmnigraphError as error:
        log.warning("the schema files of a failed init could not be removed: %s", error)
