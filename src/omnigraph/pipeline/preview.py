"""Preview: what a load would do, table by table, with the first rows and every refused record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from omnigraph.branch.images import images
from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.pipeline.columns import CheckPlan
from omnigraph.pipeline.count_changes import Counts, count_changes, read_part
from omnigraph.pipeline.staged import StagedLoad
from omnigraph.storage.tables import TableStorage
from omnigraph.write.bad_rows import SHOWN_MAX, BadRow, BadRows

ROWS_SHOWN = 3
UNKNOWN = "unknown"
"""Refused records that name no type of the schema are counted under this key."""


@dataclass(frozen=True, slots=True)
class LoadPreview:
    """What a load would do. Nothing was written.

    `tables` has the counts by table key, `rows` the first rows by table key, `bad_rows` the first
    reasons to refuse a record and how many there are.
    """

    tables: Mapping[str, Counts]
    bad_rows: BadRows
    rows: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        return all(counts.changes_nothing for counts in self.tables.values())

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def describe_load(check: CheckPlan, tables: TableStorage, staged: StagedLoad) -> LoadPreview:
    """Count what checked rows would do."""
    counted = {key: count_changes(check, tables, key) for key in check.list_table_keys()}
    keys = {entity.name: entity.table_key for entity in check.catalog.entities()}
    refused = Counter(keys.get(each.type_name, UNKNOWN) for _, each in staged.rejected)
    for key, count in refused.items():
        counted[key] = replace(counted.get(key, Counts()), refused=count)
    bad = [
        BadRow(each.line - 1, each.type_name or "record", None, "", reason, location)
        for location, each in staged.rejected
        for reason in each.reasons
    ]
    first = {key: _first_rows(check, key) for key in check.list_table_keys()}
    ordered = dict(sorted(counted.items()))
    return LoadPreview(ordered, BadRows(tuple(bad[:SHOWN_MAX]), len(bad)), first)


def _first_rows(check: CheckPlan, key: str) -> list[dict[str, Any]]:
    part = next(part for part in check.parts if part.table_key == key)
    rows = next(read_part(check, part))
    return images(rows.slice(0, ROWS_SHOWN).combine_chunks().to_batches()[0])
