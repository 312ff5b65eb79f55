"""Choices: resolve conflicts by keeping one side of each, as the caller says.

`"ours"` keeps what the target has, `"theirs"` what the source has; for everything, or one by one:

    {"node:Person": "theirs", "edge:Knows": {"01J…": "ours"}}
    [{"table_key": "node:Person", "row_id": "lin", "take": "theirs"}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.conflicts import Edit
from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.plan import TablePlan
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, MergeConflict

Side: TypeAlias = Literal["ours", "theirs"]
Resolution: TypeAlias = Side | Mapping[str, Side | Mapping[str, Side]] | Sequence[Mapping[str, Any]]

SIDES = ("ours", "theirs")


@dataclass(frozen=True, slots=True)
class Choices:
    """Which side to keep, by table and row; None is the word for all rows or all tables."""

    by_row: Mapping[tuple[str | None, str | None], Side]

    @classmethod
    def read(cls, resolution: Resolution | None) -> Choices:
        """Read what the caller gave.

        Raises:
            BadRequestError: It is in none of the three forms.
        """
        match resolution:
            case None:
                return cls({})
            case str():
                return cls({(None, None): _side(resolution)})
            case Mapping():
                return cls(dict(_pairs_of_mapping(resolution)))
            case list() | tuple():
                return cls(dict(_pair_of_item(item) for item in resolution))
            case _:
                raise _unreadable(resolution)

    def side_of(self, conflict: MergeConflict) -> Side | None:
        key, row = conflict.table_key, conflict.row_id
        for scope in ((key, row), (key, None), (None, None)):
            if scope in self.by_row:
                return self.by_row[scope]
        return None

    def check_used(self, conflicts: Iterable[MergeConflict]) -> None:
        """Refuse a choice about a row that is not in conflict: it would silently do nothing."""
        known = {(each.table_key, each.row_id) for each in conflicts}
        for key, row in self.by_row:
            if row is not None and (key, row) not in known:
                raise BadRequestError(
                    f"there is no conflict on {key} '{row}' to resolve — preview the merge to see "
                    "the conflicts there are"
                )


def _pairs_of_mapping(
    resolution: Mapping[str, Any],
) -> Iterable[tuple[tuple[str | None, str | None], Side]]:
    for key, choice in resolution.items():
        if isinstance(choice, Mapping):
            for row, side in choice.items():
                yield (key, row), _side(side)
        else:
            yield (key, None), _side(choice)


def _pair_of_item(item: Any) -> tuple[tuple[str | None, str | None], Side]:
    if not isinstance(item, Mapping) or "table_key" not in item or "take" not in item:
        raise _unreadable(item)
    row = item.get("row_id")
    if row is not None and not isinstance(row, str):
        raise _unreadable(item)
    return (str(item["table_key"]), row), _side(item["take"])


def _side(side: Any) -> Side:
    if side not in SIDES:
        raise _unreadable(side)
    return cast("Side", side)


def _unreadable(value: Any) -> BadRequestError:
    return BadRequestError(
        f"cannot resolve with {value!r} — give 'ours' or 'theirs', a mapping of table keys to "
        "these or to row ids, or a list of objects with table_key, row_id and take"
    )


def apply_edits(
    plans: Mapping[str, TablePlan],
    edits: Iterable[Edit],
    unchanged: Callable[[str], TablePlan],
) -> dict[str, TablePlan]:
    """The plans with rows of their deltas put in place or dropped.

    `unchanged` makes the plan of a table that has none.
    """
    by_table: dict[str, dict[str, Edit]] = {}
    for edit in edits:
        by_table.setdefault(edit.table_key, {})[edit.row_id] = edit
    result = dict(plans)
    for key, changes in by_table.items():
        plan = result.get(key) or unchanged(key)
        rows = plan.delta.rows
        kept = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.array(changes, pa.utf8()))))
        put = [(edit.row_id, *edit.row) for edit in changes.values() if edit.row is not None]
        added = pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in put], schema=SCHEMA
        )
        delta = Differences(pa.concat_tables([kept, added]).sort_by("id").combine_chunks())
        # The source's version does not hold the result any more, so it cannot be pointed at.
        result[key] = replace(plan, delta=delta, is_rewrite=True)
    return result
