"""Select: the rows that the `where` of an update or delete means, pending ones included.

What the store can decide is pushed to its scan; the rest is computed on the rows that are left. A
condition that names whole keys also names ids, which have an index where properties have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.catalog import EntityType, arrow_schema
from omnigraph.executor.evaluate import decide
from omnigraph.executor.filters import to_stored_predicate
from omnigraph.ir import expressions as ir
from omnigraph.ir.mutations import SELF
from omnigraph.ir.variables import predicate_refs
from omnigraph.storage import predicates as stored
from omnigraph.storage.binding import bind
from omnigraph.write.convert import ID
from omnigraph.write.given_rows import GivenRows
from omnigraph.write.keys import key_ids
from omnigraph.write.staging import MutationStaging


def select_rows(
    entity: EntityType,
    predicate: ir.Predicate,
    given: GivenRows,
    staging: MutationStaging,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """The rows where the predicate is TRUE; at least these columns of them."""
    pushed: list[stored.Predicate] = []
    others: list[ir.Predicate] = []
    for part in _split(predicate):
        known = to_stored_predicate(given, part)
        if known is None:
            others.append(part)
        else:
            pushed.append(known)
    wanted = columns
    if columns is not None:
        read = (ref.property for part in others for ref in predicate_refs(part))
        wanted = list(dict.fromkeys([*columns, *read]))
    ids = name_ids(entity, pushed)
    if ids is not None:
        pushed.insert(0, stored.IsIn(ID, ids))
    rows = staging.scan(entity, _join(pushed), wanted)
    for part in others:
        true, _ = decide(part, as_self(rows, given))
        rows = rows.filter(pa.array(true))
    return rows


def name_ids(entity: EntityType, predicates: Sequence[stored.Predicate]) -> pa.StringArray | None:
    """The ids that rows need to have for all of these to hold; None unless whole keys are named."""
    if entity.key is None:
        return None
    schema, values = arrow_schema(entity), dict[str, pa.Array]()
    for each in predicates:
        match bind(each, schema):
            case stored.Compare(column, stored.CompareOp.EQ, value):
                values[column] = pa.repeat(value, 1)
            case stored.IsIn(column, several) if len(entity.key) == 1:
                values[column] = several
    keys = {name: values[name] for name in entity.key if name in values}
    # The key of a number that is not finite has no spelling, and no row has it.
    if len(keys) < len(entity.key) or any(
        pa.types.is_floating(each.type) for each in keys.values()
    ):
        return None
    return key_ids(entity, pa.table(keys))


def as_self(rows: pa.Table, given: GivenRows) -> GivenRows:
    """Stored rows, for expressions whose bare words read them."""
    columns = {name: rows.column(name).combine_chunks() for name in rows.column_names}
    return GivenRows(given.values, rows.num_rows, {SELF: columns})


def _split(predicate: ir.Predicate) -> Iterator[ir.Predicate]:
    if isinstance(predicate, ir.And):
        for part in predicate.parts:
            yield from _split(part)
    else:
        yield predicate


def _join(pushed: list[stored.Predicate]) -> stored.Predicate | None:
    if len(pushed) < 2:
        return pushed[0] if pushed else None
    return stored.And(tuple(pushed))
