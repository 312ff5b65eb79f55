"""Broken rules: which rows of a table do not fit the schema that a step leads to.

A step with nothing to check, such as an added index, is broken by no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog import (
    AddConstraint,
    AddProperty,
    ChangeCardinality,
    ChangeType,
    EdgeType,
    EntityType,
    MigrationStep,
    NodeType,
    Tier,
    UnsupportedChange,
)
from omnigraph.storage.blobs import blob_columns
from omnigraph.write.bad_rows import BadRow
from omnigraph.write.fit import to_mask
from omnigraph.write.integrity import (
    NO_IDS,
    UniqueGroup,
    cardinality_violations,
    duplicate_tuples,
    find_touched_sources,
    tuple_keys,
)
from omnigraph.write.keys import key_ids
from omnigraph.write.new_image import NewImage
from omnigraph.write.table_changes import column_sources
from omnigraph.write.validate import constraint_violations, null_violations

_OLD_ID = "#id"


def find_broken(image: NewImage, step: MigrationStep) -> Iterator[pa.Array]:
    """The ids of rows that do not fit, in batches; of a bound on edges, those of the nodes."""
    match step:
        case ChangeType(property_name=name, tier=Tier.VALIDATED):
            yield from _outside(image, [name])
        case AddProperty(property_name=name, backfill=str()):
            yield from _outside(image, [name])
        case AddConstraint(rule=(("unique" | "key") as word, members)):
            yield from _clashing(image, word, members)
        case AddConstraint(rule=(word, members)):
            yield from _outside(image, members, word)
        case ChangeCardinality(tier=Tier.VALIDATED):
            assert isinstance(image.new, EdgeType)
            yield _beyond_bounds(image.new, _gather(image, ["src"])["src"].combine_chunks())
        case UnsupportedChange(code="OG-MF-103" | "OG-MF-106"):
            yield from _concerned(image, step.entity.partition(".")[2])


def is_row_by_row(step: MigrationStep) -> bool:
    """Whether a row breaks the step by itself, whatever other rows there are."""
    match step:
        case ChangeCardinality() | AddConstraint(rule=("unique" | "key", _)):
            return False
    return True


def _concerned(image: NewImage, name: str) -> Iterator[pa.Array]:
    """Rows that a refused change would leave without a value: a new one, or the one they have."""
    source = column_sources(image.old, image.new)[name]
    blobs = blob_columns(image.handle.schema)
    columns = ["id"] if source is None or source in blobs else ["id", source]
    for batch in image.tables.reads.scan_stream(
        image.handle, columns, fragment_ids=image.fragment_ids
    ):
        yield batch.column(0).filter(batch.column(len(columns) - 1).is_valid())


def _outside(image: NewImage, names: Sequence[str], word: str | None = None) -> Iterator[pa.Array]:
    """Rows with a null, a value or a pattern that is not allowed, as far as the step is to blame.

    A step about a type checks the type; one about a constraint, that constraint only.
    """
    ruled = _only(image.new, names, word)
    for batch in image.read(names):
        bad = [each.index for each in constraint_violations(ruled, batch.rows, limit=None)]
        if word is None:
            bad += [each.index for each in null_violations(ruled, batch.rows, limit=None)]
        # A value that is not of the type is null in the image, whatever null means there.
        marked = batch.unfit.copy() if word is None else np.zeros_like(batch.unfit)
        marked[bad] = True
        yield batch.old_ids.filter(pa.array(marked))


def _only(new: EntityType, names: Sequence[str], word: str | None) -> EntityType:
    facts: dict[str, Any] = {"properties": {name: new.properties[name] for name in names}}
    if isinstance(new, NodeType):
        facts["ranges"] = tuple(r for r in new.ranges if word == "range" and r.property in names)
        facts["checks"] = tuple(c for c in new.checks if word == "check" and c.property in names)
    if word is not None:
        plain = {name: replace(p.type, variants=None) for name, p in facts["properties"].items()}
        facts["properties"] = {n: replace(new.properties[n], type=plain[n]) for n in names}
    return replace(new, **facts)


def _clashing(image: NewImage, word: str, members: tuple[str, ...]) -> Iterator[pa.Array]:
    """Rows whose tuple an earlier row has; of nodes with a new key, those with another id too."""
    rows = _gather(image, members)
    group = UniqueGroup(image.new.name, members)
    found = duplicate_tuples(group, tuple_keys(image.new, group, rows), limit=None)
    marked = np.zeros(rows.num_rows, dtype=np.bool_)
    marked[[bad.index for bad in found]] = True
    ids = rows[_OLD_ID].combine_chunks()
    if word == "key" and isinstance(image.new, NodeType):
        # Edges name nodes by their ids, so a node keeps its own: it has to be the key already.
        marked |= to_mask(pc.not_equal(pc.fill_null(key_ids(image.new, rows), ""), ids))
    yield ids.filter(pa.array(marked))


def _gather(image: NewImage, columns: Sequence[str]) -> pa.Table:
    """Whole columns of the image of a table with rows, with the ids that they have now."""
    return pa.concat_tables(
        batch.rows.append_column(_OLD_ID, batch.old_ids) for batch in image.read(columns)
    )


def _beyond_bounds(edge: EdgeType, sources: pa.Array) -> pa.Array:
    found = cardinality_violations(edge, written=sources, surviving=NO_IDS, limit=None)
    return find_touched_sources(sources, None, None).take(_indexes_of(found))


def _indexes_of(found: Iterable[BadRow]) -> pa.Array:
    """Where the rows are; typed, since none of them would else be of no type."""
    return pa.array([bad.index for bad in found], pa.int64())


def count_broken(found: Iterable[pa.Array], samples_max: int) -> tuple[int, tuple[str, ...]]:
    """How many rows there are, and a few of them."""
    rows, samples = 0, list[str]()
    for ids in found:
        rows += len(ids)
        samples += ids[: samples_max - len(samples)].to_pylist()
    return rows, tuple(samples)


def entity_of_step(step: MigrationStep) -> str | None:
    """The table key, in new names, of the type whose rows a step is about."""
    kind, name = getattr(step, "type_kind", None), getattr(step, "type_name", None)
    return None if kind in (None, "interface") or name is None else f"{kind}:{name}"


def find_entity(entities: Iterable[EntityType], type_id: int) -> EntityType | None:
    """The type of this identity."""
    return next((each for each in entities if each.type_id == type_id), None)
