"""Evidence: what storage shows of the tables that a sidecar names.

Invariant: only tables of this graph are looked at. Where a table lies comes from the manifest; a
sidecar that says otherwise was written for another graph and is refused before anything moves.

Whose a version is, its transaction says: the sidecar names the UUIDs it was about to commit. Only
sidecars without them (of older writers) are judged by version numbers alone.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, RecoveryRequired, TableNotFound, TableVersionNotFound
from omnigraph.manifest import MAIN, ManifestState, TableEntry
from omnigraph.manifest.branch_names import owns_lineage
from omnigraph.storage.handles import TransactionInfo
from omnigraph.storage.location import TableLocation, graph_root, is_same_place
from omnigraph.storage.tables import TableStorage
from omnigraph.write.audit import RecoveryKind
from omnigraph.write.classify import Observation, TableClass, classify, mode_of
from omnigraph.write.sidecar import Sidecar, SidecarPin, WriterKind, sidecar_path


@dataclass(frozen=True, slots=True)
class Found:
    """One pinned table as recovery finds it.

    `proof` is what the transactions up to the pin prove: the commit is published, or was undone;
    None when they prove neither.
    """

    pin: SidecarPin
    location: TableLocation
    seen: Observation
    table_class: TableClass
    proof: RecoveryKind | None


def has_commit(state: ManifestState, commit_id: str) -> bool:
    """Whether a graph commit is in the history of a branch."""
    return bool(pc.index(state.commit_rows["object_id"], pa.scalar(commit_id)).as_py() >= 0)


def inspect_tables(tables: TableStorage, state: ManifestState, sidecar: Sidecar) -> list[Found]:
    """Every table of the sidecar, classified.

    Raises:
        RecoveryRequired: The sidecar names something that is not a table of this graph.
    """
    locations = [_own_location(tables, state, sidecar, pin) for pin in sidecar.pins]
    return [
        _look_at(tables, state, sidecar, pin, location)
        for pin, location in zip(sidecar.pins, locations, strict=True)
    ]


def _own_location(
    tables: TableStorage, state: ManifestState, sidecar: Sidecar, pin: SidecarPin
) -> TableLocation:
    relative = state.paths.get(pin.table_key)
    if relative is None:
        raise _foreign(sidecar, f"names table '{pin.table_key}', which this graph does not have")
    is_lineage_own = owns_lineage(sidecar.branch or MAIN, pin.table_branch)
    own = tables.root.table(relative, pin.table_branch if is_lineage_own else sidecar.branch)
    try:
        claimed_uri = graph_root(pin.table_path).uri
        is_own = is_same_place(claimed_uri, own.uri) and is_lineage_own
    except BadRequestError:
        is_own = False
    if not is_own:
        claimed = TableLocation(pin.table_path, pin.table_branch)
        raise _foreign(sidecar, f"puts table '{pin.table_key}' at '{claimed}' instead of '{own}'")
    return own


def _foreign(sidecar: Sidecar, what: str) -> RecoveryRequired:
    return RecoveryRequired(
        f"'{sidecar_path(sidecar.operation_id)}' {what} — nothing was touched and the file is "
        "kept: it belongs to another graph; move it where it belongs",
        operation_id=sidecar.operation_id,
    )


def _look_at(
    tables: TableStorage,
    state: ManifestState,
    sidecar: Sidecar,
    pin: SidecarPin,
    location: TableLocation,
) -> Found:
    entry = state.entries.get(pin.table_key)
    shown = state.latest_version(pin.table_key)
    is_claimed = entry is not None and entry.table_branch == location.branch
    if is_claimed:
        # What lies past the pin and is torn was never acknowledged: it is no commit.
        tables.quarantine_torn(location, above=shown)
    head = _head(tables, location, entry, pin) if entry is not None else shown
    # Of a group each transaction is a commit of its own, and all have to be there.
    named = len(pin.transaction_uuids) if sidecar.writer_kind is WriterKind.MUTATION_GROUP else 1
    seen = Observation(
        head=head,
        pin=shown,
        expected=pin.expected_version,
        post_commit_pin=pin.post_commit_pin,
        confirmed=pin.confirmed_version,
        is_ours=_is_ours(tables, location, pin, head, named),
        steps=named,
    )
    mode = mode_of(
        sidecar.writer_kind,
        sidecar.schema_version,
        is_main=sidecar.branch is None,
        is_checked=sidecar.is_checked,
    )
    proof = _prove(tables, location, pin, shown) if is_claimed else None
    return Found(pin, location, seen, classify(mode, seen), proof)


def _head(tables: TableStorage, location: TableLocation, entry: TableEntry, pin: SidecarPin) -> int:
    """The HEAD of the lineage that the writer was to move."""
    is_claimed = entry.table_branch == location.branch
    if not is_claimed and pin.expected_version != entry.version:
        return entry.version  # whatever fork there is, it is not of what the branch shows
    try:
        return tables.head_version(location)
    except TableNotFound:
        # A fork that was never made, or was reclaimed, has not moved. A table that the manifest
        # shows and that is not there is damage, which 0 reports as a HEAD behind its pin.
        return 0 if is_claimed else entry.version


def _is_ours(
    tables: TableStorage, location: TableLocation, pin: SidecarPin, head: int, named: int
) -> bool | None:
    """Whether the writer made the first versions past the one it expected; None if unknowable.

    `named` is how many of them. Of several none may be missing: a reader of a commit between them
    would not find it.
    """
    if not pin.transaction_uuids or head <= pin.expected_version:
        return None
    made_by = [
        _transaction(tables, location, pin.expected_version + number)
        for number in range(1, min(named, head - pin.expected_version) + 1)
    ]
    if made_by == [None] and named == 1:
        return None
    uuids = [None if each is None else each.uuid for each in made_by]
    return uuids == list(pin.transaction_uuids[: len(uuids)])


def _prove(
    tables: TableStorage, location: TableLocation, pin: SidecarPin, shown: int
) -> RecoveryKind | None:
    """What became of the writer's commits, from the transactions between then and now."""
    if not pin.transaction_uuids:
        return None
    result, ours = None, 0
    for version in range(pin.expected_version + 1, shown + 1):
        made_by = _transaction(tables, location, version)
        if made_by is None:
            continue
        if made_by.uuid in pin.transaction_uuids:
            result, ours = RecoveryKind.ROLLED_FORWARD, version
        elif made_by.restored_version is not None and made_by.restored_version < ours:
            result = RecoveryKind.ROLLED_BACK
    return result


def _transaction(
    tables: TableStorage, location: TableLocation, version: int
) -> TransactionInfo | None:
    try:
        return tables.read_transaction(location, version)
    except (TableNotFound, TableVersionNotFound):
        return None
