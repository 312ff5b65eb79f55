"""Pins: the change of the manifest that makes a version of a table visible."""

from __future__ import annotations

from omnigraph.manifest import UpdatePin
from omnigraph.storage.datasets import manifest_path
from omnigraph.storage.handles import CommittedVersion, TableHandle


def version_to_pin(table_key: str, committed: CommittedVersion) -> UpdatePin:
    """The pin of a committed version."""
    return UpdatePin(
        table_key=table_key,
        version=committed.version,
        table_branch=committed.location.branch,
        row_count=committed.row_count,
        manifest_path=committed.manifest_path,
        transaction_uuid=committed.transaction_uuid,
    )


def handle_to_pin(table_key: str, handle: TableHandle) -> UpdatePin:
    """The pin of the version of an open table."""
    return UpdatePin(
        table_key=table_key,
        version=handle.version,
        table_branch=handle.location.branch,
        row_count=handle.row_count,
        manifest_path=manifest_path(handle.location, handle.version),
        transaction_uuid=handle.transaction_uuid,
    )
