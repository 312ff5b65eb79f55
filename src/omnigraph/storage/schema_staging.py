"""Schema staging: other columns over the same data files. No row is read or written.

Lance knows a column by its field id. A schema built from Arrow numbers its fields from zero, which
would point columns at the files of others: here every field that continues keeps its id, and a new
one gets an id that no file has used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa
from lance import LanceDataset
from lance.dataset import LanceOperation
from lance.schema import LanceSchema

from omnigraph.dataclass import dataclass
from omnigraph.storage.blobs import to_keyed_schema
from omnigraph.storage.handles import StagedTransaction, StageKind, TableHandle
from omnigraph.storage.lance_errors import lance_errors
from omnigraph.storage.protobuf import read_fields, with_number
from omnigraph.storage.transactions import Stager

_NAME, _ID, _PARENT = 2, 3, 4
_NO_PARENT = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class ColumnStaging:
    """Stages changes of columns."""

    stager: Stager

    def stage_schema(self, handle: TableHandle, schema: pa.Schema) -> StagedTransaction:
        """Stage new columns without values, or other nullability of the same columns; not both."""
        dataset = handle._dataset
        with lance_errors("staging columns", handle.location):
            stored = _number_fields(dataset, to_keyed_schema(schema))
            is_wider = set(schema.names) > set(handle.schema.names)
            fragments = [each.metadata for each in dataset.get_fragments()]
            operation = (
                LanceOperation.Merge(fragments, stored)
                if is_wider
                else LanceOperation.Project(stored)
            )
        return self.stager.stage(handle, StageKind.COLUMNS, operation, rows=0)


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of a Lance schema, nested ones too; `path` are the names that lead to it."""

    path: tuple[str, ...]
    id: int
    parent: int
    message: bytes


def _number_fields(dataset: LanceDataset, wanted: pa.Schema) -> LanceSchema:
    """The wanted schema with the field ids of the dataset."""
    known = {each.path: each.id for each in _read_schema(dataset.lance_schema)}
    used = [
        number
        for fragment in dataset.get_fragments()
        for file in fragment.metadata.files
        for number in file.fields
    ]
    free = iter(range(max([*known.values(), *used]) + 1, 1 << 31))
    made = LanceSchema.from_pyarrow(wanted)
    build, arguments = _take_apart(made)
    numbers: dict[int, int] = {}
    messages: list[bytes] = []
    for each in _read_schema(made):
        numbers[each.id] = known[each.path] if each.path in known else next(free)
        parent = numbers.get(each.parent, _NO_PARENT)
        messages.append(
            with_number(with_number(each.message, _ID, numbers[each.id]), _PARENT, parent)
        )
    return build(arguments[0], *messages)


def _take_apart(schema: LanceSchema) -> tuple[Callable[..., LanceSchema], tuple[Any, ...]]:
    """What builds the schema, and of what: its metadata, then a message per field."""
    build, arguments, *_ = cast("tuple[Any, ...]", schema.__reduce__())
    return build, arguments


def _read_schema(schema: LanceSchema) -> Iterator[_Field]:
    """Every field, parents before their children."""
    paths: dict[int, tuple[str, ...]] = {}
    for message in _take_apart(schema)[1][1:]:
        facts = {number: value for number, _, value in read_fields(message)}
        name, parent = facts.get(_NAME, b""), facts.get(_PARENT, 0)
        number = facts.get(_ID, 0)
        assert isinstance(name, bytes)
        assert isinstance(parent, int)
        assert isinstance(number, int)
        paths[number] = (*(() if parent == _NO_PARENT else paths[parent]), name.decode())
        yield _Field(paths[number], number, parent, message)
