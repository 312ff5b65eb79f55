"""Name violations: the keys that an exchange suspects, as violations by rows, as check.py has them.

Where a key breaks a rule in more rows than the exchange knows, these are searched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from omnigraph.catalog import EdgeType
from omnigraph.pipeline.check import Violation, describe_repeat, name_committed
from omnigraph.pipeline.columns import KeyColumns
from omnigraph.pipeline.exchange_ids import REPEATED
from omnigraph.pipeline.key_items import KeyItem, list_committed, list_loaded
from omnigraph.pipeline.occurrences import NO_ROW
from omnigraph.pipeline.suspects import RowSearch, Suspects
from omnigraph.write.convert import ID
from omnigraph.write.integrity import describe_cardinality, describe_missing_end, describe_tuple
from omnigraph.write.rules import CardinalityRule, EndpointsRule, OrphansRule, Rule, UniqueRule

NamedRows: TypeAlias = Iterator[tuple[int, str]]
"""Bad rows in order, each with its key."""


def name_repeated_ids(search: RowSearch, suspects: Suspects) -> Iterator[Violation]:
    """Rows whose id an earlier row has."""
    entity = search.plan.catalog.entity(str(suspects.rule[0]))
    for row, key in _find_repeats(
        search, suspects, list_loaded(search.plan, entity.table_key), [ID]
    ):
        yield Violation(row, entity.table_key, describe_repeat(entity, key))


def name_broken_rule(
    search: RowSearch, columns: KeyColumns, rule: Rule, suspects: Suspects
) -> Iterator[Violation]:
    """What breaks a rule, as it is chosen to be shown."""
    match rule:
        case UniqueRule(entity, group):
            find = _find_repeats if suspects.rule[1] == REPEATED else _find_all
            items = list_loaded(search.plan, entity.table_key)
            for row, key in find(search, suspects, items, group.members):
                yield Violation(row, entity.table_key, describe_tuple(group, key))
        case EndpointsRule(edge, side, _):
            loaded = list_loaded(search.plan, edge.table_key)
            for row, key in _find_all(search, suspects, loaded, [side]):
                yield Violation(row, edge.table_key, describe_missing_end(edge, side, key))
        case OrphansRule(edge, side, _):
            committed = list_committed(columns, edge.table_key)
            for _, key in _find_all(search, suspects, committed, [side]):
                bad = name_committed(describe_missing_end(edge, side, key))
                yield Violation(None, edge.table_key, bad)
        case CardinalityRule(edge):
            yield from _name_counts(search, suspects, edge)
        case _:
            raise AssertionError(rule)


def _name_counts(search: RowSearch, suspects: Suspects, edge: EdgeType) -> Iterator[Violation]:
    """Blame the last loaded edge of a source, or all of them when they are quarantined."""
    found = suspects.found
    sources = found.keys.to_pylist()
    bad = [
        describe_cardinality(edge, source, count)
        for source, count in zip(sources, found.count.tolist(), strict=True)
    ]
    for each, last in zip(bad, found.last.tolist(), strict=True):
        if last == NO_ROW:
            yield Violation(None, edge.table_key, name_committed(each))
        elif search.limit is not None:
            yield Violation(last, edge.table_key, each)
    if search.limit is None:
        loaded = list_loaded(search.plan, edge.table_key)
        rows, codes = search.find(loaded, ["src"], found.keys)
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            yield Violation(row, edge.table_key, bad[code])


def _find_all(
    search: RowSearch, suspects: Suspects, items: Sequence[KeyItem], members: Sequence[str]
) -> NamedRows:
    """The rows with a suspected key."""
    found = suspects.found
    if found.count.max() == 1:
        yield from zip(found.first.tolist(), found.keys.to_pylist(), strict=True)
        return
    rows, codes = search.find(items, members, found.keys)
    for row, code in zip(rows[: search.limit].tolist(), codes.tolist(), strict=False):
        yield row, found.keys[code].as_py()


def _find_repeats(
    search: RowSearch, suspects: Suspects, items: Sequence[KeyItem], members: Sequence[str]
) -> NamedRows:
    """The rows with a suspected key, but for the first of each."""
    found = suspects.found
    if found.count.max() == 2:
        yield from zip(found.second.tolist(), found.keys.to_pylist(), strict=True)
        return
    rows, codes = search.find(items, members, found.keys)
    is_repeat = rows != found.first[codes]
    rows, codes = rows[is_repeat][: search.limit], codes[is_repeat][: search.limit]
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        yield row, found.keys[code].as_py()
