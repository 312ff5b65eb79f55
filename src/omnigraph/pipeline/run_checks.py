"""Run checks: both rounds over a load, in this process or, for a large one, by exchange.

A load that is held in memory, and one of few rows, is checked here: check.py. Beyond that keys are
exchanged: exchange_checks.py, through a file of this process or between tasks. Memory does not
follow the rows; answers, their texts and their order are the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.check import Violation, check_ids, check_rows
from omnigraph.pipeline.checked import CheckedIds
from omnigraph.pipeline.columns import CheckPlan, KeyColumns
from omnigraph.pipeline.engine import (
    CHECK_ROWS,
    CHECK_ROWS_VARIABLE,
    HELD_ROWS,
    THREADED_ROWS,
    setting,
)
from omnigraph.pipeline.exchange_checks import ExchangedChecks
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.storage.tables import TableStorage

INLINE_ROWS = 1 << 17
"""Rows of an item and of a bucket in this process: what fits into the caches of a core.

Tasks take more: each block of a shuffle has its price.
"""


@dataclass(frozen=True, slots=True)
class LoadChecks:
    """How the checks of one load run. At most `limit` violations per rule are named, None: all.

    `scratch_uri` is where a load that is not held in memory keeps its files. `threads` are those of
    this process.
    """

    tables: TableStorage
    runner: Runner
    reporter: Reporter
    limit: int | None
    scratch_uri: str | None
    threads: int = 1

    def check_ids(self, plan: CheckPlan) -> CheckedIds:
        """The first round."""
        exchanged = self._exchange(plan)
        if exchanged is not None:
            return exchanged.check_ids()
        outcomes = check_ids(KeyColumns(plan, self.tables), self.limit, _count_threads(plan))
        return CheckedIds(
            repeated=[each for outcome in outcomes for each in outcome.repeated],
            repeated_total=sum(outcome.repeated_total for outcome in outcomes),
            taken=[(row, each.table_key, id_) for each in outcomes for row, id_ in each.taken],
            lost=np.sort(np.concatenate([np.empty(0, np.int64), *(o.lost for o in outcomes)])),
            replaced={o.table_key: o.replaced for o in outcomes if o.replaced is not None},
        )

    def check_rules(self, plan: CheckPlan, ids: CheckedIds) -> tuple[list[Violation], int]:
        """Every broken rule between rows, repeated ids included, in input order; and how many."""
        exchanged = self._exchange(plan)
        if exchanged is not None:
            found, total = exchanged.check_rules(ids.replaced_in)
        else:
            columns = KeyColumns(plan, self.tables)
            replaced = dict(ids.replaced)
            found, total = check_rows(columns, replaced, self.limit, _count_threads(plan))
        found = [*ids.repeated, *found]
        found.sort(key=lambda each: -1 if each.row_number is None else each.row_number)
        return found, total + ids.repeated_total

    def _exchange(self, plan: CheckPlan) -> ExchangedChecks | None:
        """The checks by exchange, None for a load that is small enough for this process."""
        rows, largest = _count_rows(plan), setting(CHECK_ROWS_VARIABLE, CHECK_ROWS)
        if self.scratch_uri is None or rows <= min(HELD_ROWS, largest):
            return None
        runner = self.runner if rows > largest else InlineRunner(self.threads)
        if isinstance(runner, InlineRunner):
            plan, largest = replace(plan, item_rows=INLINE_ROWS), min(INLINE_ROWS, largest)
        columns = KeyColumns(plan, self.tables)
        return ExchangedChecks(
            columns, runner, self.reporter, self.limit, self.scratch_uri, largest
        )


def _count_rows(plan: CheckPlan) -> int:
    return sum(part.row_count for part in plan.parts)


def _count_threads(plan: CheckPlan) -> int:
    """One thread per core, and one in all for a small load."""
    return 1 if _count_rows(plan) < THREADED_ROWS else pa.cpu_count()
