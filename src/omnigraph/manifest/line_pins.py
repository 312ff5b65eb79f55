"""Line pins: what every commit of a branch's line shows of the tables, from one read.

A manifest has a row for every version that was ever pinned, and Lance stamps each row with the
manifest versions that made it and last wrote it. What a commit shows is, for each table, the
greatest version among the rows that were there. Where that is not the whole truth (a table was
registered, hidden or shown again since) the answer is unknown, and the manifest of the commit has
to be read.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.manifest.branch_names import lance_branch
from omnigraph.manifest.model import GraphCommit, ManifestState, Pins, TableEntry
from omnigraph.manifest.rows import Row, row_to_commit, select_registered
from omnigraph.storage.control import STAMP, ControlTable
from omnigraph.storage.predicates import IsIn
from omnigraph.storage.reads import CREATED

_KINDS = ("table", "table_version", "table_tombstone")
_COLUMNS = ["object_type", "table_key", "location", "table_version", "table_branch", "row_count"]


@dataclass(frozen=True, slots=True)
class _Pins:
    """The pins of one table: each is shown from its manifest version on, until the next one."""

    since: list[int]
    rows: list[Row]

    def at(self, manifest_version: int) -> Row | None:
        place = bisect_right(self.since, manifest_version)
        return self.rows[place - 1] if place else None


@dataclass(frozen=True, slots=True)
class LinePins:
    """The pins of a line. `settled` is the manifest version from which on they say everything.

    `places` are those of the commits in the rows of the state.
    """

    state: ManifestState
    settled: int
    tables: Mapping[str, _Pins]
    places: Mapping[str, int]

    def find(self, commit: GraphCommit) -> tuple[dict[str, TableEntry], Pins] | None:
        """What a commit of the line shows, and what of it later commits of the same publish have
        moved on; None when only its own manifest tells.
        """
        place = self.places.get(commit.commit_id)
        if place is None or commit.manifest_version < self.settled:
            return None
        made = row_to_commit(self.state.commit_rows.slice(place, 1).to_pylist()[0])
        if made.is_kept:
            return None
        shown = {}
        for key, pins in self.tables.items():
            row = pins.at(made.manifest_version)
            if row is not None and self.state.hidden.get(key, -1) < row["table_version"]:
                shown[key] = self._to_entry(key, row)
        # Commits of one publish: all but the last say themselves what they show.
        for key, (number, branch, count, uuid) in made.pins.items():
            shown[key] = replace(
                shown[key],
                version=number,
                table_branch=branch,
                row_count=count,
                transaction_uuid=uuid,
            )
        return shown, made.pins

    def _to_entry(self, key: str, row: Row) -> TableEntry:
        return TableEntry(
            table_key=key,
            table_path=self.state.paths[key],
            version=row["table_version"],
            table_branch=row["table_branch"],
            row_count=row["row_count"],
            transaction_uuid=json.loads(row["metadata"]).get("transaction_uuid"),
        )


def read_line_pins(control: ControlTable, state: ManifestState) -> LinePins:
    """The pins of a branch's line, by one read of its manifest."""
    of_tables = IsIn("object_type", pa.array(_KINDS, pa.utf8()))
    columns = [*_COLUMNS, "metadata", CREATED]
    rows = control.read_stamped(lance_branch(state.branch), state.version, columns, of_tables)
    is_pin = pc.equal(rows["object_type"], "table_version")
    is_final = pc.and_(is_pin, pc.equal(rows[CREATED], rows[STAMP]))
    settled = pc.max(rows[STAMP].filter(pc.invert(is_final))).as_py() or 0
    if rows[STAMP].null_count or rows[CREATED].null_count:
        settled = state.version + 1  # of rows without stamps nothing is known
    pins = select_registered(rows.filter(is_pin), state.paths)
    by_table: dict[str, list[Row]] = {}
    for row in pins.sort_by([(STAMP, "ascending"), ("table_version", "ascending")]).to_pylist():
        known = by_table.setdefault(row["table_key"], [])
        if not known or known[-1]["table_version"] < row["table_version"]:
            known.append(row)
    tables = {key: _Pins([row[STAMP] for row in each], each) for key, each in by_table.items()}
    ids = state.commit_rows["object_id"].to_pylist()
    return LinePins(state, settled, tables, {each: place for place, each in enumerate(ids)})
