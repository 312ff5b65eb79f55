"""What `load --dry-run` prints: counts per table, the first rows, and every problem."""

from __future__ import annotations

import json
from collections.abc import Iterator

from omnigraph.cli.graph_commands import Json

_COUNTS = ("inserted", "replaced", "unchanged", "removed", "refused")


def preview_lines(report: Json) -> Iterator[str]:
    """The report of a dry run, line by line."""
    yield f"dry run of a load into branch {report['branch']} with {report['mode']}:"
    for table in report["tables"]:
        counts = ", ".join(f"{table[name]} {name}" for name in _COUNTS if table[name])
        yield f"  {table['table_key']}: {counts or 'no rows'}"
        for row in table["rows"]:
            yield f"    {_spell(row)}"
    if report["problems"]:
        yield f"{report['problems']} problem{'s' * (report['problems'] != 1)}:"
        yield from (f"  {bad}" for bad in report["bad_rows"])
    unseen = report["problems"] - len(report["bad_rows"])
    if unseen:
        yield f"  ... and {unseen} more"
    yield "nothing would change" if report["changes_nothing"] else "nothing was written"


def _spell(row: Json) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:119]}…"
