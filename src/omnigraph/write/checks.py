"""Checks: run the queries of a branch that have to hold, over the state that a write would leave.

A check runs after the tables of a write are committed and before anything of it can be seen or
finished by recovery: the protocol confirms a checked write only when its checks hold, and insists
at the publish on every table that they read and on the checks themselves.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from time import time_ns
from typing import Any

from omnigraph.catalog import Catalog
from omnigraph.compiler import compile_query, require_read
from omnigraph.compiler.describe import describe
from omnigraph.errors import BadRequestError, CheckFailure, ChecksFailed, OmnigraphError
from omnigraph.executor import execute
from omnigraph.executor.result import json_values
from omnigraph.index import RuntimeCache
from omnigraph.ir.expressions import NOW_PARAMETER
from omnigraph.ir.query import QueryIR
from omnigraph.manifest import Snapshot
from omnigraph.manifest.checks import Check
from omnigraph.storage.tables import TableStorage

ROWS_SHOWN = 20


def compile_check(check: Check, catalog: Catalog) -> QueryIR:
    """The query of a check.

    Raises:
        BadRequestError: It does not fit the schema, needs parameters, or is no read.
    """
    try:
        ir = require_read(compile_query(check.query, catalog, check.name))
    except OmnigraphError as error:
        raise BadRequestError(f"check '{check.name}' cannot be run: {error.render()}") from None
    if ir.params:
        raise BadRequestError(f"check '{check.name}' has parameters — write the values into it")
    return ir


def list_read_tables(checks: Iterable[Check], catalog: Catalog) -> set[str]:
    """The tables that checks read."""
    return {
        f"{use.kind}:{use.type_name}"
        for check in checks
        for use in describe(compile_check(check, catalog), catalog).reads
    }


def run_checks(
    checks: Iterable[Check],
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache,
) -> list[CheckFailure]:
    """Run checks at a state; returns those that do not hold, with the first of their rows."""
    failures = []
    for check in checks:
        ir = compile_check(check, catalog)
        now = {NOW_PARAMETER: time_ns() // 1_000_000}
        table = execute(ir, now, snapshot, catalog, tables, cache)
        names = table.column_names
        wanted = max(ROWS_SHOWN, len(check.expected) + 1)
        columns = [json_values(each.combine_chunks()) for each in table.slice(0, wanted).columns]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if table.num_rows == len(check.expected) and _as_bag(rows) == _as_bag(check.expected):
            continue
        shown = tuple(rows[:ROWS_SHOWN])
        failures.append(CheckFailure(check.name, table.num_rows, shown, check.expected))
    return failures


def require_checks(
    checks: Collection[Check],
    snapshot: Snapshot,
    catalog: Catalog,
    tables: TableStorage,
    cache: RuntimeCache | None,
) -> None:
    """Refuse a state in which a check does not hold.

    Raises:
        ChecksFailed: There is one.
    """
    failures = run_checks(checks, snapshot, catalog, tables, cache or RuntimeCache())
    if failures:
        raise ChecksFailed(failures, snapshot.branch)


def _as_bag(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
