"""JSON rows: JSON whose objects are rows of one type: their members are its properties.

An edge has `from` and `to` (or `src` and `dst`) beside them. Lines are read together by Arrow; what
it refuses is read again one by one, for reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.json as pj

from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.pipeline.binding import ENDS
from omnigraph.pipeline.columns_of_file import lacks_defaults, split_ends, with_constants
from omnigraph.pipeline.groups import Group, Parsed
from omnigraph.pipeline.lines import Lines
from omnigraph.pipeline.members import find_repeated
from omnigraph.pipeline.model import RowForm
from omnigraph.write.bad_rows import excerpt
from omnigraph.write.convert import json_fields

_ENVELOPE = ("type", "edge")


def parse_lines_of(lines: Lines, catalog: Catalog, form: RowForm) -> Parsed:
    """Read lines that are rows of one type."""
    entity = catalog.entity(form.table_key)
    indexes = lines.held()
    if not len(indexes):
        return Parsed()

    def texts() -> Iterator[tuple[int, bytes]]:
        return ((int(lines.numbers[index]), lines.text(index)) for index in indexes.tolist())

    columns = _read_columns(lines.join(indexes), entity, form)
    is_whole = columns is not None and columns.num_rows == len(indexes)
    if columns is None or not is_whole or lacks_defaults(columns, entity):
        parsed = parse_texts_of(texts(), catalog, form)
        parsed.needs_document = any(
            finding.column is not None and lines.may_span(finding.line)
            for finding, _ in parsed.unknown
        )
        return parsed
    columns, ends = split_ends(with_constants(columns, form.constants, entity), entity)
    return Parsed(
        [
            Group(
                entity,
                lines.numbers[indexes],
                lambda row: lines.text(int(indexes[row])).decode(errors="replace"),
                columns=columns,
                ends=ends,
                reread=lambda: parse_texts_of(texts(), catalog, form),
            )
        ]
    )


def parse_texts_of(items: Iterable[tuple[int, bytes]], catalog: Catalog, form: RowForm) -> Parsed:
    """Read objects one by one: each with its line, and a reason where it is no row."""
    entity = catalog.entity(form.table_key)
    parsed = Parsed()
    rows: list[tuple[int, bytes, dict[str, Any]]] = []
    for line, text in items:
        try:
            row = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            reason = f"not a JSON object: {error.msg.partition(':')[0]}"
            at = line + error.lineno - 1
            parsed.refuse(at, reason, text.decode(errors="replace"), error.colno, entity.name)
            continue
        fault = _fault_of(row, text, entity)
        if fault is None:
            rows.append((line, text, _rename(row, form, entity)))
        else:
            parsed.refuse(line, fault, text.decode(errors="replace"), name=entity.name)
    if rows:
        parsed.groups.append(_to_group(rows, entity))
    return parsed


def _read_columns(data: bytes, entity: EntityType, form: RowForm) -> pa.Table | None:
    targets = {each.name: each.type for each in json_fields(entity)}
    if isinstance(entity, EdgeType):
        targets |= dict.fromkeys(ENDS, pa.utf8())
    renamed = dict(form.columns)
    members = {name: targets[target] for name, target in renamed.items() if target in targets}
    taken = set(renamed.values())
    members |= {
        name: type_ for name, type_ in targets.items() if name not in taken | members.keys()
    }
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(members.items())), unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    return _merge_ends(table.rename_columns([renamed.get(n, n) for n in table.column_names]))


def _merge_ends(table: pa.Table) -> pa.Table | None:
    """Drop the spelling of an end that the rows do not use; None when they use both."""
    for short, name in (("src", "from"), ("dst", "to")):
        if short in table.column_names and name in table.column_names:
            unused = [each for each in (short, name) if table[each].null_count == len(table)]
            if not unused:
                return None
            table = table.drop_columns(unused[:1])
    return table


def _fault_of(row: object, text: bytes, entity: EntityType) -> str | None:
    if not isinstance(row, Mapping):
        return f"a row is a JSON object, got {excerpt(row) or 'null'}"
    repeated = find_repeated(text, row)
    if repeated is not None:
        return f"the member {excerpt(repeated)} is there twice"
    named = [each for each in _ENVELOPE if each in row and each not in entity.properties]
    if named and "data" in row:
        return f"the record names its own `{named[0]}` — load the file without a type"
    return None


def _rename(row: Mapping[str, Any], form: RowForm, entity: EntityType) -> dict[str, Any]:
    names = dict(form.columns)
    ends = ENDS if isinstance(entity, EdgeType) else {}
    renamed = {names.get(name, ends.get(name, name)): value for name, value in row.items()}
    return {**renamed, **dict(form.constants)}


def _to_group(rows: list[tuple[int, bytes, dict[str, Any]]], entity: EntityType) -> Group:
    records = [row for _, _, row in rows]
    ends = None
    if isinstance(entity, EdgeType):
        ends = (_pop_end(records, "src"), _pop_end(records, "dst"))
    return Group(
        entity,
        np.array([line for line, _, _ in rows], dtype=np.int64),
        lambda row: rows[row][1].decode(errors="replace"),
        records=records,
        ends=ends,
    )


def _pop_end(records: list[dict[str, Any]], side: str) -> pa.Array:
    values = [record.pop(side, None) for record in records]
    return pa.array([value if isinstance(value, str) else None for value in values], pa.utf8())
