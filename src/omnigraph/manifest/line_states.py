"""Line states: a branch as it stood at any manifest version, from one read of a later one.

Rows of a manifest are added and hardly ever changed, and Lance stamps each with the manifest
versions that made it and last wrote it. So what a version shows are the rows that were there: for
each table the greatest version among them, and the commits up to then. That is not the whole truth
before a row was written again (a table was registered, hidden or shown again, the schema changed):
there the answer is unknown, and the version itself has to be read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.freshness import apply_delta
from omnigraph.manifest.model import Facts, ManifestState, PublishDelta, TableEntry
from omnigraph.manifest.rows import (
    SCHEMA,
    STATE_TYPES,
    find_head,
    list_locations,
    row_to_commit,
    row_to_pin,
    select_registered,
    select_tombstones,
)
from omnigraph.storage.control import STAMP, ControlTable
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.reads import CREATED

_ADDED = ("table_version", "graph_commit", "graph_ancestor")
"""Kinds of rows that a publish adds, and that none replaces."""
_COLUMNS = [*SCHEMA.names, CREATED]
_OF_PIN = ["table_version", "table_branch", "row_count", "metadata"]
_OF_STATE = IsIn("object_type", pa.array(STATE_TYPES, pa.utf8()))
_Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Stamped:
    """Rows of one kind in the order in which they were made."""

    rows: pa.Table
    since: _Numbers

    def until(self, version: int) -> pa.Table:
        return self.rows.slice(0, int(np.searchsorted(self.since, version, side="right")))


@dataclass(frozen=True, slots=True)
class _Pins:
    """The pins of one key: each is the greatest from its manifest version on, until the next."""

    since: _Numbers
    places: _Numbers
    versions: _Numbers

    def at(self, version: int) -> tuple[int, int] | None:
        """Place and version of the pin; None before the first one."""
        count = int(np.searchsorted(self.since, version, side="right"))
        return (int(self.places[count - 1]), int(self.versions[count - 1])) if count else None


@dataclass(frozen=True, slots=True)
class LineStates:
    """A line up to its `newest` state. From the manifest version `settled` on all is known."""

    newest: ManifestState
    settled: int
    pins: pa.Table
    registered: Mapping[str, _Pins]
    every: Mapping[str, _Pins]
    hidden_paths: frozenset[str]
    commits: _Stamped
    ancestors: _Stamped

    def at(self, version: int) -> ManifestState | None:
        """The branch at a manifest version; None when only that version itself tells.

        Whether it is still stored, the caller finds out.
        """
        entries, commit_rows = self.entries_at(version), self.commits.until(version)
        if entries is None or commit_rows.num_rows == 0:
            return None
        greatest = {key: pins.at(version) for key, pins in self.every.items()}
        return replace(
            self.newest,
            version=version,
            entries=entries,
            hidden_paths=self.hidden_paths - {each.table_path for each in entries.values()},
            commit_rows=commit_rows,
            ancestor_rows=self.ancestors.until(version),
            head=find_head(commit_rows),
            pinned={key: pin[1] for key, pin in greatest.items() if pin is not None},
        )

    def entries_at(self, version: int) -> dict[str, TableEntry] | None:
        """The pins of the branch at a manifest version; None when only that version tells."""
        if not self.settled <= version <= self.newest.version:
            return None
        found = {key: pins.at(version) for key, pins in self.registered.items()}
        places = {
            key: pin[0]
            for key, pin in found.items()
            if pin is not None and self.newest.hidden.get(key, -1) < pin[1]
        }
        # All of them in one call: a call for each costs more than all that is read.
        rows = self.pins.take(pa.array(list(places.values()), pa.int64())).to_pylist()
        return {key: self._to_entry(key, row) for key, row in zip(places, rows, strict=True)}

    def _to_entry(self, key: str, row: Mapping[str, Any]) -> TableEntry:
        return TableEntry(
            table_key=key,
            table_path=self.newest.paths[key],
            version=row["table_version"],
            table_branch=row["table_branch"],
            row_count=row["row_count"],
            transaction_uuid=json.loads(row["metadata"]).get("transaction_uuid"),
        )


def read_line_states(control: ControlTable, state: ManifestState) -> LineStates:
    """The states of a branch's line up to this one, by one read of its manifest."""
    rows = control.read_stamped(lance_branch(state.branch), state.version, _COLUMNS, _OF_STATE)
    rows = rows.combine_chunks().sort_by([(STAMP, "ascending"), ("table_version", "ascending")])
    settled = pc.max(rows[STAMP].filter(pc.invert(_are_final(rows)))).as_py() or 0
    if rows[STAMP].null_count or rows[CREATED].null_count:
        settled = state.version + 1  # of rows without stamps nothing is known
    kinds = {kind: rows.filter(pc.equal(rows["object_type"], kind)) for kind in STATE_TYPES}
    pins = select_registered(kinds["table_version"], state.paths)
    return LineStates(
        newest=state,
        settled=settled,
        pins=pins.select(_OF_PIN),
        registered=dict(sorted(_group_pins(pins).items())),
        every=_group_pins(kinds["table_version"]),
        hidden_paths=frozenset(list_locations(select_tombstones(kinds["table_tombstone"]))),
        commits=_stamp(kinds["graph_commit"]),
        ancestors=_stamp(kinds["graph_ancestor"]),
    )


