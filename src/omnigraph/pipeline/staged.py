"""Staged load: all ranges of an input, read and written; rows can still be taken out again.

A row that loses to a later record of its id, or that is quarantined, is dropped by reading its
range once more without it. Memory is bounded by the part size, however large the load is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.columns import CheckPlan, RowNumbers, split_row_number
from omnigraph.pipeline.embed import EmbedPlan, FillCounts, add_counts
from omnigraph.pipeline.model import (
    Finding,
    LineRange,
    LoadPlan,
    Ordinals,
    Range,
    RangeResult,
    RangeTask,
    Rejected,
    RowsRange,
    StagedPart,
    StreamRange,
    TextRange,
)
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.ranges import location_text, source_name
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.stage import read_records, stage_range
from omnigraph.write.bad_rows import SHOWN_MAX, BadRow, BadRows

NO_FILES: Mapping[int, str] = MappingProxyType({})


class StagedLoad:
    """The ranges of one load in input order, with what came of each."""

    def __init__(self, plan: LoadPlan, runner: Runner, reporter: Reporter) -> None:
        self._plan = plan
        self._runner = runner
        self._reporter = reporter
        self._tasks: dict[int, RangeTask] = {}
        self._results: dict[int, RangeResult] = {}
        self.rejected: list[tuple[str, Rejected]] = []

    def read(self, ranges: Iterable[Range]) -> None:
        """Read, check and write every range."""
        self._tasks = {index: RangeTask(index, each) for index, each in enumerate(ranges)}
        self._run(self._tasks.values())
        documents = self._documents()
        if documents:
            self._run(documents)
        self._collect_rejected()

    def parts(self) -> tuple[StagedPart, ...]:
        """The good rows in input order."""
        return tuple(part for index in self._order() for part in self._results[index].parts)

    def rows_by_table(self) -> dict[str, int]:
        counts: dict[str, int] = defaultdict(int)
        for part in self.parts():
            counts[part.table_key] += part.row_count
        return dict(sorted(counts.items()))

    def vectors(self) -> FillCounts:
        """What became of the vectors of each property."""
        return add_counts(result.vectors for result in self._results.values())

    def embed_again(self, plan: EmbedPlan) -> None:
        """Read every range once more, with another plan for its vectors."""
        self._plan = replace(self._plan, embed=plan)
        self._run(list(self._tasks.values()))

    def list_ranges(self) -> list[Range]:
        """The ranges in input order, to be read again."""
        return [self._tasks[index].range for index in self._order()]

    def bad_rows(self) -> BadRows:
        """What is wrong with single records, each with its location in the input."""
        first: list[BadRow] = []
        for index in self._order():
            if len(first) < SHOWN_MAX:
                first += [self._locate(index, each) for each in self._results[index].findings]
        total = sum(result.findings_total for result in self._results.values())
        return BadRows(tuple(first[:SHOWN_MAX]), total)

    def locate(self, check: CheckPlan, blamed: list[tuple[int | None, BadRow]]) -> list[BadRow]:
        """Give bad rows the location of the record that each is about, in input order."""
        input_lines = self.input_lines(
            check, [row_number for row_number, _ in blamed if row_number is not None]
        )
        located: list[tuple[tuple[int, int, str, str], BadRow]] = []
        for row_number, bad in blamed:
            index, line = (-1, 0) if row_number is None else input_lines[row_number]
            order = (index, line, bad.property or "", bad.reason)
            shown = bad if row_number is None else self._locate(index, Finding(line, bad))
            located.append((order, shown))
        return [bad for _, bad in sorted(located, key=lambda each: each[0])]

    def input_lines(self, check: CheckPlan, row_numbers: list[int]) -> dict[int, tuple[int, int]]:
        """The range and the line in it of the records with these row numbers."""
        lines = {
            (index, key, ordinal): line
            for index, key, ordinal, line, _ in self._records(check, row_numbers)
        }
        records = {row_number: check.find_record(row_number) for row_number in row_numbers}
        return {row_number: (record[0], lines[record]) for row_number, record in records.items()}

    def quarantine(self, check: CheckPlan, blamed: list[tuple[int, BadRow]]) -> None:
        """Drop rows that break a rule between rows, and remember them with their reasons."""
        reasons: dict[tuple[int, str, int], list[str]] = defaultdict(list)
        for row_number, bad in blamed:
            reasons[check.find_record(row_number)].append(bad.describe())
        row_numbers = sorted({row_number for row_number, _ in blamed})
        for index, key, ordinal, line, text in self._records(check, row_numbers):
            shown = self._location(index, line, None)
            said = tuple(reasons[index, key, ordinal])
            name = check.catalog.entity(key).name
            self.rejected.append((shown, Rejected(line, text, said, name)))
        self.drop(check, np.array(row_numbers, dtype=np.int64))

    def drop(
        self, check: CheckPlan, row_numbers: RowNumbers, files: Mapping[int, str] = NO_FILES
    ) -> None:
        """Take rows out of the load: those with these numbers, and per range those of a file."""
        numbers, rows = split_row_number(row_numbers)
        changed: dict[int, RangeTask] = {}
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            part = check.parts[number]
            if part.rows is not None:
                self._drop_held(part, rows[numbers == number])
                continue
            task = changed.get(part.range_index, self._tasks[part.range_index])
            ordinals = part.find_ordinals(rows[numbers == number])
            changed[task.index] = _without(task, part.table_key, ordinals)
        for index, uri in files.items():
            task = changed.get(index, self._tasks[index])
            changed[index] = replace(task, dropped_in=(*task.dropped_in, uri))
        self._run(changed.values())

    def _drop_held(self, part: StagedPart, rows: RowNumbers) -> None:
        assert part.rows is not None
        kept = np.delete(np.arange(part.row_count), rows)
        smaller = replace(
            part,
            rows=part.rows.take(pa.array(kept)),
            row_count=len(kept),
            ordinals=part.find_ordinals(kept),
        )
        result = self._results[part.range_index]
        parts = tuple(smaller if each is part else each for each in result.parts)
        self._results[part.range_index] = replace(
            result, parts=tuple(each for each in parts if each.row_count)
        )

    def _run(self, tasks: Iterable[RangeTask]) -> None:
        wanted = list(tasks)
        if not wanted:
            return
        self._reporter.stage("loading", len(wanted))
        function = partial(stage_range, self._plan)
        results = self._runner.map(function, wanted, self._reporter, lambda result: result.rows)
        for task, result in zip(wanted, results, strict=True):
            self._tasks[task.index] = task
            self._results[task.index] = result

    def _documents(self) -> list[RangeTask]:
        """Files whose records go over several lines are read again, from front to back."""
        names = {
            source_name(self._tasks[index].range)
            for index, result in self._results.items()
            if result.needs_document
        }
        documents: list[RangeTask] = []
        for name in sorted(names):
            indexes = [i for i in self._order() if source_name(self._tasks[i].range) == name]
            whole = self._whole([self._tasks[index].range for index in indexes])
            documents.append(RangeTask(indexes[0], whole))
            for index in indexes:
                del self._tasks[index], self._results[index]
        return documents

    @staticmethod
    def _whole(ranges: list[Range]) -> Range:
        texts = [each.data for each in ranges if isinstance(each, TextRange)]
        if texts:
            return TextRange(b"".join(texts), is_document=True)
        first = ranges[0]
        assert isinstance(first, LineRange | StreamRange), first
        return StreamRange(first.path, is_document=True, form=first.form)

    def _order(self) -> list[int]:
        return sorted(self._tasks)

    def _collect_rejected(self) -> None:
        for index in self._order():
            for each in self._results[index].rejected:
                self.rejected.append((self._location(index, each.line, None), each))

    def _records(
        self, check: CheckPlan, row_numbers: Iterable[int]
    ) -> list[tuple[int, str, int, int, str]]:
        """(range, table key, ordinal, line, text) of the records with these row numbers."""
        wanted: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row_number in row_numbers:
            index, key, ordinal = check.find_record(row_number)
            wanted[index][key].append(ordinal)
        found: list[tuple[int, str, int, int, str]] = []
        for index, by_key in sorted(wanted.items()):
            ordinals = {key: np.unique(np.array(each)) for key, each in by_key.items()}
            records = read_records(self._plan, self._tasks[index], ordinals)
            found += [(index, *record) for record in records]
        return found

    def _locate(self, index: int, finding: Finding) -> BadRow:
        return replace(finding.bad, location=self._location(index, finding.line, finding.column))

    def _location(self, index: int, line: int, column: int | None) -> str:
        range_ = self._tasks[index].range
        if isinstance(range_, RowsRange):
            return location_text(range_, line, column)
        name = source_name(range_)
        before = sum(
            self._results[each].lines
            for each in self._order()
            if each < index and source_name(self._tasks[each].range) == name
        )
        return location_text(range_, before + line, column)


def _without(task: RangeTask, table_key: str, ordinals: Ordinals) -> RangeTask:
    dropped = dict(task.dropped)
    before = dropped.get(table_key, np.empty(0, np.int64))
    return replace(task, dropped=dropped | {table_key: np.concatenate([before, ordinals])})
