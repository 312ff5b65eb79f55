"""The internal schema stamp: which format `__manifest` is in, and how an older one is brought up.

    1  no primary key on `object_id`: no row-level fence
    2  `object_id` is the primary key
    3  no `__run__*` staging branches left
    4  rows of a table that is not at the default path of its key say where it is
    5  branches may be in different schemas

A graph is brought up to 4 when it is opened to write. It gets 5 when a branch first gets a schema
of its own, so that a graph that does without is still read by the Omnigraph before.

Nothing outside this module reads the stamp. Migration is idempotent: a crash in the middle, or two
processes at the same time, end in the same state.
"""

from __future__ import annotations

from omnigraph.errors import BranchNotFound, InvariantViolated, StorageError
from omnigraph.storage.control import ControlTable
from omnigraph.version import INTERNAL_SCHEMA_VERSION

STAMP = "omnigraph:internal_schema_version"
COMMON_VERSION = 4
"""The format of a graph whose branches are all in one schema."""
BRANCH_SCHEMAS_VERSION = 5
_LEGACY_RUN_PREFIX = "__run__"


def fresh_stamp() -> dict[str, str]:
    """The schema metadata a new manifest is born with."""
    return {STAMP: str(COMMON_VERSION)}


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
    if stamp >= COMMON_VERSION:
        return False
    if stamp < 2:
        _mark_primary_key(control)
    if stamp < 3:
        _sweep_run_branches(control)
    if stamp < 4:
        # No such row is there yet; an Omnigraph that would not understand one has to keep out.
        control.set_metadata({STAMP: "4"})
    return True


def admit_branch_schemas(control: ControlTable) -> bool:
    """Keep out an Omnigraph that takes all branches for one schema; whether anything was done.

    The caller holds the turn to publish on main.
    """
    if read_stamp(control) >= BRANCH_SCHEMAS_VERSION:
        return False
    control.set_metadata({STAMP: str(BRANCH_SCHEMAS_VERSION)})
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