def read_onto(control: ControlTable, origin: ManifestState, version: int) -> ManifestState | None:
    """A branch at a version, by the rows that it has added since it showed `origin`.

    Most of what its manifest says it came with. None when it has also changed some of that.
    """
    assert origin.branch_id is not None
    rows = control.read_own(origin.branch, version, _COLUMNS, _OF_STATE)
    if rows is None or rows[STAMP].null_count or rows[CREATED].null_count:
        return None
    # A compaction brings what was there before into a file of its own.
    own = rows.filter(pc.greater(rows[STAMP], origin.version)).combine_chunks()
    if not pc.all(_are_final(own), min_count=0).as_py():
        return None
    kinds = {kind: own.filter(pc.equal(own["object_type"], kind)) for kind in _ADDED}
    pins = kinds["table_version"]
    if select_registered(pins, origin.paths).num_rows != pins.num_rows:
        return None
    commits = map(row_to_commit, kinds["graph_commit"].to_pylist())
    delta = PublishDelta(
        branch=origin.branch,
        branch_id=origin.branch_id,
        from_version=origin.version,
        changes=tuple(map(row_to_pin, pins.sort_by("table_version").to_pylist())),
        commits=tuple(sorted(commits, key=lambda each: each.order)),
        ancestors=tuple(map(row_to_commit, kinds["graph_ancestor"].to_pylist())),
        facts=Facts(origin.vector_models, origin.checks),
    )
    return replace(apply_delta(origin, delta), version=version)


def _are_final(rows: pa.Table) -> pa.ChunkedArray:
    """Which rows were added, and never written again."""
    is_added = pc.is_in(rows["object_type"], pa.array(_ADDED, pa.utf8()))
    return pc.and_(is_added, pc.equal(rows[CREATED], rows[STAMP]))


def _stamp(rows: pa.Table) -> _Stamped:
    return _Stamped(rows.select(SCHEMA.names), rows[STAMP].to_numpy())


def _group_pins(rows: pa.Table) -> dict[str, _Pins]:
    """The pins of each key that were the greatest when they came."""
    places: dict[str, list[int]] = {}
    for place, key in enumerate(rows["table_key"].to_pylist()):
        places.setdefault(key, []).append(place)
    stamps, versions = rows[STAMP].to_numpy(), rows["table_version"].to_numpy()
    found = {}
    for key, each in places.items():
        at = np.array(each)
        greatest = np.maximum.accumulate(versions[at])
        at = at[np.append(True, greatest[1:] > greatest[:-1])]
        found[key] = _Pins(stamps[at], at, versions[at])
    return found
