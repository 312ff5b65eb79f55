"""Conflicts over one table: nothing took effect; refresh and retry."""

from __future__ import annotations

from omnigraph.errors.conflict import ConflictError


class ExpectedVersionMismatch(ConflictError):
    """A table moved between the snapshot a write was prepared on and its publish."""

    def __init__(self, table_key: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"stale view of '{table_key}': expected manifest table version {expected} "
            f"but current is {actual} — refresh and retry"
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual


class KeyConflict(ConflictError):
    """A strict insert met an id that is already there."""

    def __init__(self, table_key: str, entity_id: str) -> None:
        super().__init__(
            f"key conflict: '{entity_id}' already exists in '{table_key}' — "
            "use mode merge to replace it; nothing was written"
        )
        self.table_key = table_key
        self.entity_id = entity_id


class SchemaMoved(ConflictError):
    """The write was checked against a schema that has been replaced. Nothing was written."""


class RowLevelCasContention(ConflictError):
    """Another writer landed one of our keys first. Internal: the publisher checks and retries."""


class CommitConflict(ConflictError):
    """A staged transaction conflicts with the current version of the table. HEAD is unmoved."""


class HeadMoved(ConflictError):
    """A table's HEAD is not the version a transaction was staged on. Nothing was committed."""

    def __init__(self, location: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"the table at '{location}' is at version {actual}, the write was staged on {expected} "
            "— nothing was committed; refresh and stage again"
        )
        self.location = location
        self.expected = expected
        self.actual = actual


class TableExists(ConflictError):
    """A dataset is already there; creation never replaces one."""

    def __init__(self, location: str) -> None:
        super().__init__(f"a table already exists at '{location}' — creation never replaces one")
        self.location = location


class ForkExists(ConflictError):
    """A fork of that name is already on the table: a live ref, or a tree left without one."""

    def __init__(self, location: str, branch: str, *, has_ref: bool) -> None:
        what = "is already forked" if has_ref else "has leftover files of an unfinished fork"
        super().__init__(
            f"the table at '{location}' {what} for branch '{branch}' — refresh and retry"
        )
        self.location = location
        self.branch = branch
        self.has_ref = has_ref


class ForkInUse(ConflictError):
    """A fork cannot be deleted while another branch is based on it."""

    def __init__(self, location: str, branch: str) -> None:
        super().__init__(
            f"the fork '{branch}' of the table at '{location}' is still in use by another branch "
            "— delete the branches that came from it first"
        )
        self.location = location
        self.branch = branch
