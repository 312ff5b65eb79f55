"""The internal schema stamp: which format `__manifest` is in, and how an older one is brought up.

    1  no primary key on `object_id`: no row-level fence
    2  `object_id` is the primary key
    3  no `__run__*` staging branches left
    4  rows of a table that is not at the default path of its key say where it is

Nothing outside this module reads the stamp. Migration is idempotent: a crash in the middle, or two
processes at the same time, end in the same state.
"""

from __future__ import annotations

from omnigraph.errors import BranchNotFound, InvariantViolated, StorageError
from omnigraph.storage.control import ControlTable
from omnigraph.version import INTERNAL_SCHEMA_VERSION

STAMP = "omnigraph:internal_schema_version"
_LEGACY_RUN_PREFIX = "__run__"


def fresh_stamp() -> dict[str, str]:
    """The schema metadata a new manifest is born with."""
    return {STAMP: str(INTERNAL_SCHEMA_VERSION)}


def read_stamp(control: ControlTable) -> int:
    """The format of a manifest.

    Raises:
        StorageError: It is newer than this Omnigraph.
    """
    stamp = int(control.metadata().get(STAMP, "1"))
    if stamp > INTERNAL_SCHEMA_VERSION:
        raise StorageError(
            f"this graph has internal schema {stamp}, this Omnigraph reads up to "
            f"{INTERNAL_SCHEMA_VERSION} — upgrade Omnigraph first"
        )
    return stamp


def migrate(control: ControlTable) -> bool:
    """Bring a manifest up to the current format; whether anything was done."""
    stamp = read_stamp(control)
    if stamp == INTERNAL_SCHEMA_VERSION:
        return False
    if stamp < 2:
        _mark_primary_key(control)
    if stamp < 3:
        _sweep_run_branches(control)
    if stamp < 4:
        # No such row is there yet; an Omnigraph that would not understand one has to keep out.
        control.set_metadata({STAMP: "4"})
    return True


def _mark_primary_key(control: ControlTable) -> None:
    marked = control.primary_key()
    if not marked:
        control.set_primary_key()
    elif marked != [control.key]:
        raise InvariantViolated(
            f"the manifest's primary key is {marked}, expected ['{control.key}'] — it cannot be "
            "changed; export the graph with the Omnigraph that made it and load it anew"
        )
    control.set_metadata({STAMP: "2"})


def _sweep_run_branches(control: ControlTable) -> None:
    for name in sorted(control.branch_names()):
        if name.lstrip("/").startswith(_LEGACY_RUN_PREFIX):
            try:
                control.delete_branch(name)
            except BranchNotFound:
                continue  # another process swept it first
    control.set_metadata({STAMP: "3"})
