"""Run checks: both rounds of check.py over all buckets of a load, here or by the runner."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.buckets import Bucket
from omnigraph.pipeline.check import IdOutcome, Violation, check_bucket, check_ids
from omnigraph.pipeline.columns import CheckPlan, KeyColumns, RowNumbers
from omnigraph.pipeline.engine import CHECK_ROWS, CHECK_ROWS_VARIABLE, THREADED_ROWS, setting
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner
from omnigraph.storage.location import graph_root
from omnigraph.storage.tables import TableStorage

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LoadChecks:
    """How the checks of one load run. At most `limit` violations per rule are named, None: all."""

    tables: TableStorage
    runner: Runner
    reporter: Reporter
    limit: int | None

    def check_ids(self, plan: CheckPlan) -> list[IdOutcome]:
        """The first round, one outcome per table."""
        parts = self._map(partial(check_ids, limit=self.limit), plan)
        return _merge([outcome for part in parts for outcome in part])

    def check_rules(
        self, plan: CheckPlan, outcomes: list[IdOutcome]
    ) -> tuple[list[Violation], int]:
        """Every broken rule between rows, repeated ids included, in input order; and how many."""
        found = [violation for outcome in outcomes for violation in outcome.repeated]
        total = sum(outcome.repeated_total for outcome in outcomes)
        replaced = {o.table_key: o.replaced for o in outcomes if o.replaced is not None}
        function = partial(check_bucket, replaced=replaced, limit=self.limit)
        for violations, count in self._map(function, plan):
            found += violations
            total += count
        found.sort(key=lambda each: -1 if each.row_number is None else each.row_number)
        return found, total

    def _map(self, function: Callable[..., Result], plan: CheckPlan) -> list[Result]:
        rows = sum(part.row_count for part in plan.parts)
        count = max(1, -(-rows // setting(CHECK_ROWS_VARIABLE, CHECK_ROWS)))
        if count == 1:
            # One thread per core, and one in all for a small load.
            threads = 1 if rows < THREADED_ROWS else pa.cpu_count()
            return [function(KeyColumns(plan, self.tables), threads=threads)]
        buckets = [Bucket(index, count) for index in range(count)]
        return self.runner.map(partial(_check_bucket, function, plan), buckets, self.reporter)


def _check_bucket(function: Callable[..., Result], plan: CheckPlan, bucket: Bucket) -> Result:
    # In another process, which opens the storage itself.
    tables = TableStorage(graph_root(plan.root), plan.storage_options)
    return function(KeyColumns(plan, tables, bucket))


def _merge(outcomes: list[IdOutcome]) -> list[IdOutcome]:
    """Join the buckets of each table."""
    by_key: dict[str, list[IdOutcome]] = {}
    for outcome in outcomes:
        by_key.setdefault(outcome.table_key, []).append(outcome)
    return [
        IdOutcome(
            key,
            repeated=[each for part in parts for each in part.repeated],
            repeated_total=sum(part.repeated_total for part in parts),
            taken=[each for part in parts for each in part.taken],
            lost=join_row_numbers([part.lost for part in parts]),
            replaced=_concat_tables([part.replaced for part in parts]),
        )
        for key, parts in by_key.items()
    ]


def join_row_numbers(parts: list[RowNumbers]) -> RowNumbers:
    """All of the row numbers, ascending."""
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))


def _concat_tables(parts: list[pa.Table | None]) -> pa.Table | None:
    tables = [part for part in parts if part is not None]
    return pa.concat_tables(tables) if tables else None
