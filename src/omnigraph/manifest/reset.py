"""Reset: a branch goes back to an earlier state of its line, by one commit on `__manifest`.

The rows that were added since are removed, those that were replaced come back, and all others stay
as they are, with the stamps that tell which commit wrote them. A pin that comes back keeps its
stamps by saying so. Together with them go the pins of lineages on which the branch writes from then
on, the row that publishes contend for, and a new id, so that no writer takes a number for one that
it has seen before.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, PreconditionFailed, RowLevelCasContention
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import ManifestState, UpdatePin
from omnigraph.manifest.rows import (
    RESET_KEY,
    SCHEMA,
    Row,
    change_to_row,
    head_key,
    head_to_row,
    keep_stamps,
    reset_to_row,
    rows_to_table,
)
from omnigraph.storage.control import STAMP, ControlTable
from omnigraph.storage.reads import CREATED
from omnigraph.ulids import new_ulid

_COMPARED = [name for name in SCHEMA.names if name != "base_objects"]


@dataclass(frozen=True, slots=True)
class Reset:
    """A branch whose head is `seen` is to show what `origin` shows, an earlier state of its line.

    `pins` are tables that it shows on other lineages than `origin` does, with the same rows.
    """

    seen: ManifestState
    origin: ManifestState
    pins: tuple[UpdatePin, ...]


def publish_reset(coordinator: Coordinator, request: Reset) -> ManifestState:
    """Make a reset visible and return the branch's new state. The caller holds its publish turn.

    Raises:
        PreconditionFailed: The head is another one by now. Nothing is visible.
        ConflictError: Something else was published at the same time. Nothing is visible.
    """
    coordinator.migrate()
    state, seen = coordinator.fresh(request.seen.branch), request.seen
    if not state.has_rows_of(seen) or state.version != seen.version:
        raise PreconditionFailed(expected=seen.head.commit_id, actual=state.head.commit_id)
    hit(Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT)
    try:
        made = coordinator.replace_rows(state, lambda control: _list_rows(control, request))
    except RowLevelCasContention as error:
        raise ConflictError(
            f"something else was published on branch '{state.branch}' at the same time — nothing "
            "was reset; retry"
        ) from error
    hit(Failpoint.GRAPH_PUBLISH_AFTER_MANIFEST_COMMIT)
    return made


def _list_rows(control: ControlTable, request: Reset) -> tuple[set[str], pa.Table]:
    """The keys of the rows that go, and the rows that come."""
    seen, origin = request.seen, request.origin
    now = control.read(lance_branch(seen.branch), seen.version).rows.select(_COMPARED)
    then = control.read_stamped(lance_branch(origin.branch), origin.version, [*_COMPARED, CREATED])
    new = [
        *(change_to_row(pin, origin.paths[pin.table_key]) for pin in request.pins),
        head_to_row(seen.branch, origin.head.commit_id),
        reset_to_row(new_ulid()),
    ]
    written = {row["object_id"] for row in new} | {head_key(seen.branch), RESET_KEY}
    is_same = _match_rows(now, then)
    changed = set(now.filter(pc.invert(is_same))["object_id"].to_pylist())
    removed = changed | (written & set(now["object_id"].to_pylist()))
    kept = now.filter(is_same)["object_id"]
    back = then.filter(pc.invert(pc.is_in(then["object_id"], kept)))
    rows = [_to_row(row) for row in back.to_pylist() if row["object_id"] not in written]
    return removed, rows_to_table([*rows, *new])


def _match_rows(rows: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    """Which of the rows are among the others, unchanged."""
    places = pc.index_in(rows["object_id"], value_set=others["object_id"])
    aligned = others.take(places)
    is_same: pa.ChunkedArray = pc.is_valid(places)
    for name in _COMPARED:
        one, other = rows[name], aligned[name]
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        is_same = pc.and_(is_same, pc.or_(pc.fill_null(pc.equal(one, other), False), both_null))
    return is_same


def _to_row(row: Row) -> Row:
    """A row of the earlier state, to be written again."""
    created, updated = row.pop(CREATED), row.pop(STAMP)
    is_pin = row["object_type"] == "table_version" and created is not None and updated is not None
    if not is_pin or '"stamps"' in row["metadata"]:
        return row
    return keep_stamps(row, created, updated)
