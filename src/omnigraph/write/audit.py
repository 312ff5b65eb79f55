"""Audit: `_graph_commit_recoveries.lance`, one row per recovered write."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum

import pyarrow as pa

from omnigraph.dataclass import dataclass
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
_IN_MICROSECONDS = SCHEMA.set(6, pa.field("created_at", pa.int64()))


class RecoveryKind(StrEnum):
    """How a write was recovered."""

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
    """One recovered write. `commit_id` is the commit that recovery made for it."""

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
    rows = _to_rows(record)
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
    """Every recovered write, oldest first."""
    if not audit.exists():
        return []
    rows = audit.read().rows.sort_by("created_at").cast(_IN_MICROSECONDS)
    return [
        RecoveryRecord(
            commit_id=row["graph_commit_id"],
            kind=RecoveryKind(row["recovery_kind"]),
            for_actor=row["recovery_for_actor"],
            operation_id=row[KEY],
            writer_kind=row["sidecar_writer_kind"],
            outcomes=tuple(TableOutcome(**e) for e in json.loads(row["per_table_outcomes_json"])),
            created_at=row["created_at"],
        )
        for row in rows.to_pylist()
    ]


def _to_rows(record: RecoveryRecord) -> pa.Table:
    row = {
        "graph_commit_id": record.commit_id,
        "recovery_kind": record.kind.value,
        "recovery_for_actor": record.for_actor,
        KEY: record.operation_id,
        "sidecar_writer_kind": record.writer_kind,
        "per_table_outcomes_json": json.dumps([asdict(each) for each in record.outcomes]),
        "created_at": record.created_at,
    }
    return pa.Table.from_pylist([row], schema=SCHEMA)
