"""Audit: `_graph_commit_recoveries.lance`, one row for every write that recovery had to settle."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from omnigraph.errors import RowLevelCasContention, TableExists
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.control import ControlTable

TABLE = "_graph_commit_recoveries.lance"
KEY = "operation_id"

SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.utf8(), nullable=False),
        pa.field("recovery_kind", pa.utf8(), nullable=False),
        pa.field("recovery_for_actor", pa.utf8()),
        pa.field(KEY, pa.utf8(), nullable=False),
        pa.field("sidecar_writer_kind", pa.utf8(), nullable=False),
        pa.field("per_table_outcomes_json", pa.utf8(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)


class RecoveryKind(StrEnum):
    """How a write was settled."""

    ROLLED_FORWARD = "RolledForward"
    ROLLED_BACK = "RolledBack"
    ORPHANED_BRANCH_DISCARDED = "OrphanedBranchDiscarded"


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """From which version to which a table went, as its readers see it."""

    table_key: str
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """One settled write. `commit_id` is the commit that recovery made for it."""

    commit_id: str
    kind: RecoveryKind
    for_actor: str | None
    operation_id: str
    writer_kind: str
    outcomes: tuple[TableOutcome, ...]
    created_at: int


def record_recovery(audit: ControlTable, record: RecoveryRecord) -> None:
    """Write the row of an operation. Writing it again changes nothing: the operation is the key."""
    hit(Failpoint.RECOVERY_RECORD_AUDIT)
    rows = _rows([record])
    try:
        if not audit.exists():
            audit.create(rows)
            return
    except TableExists:
        pass  # another process created it just now
    known = audit.read(columns=[KEY])
    if record.operation_id in known.rows[KEY].to_pylist():
        return
    try:
        audit.merge_rows(rows, read_version=known.version)
    except RowLevelCasContention:
        record_recovery(audit, record)


def is_recorded(audit: ControlTable, operation_id: str) -> bool:
    """Whether the row of an operation is there."""
    if not audit.exists():
        return False
    return operation_id in audit.read(columns=[KEY]).rows[KEY].to_pylist()


def list_recoveries(audit: ControlTable) -> list[RecoveryRecord]:
    """Every settled write, oldest first."""
    if not audit.exists():
        return []
    rows = audit.read().rows.sort_by("created_at").cast(_numeric_schema())
    return [
        RecoveryRecord(
            commit_id=row["graph_commit_id"],
            kind=RecoveryKind(row["recovery_kind"]),
            for_actor=row["recovery_for_actor"],
            operation_id=row[KEY],
            writer_kind=row["sidecar_writer_kind"],
            outcomes=tuple(
                TableOutcome(**outcome) for outcome in json.loads(row["per_table_outcomes_json"])
            ),
            created_at=row["created_at"],
        )
        for row in rows.to_pylist()
    ]


def _numeric_schema() -> pa.Schema:
    return pa.schema(
        [
            field if field.name != "created_at" else pa.field("created_at", pa.int64())
            for field in SCHEMA
        ]
    )


def _rows(records: Sequence[RecoveryRecord]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "graph_commit_id": record.commit_id,
                "recovery_kind": record.kind.value,
                "recovery_for_actor": record.for_actor,
                KEY: record.operation_id,
                "sidecar_writer_kind": record.writer_kind,
                "per_table_outcomes_json": json.dumps(
                    [
                        {
                            "table_key": outcome.table_key,
                            "from_version": outcome.from_version,
                            "to_version": outcome.to_version,
                        }
                        for outcome in record.outcomes
                    ]
                ),
                "created_at": record.created_at,
            }
            for record in records
        ],
        schema=SCHEMA,
    )
