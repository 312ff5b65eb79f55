"""Forecast: run the checks that a merge is held to over what it would leave, and write nothing.

the merge is a fast forward       the state of the source
no changed table is read          the state of the target
at most ROWS_MAX rows of these    tables in memory: the rows that stay, and those that come
more, or conflicts                not known; the merge itself runs every check
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.plan import TablePlan
from omnigraph.branch.row_batches import take_rows
from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError
from omnigraph.index import RuntimeCache
from omnigraph.json_form import JsonForm
from omnigraph.manifest import Snapshot, TableEntry
from omnigraph.manifest.checks import Check
from omnigraph.storage.tables import TableStorage
from omnigraph.ulids import new_ulid
from omnigraph.write.checks import list_read_tables, run_checks

ROWS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class CheckForecast(JsonForm):
    """A check that a merge is held to; `holds` is None where only the merge can tell."""

    name: str
    holds: bool | None = None


def forecast_checks(
    tables: TableStorage,
    catalog: Catalog,
    state: Snapshot,
    plans: Mapping[str, TablePlan],
    checks: Collection[Check],
) -> tuple[CheckForecast, ...]:
    """Run each check over a state, with the changes of a merge that is planned on it.

    One that does not fit the schema does not hold: it refuses the merge.
    """
    changed = {key: plan for key, plan in plans.items() if len(plan.delta)}
    cache = RuntimeCache()  # what is made here is of no use to others
    made: dict[str, TableEntry] = {}

    def holds(check: Check) -> bool | None:
        try:
            wanted = _find_joined(list_read_tables([check], catalog), catalog) & changed.keys()
        except BadRequestError:
            return False
        plan_rows = (changed[key].target.row_count + len(changed[key].delta) for key in wanted)
        if sum(plan_rows) > ROWS_MAX:
            return None
        for key in wanted - made.keys():
            made[key] = _make_table(tables, changed[key])
        after = replace(state, entries={**state.entries, **{key: made[key] for key in wanted}})
        return not run_checks([check], after, catalog, tables, cache)

    return tuple(CheckForecast(each.name, holds(each)) for each in checks)


def name_checks(checks: Collection[Check]) -> Sequence[CheckForecast]:
    """The checks of a merge of which nothing can be said yet."""
    return tuple(CheckForecast(each.name) for each in checks)


def _find_joined(keys: Collection[str], catalog: Catalog) -> set[str]:
    """Tables, and those of the ends of edges: an edge is read together with them."""
    edges = [each for each in catalog.edges.values() if each.table_key in keys]
    return {*keys, *(f"node:{end}" for each in edges for end in (each.source, each.target))}


def _make_table(tables: TableStorage, plan: TablePlan) -> TableEntry:
    """A table as the merge would leave it. Files are left out: no check reads them."""
    names = [each.name for each in plan.target.schema if not pa.types.is_large_binary(each.type)]
    image = tables.make_image(
        pa.schema([plan.target.schema.field(each) for each in names]),
        _read_merged(tables, plan, names),
    )
    return replace(
        plan.target_entry,
        table_path=f"image/{new_ulid()}",
        table_branch=None,
        version=image.version,
        row_count=image.row_count,
        image=image,
        shown=None,
    )


def _read_merged(
    tables: TableStorage, plan: TablePlan, names: list[str]
) -> Iterator[pa.RecordBatch]:
    for batch in tables.reads.scan_stream(plan.target, names):
        stays = pc.invert(pc.is_in(batch["id"], value_set=plan.delta.ids))
        yield batch.filter(stays)
    for batch in take_rows(tables, plan.source, plan.delta.rows["after"].drop_null()):
        yield batch.select(names)
