"""Suspects: the keys that break a rule, as an exchange returns them; and the rows that have them.

A bucket returns the first few keys and how many rows break the rule in all. A hundred keys are
enough to name the first hundred bad rows: what is shown is never more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.columns import ROW_NUMBER, CheckPlan
from omnigraph.pipeline.key_items import KeyItem, find_keys, open_columns, read_item
from omnigraph.pipeline.occurrences import Numbers, Occurrences
from omnigraph.pipeline.progress import Reporter
from omnigraph.pipeline.runner import Runner

RuleKey: TypeAlias = tuple[int | str, str]
"""Which rule: its number or the table whose ids are checked; and how it is broken."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """Keys that break one rule, and how many rows do. `order` says which are named first."""

    rule: RuleKey
    total: int
    order: Numbers
    found: Occurrences

    @classmethod
    def pick(
        cls,
        rule: RuleKey,
        found: Occurrences,
        is_bad: npt.NDArray[np.bool_],
        order: Numbers,
        rows: Numbers,
        limit: int | None,
    ) -> Suspects | None:
        """The bad keys, up to a limit, of which `rows` rows each are bad; None when none is."""
        if not is_bad.any():
            return None
        places = np.flatnonzero(is_bad)
        total = int(rows[places].sum())
        places = places[np.argsort(order[places], kind="stable")][:limit]
        return cls(rule, total, order[places], found.select(places))


def merge_suspects(parts: Iterable[Suspects], limit: int | None) -> dict[RuleKey, Suspects]:
    """Join what the buckets returned, the first keys of each rule first."""
    by_rule: dict[RuleKey, list[Suspects]] = {}
    for part in parts:
        by_rule.setdefault(part.rule, []).append(part)
    return {rule: _merge(rule, each, limit) for rule, each in by_rule.items()}


def _merge(rule: RuleKey, parts: list[Suspects], limit: int | None) -> Suspects:
    order = np.concatenate([part.order for part in parts])
    places = np.argsort(order, kind="stable")[:limit]
    founds = [part.found for part in parts]
    found = Occurrences(
        pa.concat_arrays([each.keys for each in founds]),
        np.concatenate([each.first for each in founds]),
        np.concatenate([each.second for each in founds]),
        np.concatenate([each.last for each in founds]),
        np.concatenate([each.count for each in founds]),
    )
    return Suspects(rule, sum(part.total for part in parts), order[places], found.select(places))


@dataclass(frozen=True, slots=True)
class RowSearch:
    """Finds the rows that have one of the suspected keys: a pass over one column, on errors."""

    plan: CheckPlan
    runner: Runner
    reporter: Reporter
    limit: int | None

    def find(
        self, items: Sequence[KeyItem], members: Sequence[str], keys: pa.StringArray
    ) -> tuple[Numbers, Numbers]:
        """The first rows with one of the keys, and which key each has, in order."""
        wanted = None if self.limit is None else self.limit + len(keys)
        function = partial(_search, self.plan, members, keys, wanted)
        found = self.runner.map(function, items, self.reporter)
        rows = np.concatenate([rows for rows, _ in found])
        codes = np.concatenate([codes for _, codes in found])
        order = np.argsort(rows, kind="stable")[:wanted]
        return rows[order], codes[order]


def _search(
    plan: CheckPlan,
    members: Sequence[str],
    keys: pa.StringArray,
    wanted: int | None,
    item: KeyItem,
) -> tuple[Numbers, Numbers]:
    rows: list[Numbers] = [np.empty(0, np.int64)]
    codes: list[Numbers] = [np.empty(0, np.int64)]
    for chunk in read_item(open_columns(plan), item, members):
        found = pc.index_in(find_keys(plan, item, members, chunk), value_set=keys, skip_nulls=True)
        places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))[:wanted]
        rows.append(chunk[ROW_NUMBER].to_numpy()[places])
        codes.append(found.take(pa.array(places)).to_numpy().astype(np.int64))
    return np.concatenate(rows)[:wanted], np.concatenate(codes)[:wanted]
