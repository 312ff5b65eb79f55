"""CSV rows: a block of CSV text becomes a group of typed rows.

Arrow reads a block straight into typed columns. A block that it refuses is read as texts, column
by column, and one with values that no column holds is handed on row by row, for reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pv

from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.blocks import CsvBlock
from omnigraph.pipeline.columns_of_file import split_ends, with_constants
from omnigraph.pipeline.formats.csv_records import Records, find_records
from omnigraph.pipeline.formats.text_values import (
    FALSE_WORDS,
    TRUE_WORDS,
    convert_texts,
    reader_type,
    value_of_text,
)
from omnigraph.pipeline.groups import Group, Parsed
from omnigraph.pipeline.model import RowForm
from omnigraph.types import PropertyType, Scalar

_TEXT = PropertyType(Scalar.STRING)
_NOT_UTF8 = (
    "is not UTF-8 — save the file as UTF-8, or name its encoding in a mapping (`encoding: latin-1`)"
)
_NEVER_CLOSED = "a quote opens here and is never closed"


def parse_csv(block: CsvBlock, catalog: Catalog) -> Parsed:
    """Read a block; records that are no rows are refused one by one."""
    entity = catalog.entity(block.form.table_key)
    parsed = Parsed()
    text = _CsvText(block, entity.name)
    text.refuse_unreadable(parsed)
    columns = _read_typed(text, entity) if len(text.records.starts) else None
    if columns is None:
        columns = _read_texts(text, entity)
    text.refuse_ragged(parsed)
    if isinstance(columns, pa.Table):
        columns, ends = split_ends(with_constants(columns, block.form.constants, entity), entity)
        group = Group(entity, text.lines, text.record, columns=columns, ends=ends)
    else:
        group = _to_records(text, entity, columns, block.form)
    if len(group.lines):
        parsed.groups.append(group)
    return parsed


class _CsvText:
    """The text of a block, its records, and the numbers of those that are ragged."""

    def __init__(self, block: CsvBlock, name: str) -> None:
        self.form = block.form
        self.delimiter = block.form.text.delimiter or ","
        self.data = block.data
        self.records = find_records(block.data, self.delimiter.encode(), block.first_line)
        self._name = name
        self._ragged: dict[int, int] = {}

    @property
    def kept(self) -> npt.NDArray[np.int64]:
        """The records that are rows."""
        every = np.arange(len(self.records.starts))
        return np.delete(every, list(self._ragged)) if self._ragged else every

    @property
    def lines(self) -> npt.NDArray[np.int64]:
        return self.records.lines[self.kept]

    def record(self, row: int) -> str:
        return self._bytes(int(self.kept[row])).decode(errors="replace")

    def _bytes(self, number: int) -> bytes:
        return self.data[self.records.starts[number] : self.records.ends[number]]

    def refuse_unreadable(self, parsed: Parsed) -> None:
        """Take records out that are not text, or that no quote ends."""
        bad: dict[int, str] = {}
        if self.records.is_open:
            bad[len(self.records.starts) - 1] = _NEVER_CLOSED
        if not self.data.isascii() and not _is_utf8(self.data):
            for number in range(len(self.records.starts)):
                if not _is_utf8(self._bytes(number)):
                    bad[number] = _NOT_UTF8
        if not bad:
            return
        for number, reason in sorted(bad.items()):
            text = self._bytes(number).decode(errors="replace")
            parsed.refuse(int(self.records.lines[number]), reason, text, name=self._name)
        kept = np.delete(np.arange(len(self.records.starts)), list(bad))
        pieces = [self._bytes(number) for number in kept.tolist()]
        lines = self.records.lines[kept]
        ends = np.cumsum([len(piece) + 1 for piece in pieces], dtype=np.int64) - 1
        starts = ends - np.array([len(piece) for piece in pieces], dtype=np.int64)
        self.data = b"\n".join(pieces)
        self.records = Records(starts, ends, lines, is_open=False)

    def read(self, types: Mapping[str, pa.DataType]) -> pa.Table:
        """The columns that are used, under their names in the file."""
        self._ragged = {}
        form = self.form.text
        return pv.read_csv(
            pa.BufferReader(self.data),
            read_options=pv.ReadOptions(
                use_threads=False,
                column_names=list(self.form.names),
                block_size=len(self.data) + 1,
            ),
            parse_options=pv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                invalid_row_handler=self._note_ragged,
            ),
            convert_options=pv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                include_columns=list(types),
                null_values=["", *form.nulls],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                true_values=list(TRUE_WORDS),
                false_values=list(FALSE_WORDS),
                decimal_point=form.decimal,
            ),
        )

    def _note_ragged(self, row: Any) -> str:
        self._ragged[row.number - 1] = row.actual_columns
        return "skip"

    def refuse_ragged(self, parsed: Parsed) -> None:
        for number, found in sorted(self._ragged.items()):
            reason = f"has {found} value{'s' * (found != 1)}, expected {len(self.form.names)}"
            text = self._bytes(number).decode(errors="replace")
            parsed.refuse(int(self.records.lines[number]), reason, text, name=self._name)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def column_property_type(entity: EntityType, target: str) -> PropertyType:
    """The type of what a column fills; ids and ends are texts."""
    known = entity.properties.get(target)
    return _TEXT if known is None else known.type


def _read_typed(text: _CsvText, entity: EntityType) -> pa.Table | None:
    form = text.form
    types = {name: column_property_type(entity, target) for name, target in form.columns}
    try:
        table = text.read({name: reader_type(type_, form.text) for name, type_ in types.items()})
    except pa.ArrowInvalid:
        return None
    arrays: list[Any] = []
    for name, type_ in types.items():
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            column = convert_texts(column, type_, form.text)
        if column is None:
            return None
        arrays.append(column)
    return pa.Table.from_arrays(arrays, names=[target for _, target in form.columns])


@dataclass(frozen=True, slots=True)
class _Mixed:
    """Columns of which some hold values that no typed column does."""

    columns: Mapping[str, list[Any]]
    count: int


def _read_texts(text: _CsvText, entity: EntityType) -> pa.Table | _Mixed:
    """Columns read as texts first; those with a text that is no value of the type stay mixed."""
    form = text.form
    if not len(text.records.starts):
        return _Mixed({}, 0)
    table = text.read(dict.fromkeys((name for name, _ in form.columns), pa.utf8()))
    typed: dict[str, Any] = {}
    mixed: dict[str, list[Any]] = {}
    for name, target in form.columns:
        type_ = column_property_type(entity, target)
        texts = table[name].combine_chunks()
        found = convert_texts(texts, type_, form.text)
        if found is not None:
            typed[target] = found
        else:
            mixed[target] = [value_of_text(each, type_, form.text) for each in texts.to_pylist()]
    if not mixed:
        return pa.table({target: typed[target] for _, target in form.columns})
    columns = {
        target: mixed[target] if target in mixed else typed[target].to_pylist()
        for _, target in form.columns
    }
    return _Mixed(columns, table.num_rows)


def _to_records(text: _CsvText, entity: EntityType, mixed: _Mixed, form: RowForm) -> Group:
    """Rows one by one: a value that does not fit is refused with its own reason."""
    columns = dict(mixed.columns)
    ends = None
    if isinstance(entity, EdgeType):
        ends = tuple(pa.array(columns.pop(side, []), pa.utf8()) for side in ("src", "dst"))
    constants = dict(form.constants)
    names = list(columns)
    rows = zip(*columns.values(), strict=True) if names else iter([()] * mixed.count)
    records = [{**dict(zip(names, row, strict=True)), **constants} for row in rows]
    return Group(entity, text.lines, text.record, records=records, ends=ends)
