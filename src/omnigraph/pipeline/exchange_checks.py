"""Checks by exchange: the rounds of a large load.

    round     key       what the driver gets
    ids       id        the first repeated and taken ids; files of rows that are lost or replaced
    regroup   place     the names of these files by range, and by fragments
    rules     its own   the first keys that break each rule, and how many rows do

Memory of the driver grows with the number of tasks and files, not of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.check import Violation
from omnigraph.pipeline.checked import CheckedIds
from omnigraph.pipeline.columns import KeyColumns
from omnigraph.pipeline.exchange import Block
from omnigraph.pipeline.exchange_ids import TAKEN, IdExchange, list_id_items
from omnigraph.pipeline.exchange_rules import RuleExchange, list_load_rules
from omnigraph.pipeline.key_items import CommittedRows, KeyItem
from omnigraph.pipeline.name_violations import name_broken_rule, name_repeated_ids
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.regroup import Regroup, Regrouped
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.suspects import RowSearch, Suspects, merge_suspects
from omnigraph.write.rules import Rule

BUCKET_ROWS = 500_000
BUCKETS_MAX = 1 << 15

Item = TypeVar("Item", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Exchange(Protocol[Item, Result]):
    """The two functions of an exchange."""

    @property
    def count(self) -> int: ...

    def emit(self, item: Item) -> Iterable[Block]: ...

    def reduce(self, blocks: Iterable[Block]) -> Result: ...


@dataclass(frozen=True, slots=True)
class ExchangedChecks:
    """The checks of one load, a bucket for each `bucket_rows` of its rows."""

    columns: KeyColumns
    runner: Runner
    reporter: Reporter
    limit: int | None
    scratch_uri: str
    bucket_rows: int

    def check_ids(self) -> CheckedIds:
        """The first round; of a merge also where rows are that are lost or replaced."""
        plan = self.columns.plan
        items = list_id_items(self.columns)
        buckets = self._run(IdExchange(plan, self._count(), self.limit, self.scratch_uri), items)
        files = [uri for each in buckets for uri in (each.lost, each.replaced) if uri is not None]
        moved = self._regroup(items, files)
        suspects = merge_suspects(
            chain.from_iterable(each.suspects for each in buckets), self.limit
        )
        repeated = [each for each in suspects.values() if each.rule[1] != TAKEN]
        search = self._search()
        return CheckedIds(
            repeated=[bad for each in repeated for bad in name_repeated_ids(search, each)],
            repeated_total=sum(each.total for each in repeated),
            taken=[row for each in suspects.values() for row in _list_taken(each)],
            lost_in={index: uri for each in moved for index, uri in each.lost.items()},
            replaced_in=tuple(item for each in moved for item in each.replaced),
        )

    def _regroup(self, items: list[KeyItem], files: list[str]) -> list[Regrouped]:
        committed = tuple(item for item in items if isinstance(item, CommittedRows))
        plan = self.columns.plan
        return self._run(Regroup(plan, self._count(), self.scratch_uri, committed), files)

    def check_rules(self, replaced: tuple[CommittedRows, ...]) -> tuple[list[Violation], int]:
        """The second round: the first violations of each rule, and how many there are."""
        rules = list_load_rules(self.columns.plan)
        check = RuleExchange(self.columns.plan, rules, self._count(), self.limit)
        buckets = self._run(check, check.list_items(self.columns, replaced))
        suspects = merge_suspects(chain.from_iterable(buckets), self.limit)
        found = [
            violation
            for broken in sorted(suspects.values(), key=lambda each: each.rule)
            for violation in self._name(rules, broken)
        ]
        return found, sum(each.total for each in suspects.values())

    def _name(self, rules: Sequence[Rule], broken: Suspects) -> Iterator[Violation]:
        return name_broken_rule(self._search(), self.columns, rules[int(broken.rule[0])], broken)

    def _search(self) -> RowSearch:
        return RowSearch(self.columns.plan, self.runner, self.reporter, self.limit)

    def _count(self) -> int:
        """How many buckets: enough for every task to have its share, and for each to fit."""
        rows = sum(part.row_count for part in self.columns.plan.parts)
        needed = -(-rows // min(self.bucket_rows, BUCKET_ROWS))
        return min(BUCKETS_MAX, max(needed, 2 * self.runner.parallelism))

    def _run(self, exchange: Exchange[Item, Result], items: Sequence[Item]) -> list[Result]:
        is_local = "://" not in self.scratch_uri
        return self.runner.exchange(
            exchange.emit,
            exchange.reduce,
            items,
            exchange.count,
            self.reporter,
            spill=self.scratch_uri if is_local else None,
        )


def _list_taken(suspects: Suspects) -> Iterator[tuple[int, str, str]]:
    if suspects.rule[1] == TAKEN:
        found = suspects.found
        for row, key in zip(found.first.tolist(), found.keys.to_pylist(), strict=True):
            yield row, str(suspects.rule[0]), key
