"""Counts: how many rows to make and to leave out, once the parameters are known."""

from __future__ import annotations

import sys
from dataclasses import replace

from omnigraph.errors import BadRequestError
from omnigraph.executor.values import Values
from omnigraph.ir.query import Count
from omnigraph.planner.plan import Plan


def fill_counts(plan: Plan, values: Values) -> Plan:
    """The plan with the numbers that it is run with.

    Raises:
        BadRequestError: A parameter asks for a negative number of rows.
    """
    limit, offset = plan.counts
    if not isinstance(offset, int) and offset is None and not _is_given(limit):
        return plan
    counts = read_count("limit", limit, values), read_count("offset", offset, values)
    made = None
    if counts[0] is not None and plan.finish is None:
        made = min(counts[0] + (counts[1] or 0), sys.maxsize)
    return replace(plan, limit=made, counts=counts)


def read_count(word: str, count: Count | None, values: Values) -> int | None:
    """The number that a count stands for."""
    if count is None or isinstance(count, int):
        return count
    found: int = values.scalar(count).as_py()
    if found < 0:
        raise BadRequestError(f"{word} must not be negative, and ${count.name} is {found}")
    return found


def _is_given(count: Count | None) -> bool:
    return count is not None and not isinstance(count, int)


def cut(plan: Plan) -> tuple[int, int | None]:
    """Of the rows that are made, the first that is shown and how many: of a settled plan."""
    limit, offset = plan.counts
    assert not _is_given(limit)
    assert not _is_given(offset)
    return int(offset or 0), None if limit is None else int(limit)  # type: ignore[arg-type]
