"""Mixed rows: rows of which the caller chose property by property, so that neither side has them.

of the properties in which the sides differ    the merged row has
chosen                                         what was chosen
only one side changed it since the base        that side's value
a vector made of a text, and not chosen        that of the side whose text it has, or none yet
both changed it, and it was not chosen         nothing: the conflict stays open
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.choices import Given, Picks, Side
from omnigraph.branch.conflicts import Contest, Edit
from omnigraph.branch.differences import SCHEMA, Differences
from omnigraph.branch.images import list_changed_properties
from omnigraph.branch.plan import TablePlan
from omnigraph.branch.row_batches import take_rows
from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, ConstraintError
from omnigraph.storage.tables import TableStorage
from omnigraph.write.convert import scalar_from_value


@dataclass(frozen=True, slots=True)
class Mixed:
    """A row as it was chosen, no edit if that is the target's, or what is still to be chosen."""

    edits: tuple[Edit, ...] = ()
    missing: tuple[str, ...] = ()


def mix_sides(entity: EntityType, contest: Contest, picks: Picks) -> Mixed | None:
    """Decide every property in which the sides differ; None if the row is not on both sides.

    Raises:
        BadRequestError: A value that was given does not fit its property.
    """
    conflict, edits = contest.conflict, contest.theirs
    if conflict.ours is None or conflict.theirs is None or not edits:
        return None
    decided = {name: _changed_side(contest, name) for name in conflict.ours} | dict(picks)
    for vector, text in _list_vectors(entity):
        if vector not in picks and text in decided:
            followed = decided[text]
            decided[vector] = Given(None) if isinstance(followed, Given) else followed
    missing = tuple(name for name, each in decided.items() if each is None)
    if missing or all(each == "ours" for each in decided.values()):
        return Mixed(missing=missing)
    given = {name: each.value for name, each in decided.items() if isinstance(each, Given)}
    subject = f"{conflict.table_key} '{conflict.row_id}'"
    edit = replace(
        edits[0],
        ours=frozenset(name for name, each in decided.items() if each == "ours"),
        values={name: _to_scalar(entity, subject, name, each) for name, each in given.items()},
    )
    return Mixed((edit,))


def _changed_side(contest: Contest, name: str) -> Side | Given | None:
    """The side that alone changed a property since the base."""
    conflict = contest.conflict
    if conflict.base is None or conflict.ours is None or conflict.theirs is None:
        return None
    was = {name: conflict.base[name]}
    if not list_changed_properties(was, {name: conflict.ours[name]}):
        return "theirs"
    return None if list_changed_properties(was, {name: conflict.theirs[name]}) else "ours"


def _list_vectors(entity: EntityType) -> list[tuple[str, str]]:
    """The vectors that are made of a text, each with its text."""
    properties = entity.properties.values()
    return [(each.name, each.embed.source) for each in properties if each.embed is not None]


def _to_scalar(entity: EntityType, subject: str, name: str, value: object) -> pa.Scalar:
    found = entity.properties.get(name)
    if found is None:
        raise BadRequestError(f"{subject}: '{name}' takes a side, 'ours' or 'theirs', and no value")
    if value is None and found.embed is not None and not found.type.nullable:
        raise BadRequestError(
            f"{subject}: '{found.embed.source}' cannot be given, because the vector '{name}' is "
            "made of it and cannot be empty — nothing was merged; choose a side, or write the text "
            "to a branch first"
        )
    try:
        return scalar_from_value(found.type, value, name=name)
    except ConstraintError as error:
        raise BadRequestError(f"{subject}: {error} — nothing was merged") from None


def apply_edits(
    tables: TableStorage,
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
        plan = _make_mixed(tables, result.get(key) or unchanged(key), changes)
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


def _make_mixed(tables: TableStorage, plan: TablePlan, changes: dict[str, Edit]) -> TablePlan:
    """Put mixed rows beside the source, and have their edits name them there."""
    mixed = [each for each in changes.values() if each.is_mixed]
    if not mixed:
        return plan
    source, row_ids = tables.put_beside(plan.source, [_mix_rows(tables, plan, mixed)])
    for each in mixed:
        assert each.row is not None
        changes[each.row_id] = replace(each, row=(each.row[0], row_ids[each.row_id]))
    return replace(plan, source=source)


def _mix_rows(tables: TableStorage, plan: TablePlan, edits: Sequence[Edit]) -> pa.RecordBatch:
    """Each column picks its values from the source's rows, the target's, and those given."""
    schema = pa.schema([each.remove_metadata() for each in plan.source.schema])
    ours, theirs = zip(*(each.row for each in edits if each.row is not None), strict=True)
    sides = [
        pa.Table.from_batches(take_rows(tables, handle, np.array(row_ids, dtype=np.uint64)))
        .select(schema.names)
        .cast(schema)
        for handle, row_ids in ((plan.source, theirs), (plan.target, ours))
    ]
    columns = []
    for column in schema:
        given = [each.values[column.name] for each in edits if column.name in each.values]
        values = pa.array([each.as_py() for each in given], column.type)
        both = [each[column.name].combine_chunks() for each in sides]
        places, next_given = [], 2 * len(edits)
        for at, each in enumerate(edits):
            if column.name in each.values:
                places.append(next_given)
                next_given += 1
            else:
                places.append(at + len(edits) * (column.name in each.ours))
        columns.append(pa.concat_arrays([*both, values]).take(pa.array(places)))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
