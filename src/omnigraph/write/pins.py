"""Pins: how the manifest is told which version of a table to show."""

from __future__ import annotations

from omnigraph.manifest import UpdatePin
from omnigraph.storage.datasets import manifest_path
from omnigraph.storage.handles import CommittedVersion, TableHandle


def pin_of(table_key: str, committed: CommittedVersion) -> UpdatePin:
    """The pin that shows a committed version."""
    return UpdatePin(
        table_key=table_key,
        version=committed.version,
        table_branch=committed.location.branch,
        row_count=committed.row_count,
        manifest_path=committed.manifest_path,
        transaction_uuid=committed.transaction_uuid,
    )


def pin_of_handle(table_key: str, handle: TableHandle) -> UpdatePin:
    """The pin that shows the version of an open table."""
    return UpdatePin(
        table_key=table_key,
        version=handle.version,
        table_branch=handle.location.branch,
        row_count=handle.row_count,
        manifest_path=manifest_path(handle.location, handle.version),
        transaction_uuid=handle.transaction_uuid,
    )
