"""Objects: some properties of a node or edge as one value, null where there is none."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from omnigraph.executor.values import column_type
from omnigraph.ir.expressions import ObjectRef, PropertyRef


def make_objects(expression: ObjectRef, read: Callable[[PropertyRef], pa.Array]) -> pa.Array:
    """The objects of every row; `read` gives a property in every row."""
    found = column_type(expression)
    columns = [
        read(ref).cast(found.field(place).type) for place, ref in enumerate(expression.fields)
    ]
    ids = read(expression.id)
    mask = ids.is_null() if ids.null_count else None
    return pa.StructArray.from_arrays(columns, fields=list(found), mask=mask)
