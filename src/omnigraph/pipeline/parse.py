"""Parse: a block of input, taken apart by type.

Lines that begin alike (`{"type":"Person"`) are read together by Arrow, straight into typed columns.
What Arrow refuses is read again record by record, which is slower and gives reasons. Both ways give
the same rows, so a fault in one record never affects how another one is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.json as pj

from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import with_suggestion
from omnigraph.pipeline.blocks import Block, CsvBlock, LinesBlock, RawBlock, RowsBlock, ValuesBlock
from omnigraph.pipeline.columns_of_file import lacks_defaults, split_ends, with_constants
from omnigraph.pipeline.formats.csv_rows import parse_csv
from omnigraph.pipeline.formats.json_rows import parse_lines_of, parse_texts_of
from omnigraph.pipeline.groups import Group, Parsed
from omnigraph.pipeline.lines import Lines, split_lines
from omnigraph.pipeline.members import find_repeated
from omnigraph.pipeline.python_records import fault_of, text_of
from omnigraph.write.bad_rows import excerpt
from omnigraph.write.convert import json_fields, python_value

_MEMBERS = {"type": {"type", "data"}, "edge": {"edge", "from", "to", "data"}}


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a record may be: of a type of the catalog, with or without members that say nothing."""

    catalog: Catalog
    ignores_members: bool


def parse_block(block: Block, catalog: Catalog, *, ignores_members: bool = False) -> Parsed:
    """Take a block apart by type.

    With `ignores_members` a record may have members that no record has, which say nothing.
    """
    rules = _Rules(catalog, ignores_members)
    match block:
        case LinesBlock(first_line, data, form):
            lines = split_lines(data, first_line)
            return (
                _parse_lines(lines, rules) if form is None else parse_lines_of(lines, catalog, form)
            )
        case RawBlock(records, form):
            texts = ((raw.line, raw.text) for raw in records)
            return (
                _parse_texts(texts, rules) if form is None else parse_texts_of(texts, catalog, form)
            )
        case CsvBlock():
            return parse_csv(block, catalog)
        case ValuesBlock(first, records):
            return _parse_values(first, records, rules)
        case RowsBlock():
            return Parsed([_to_group(block, catalog)])
        case _:
            assert_never(block)


def _parse_lines(lines: Lines, rules: _Rules) -> Parsed:
    alike: dict[str, tuple[EntityType, npt.NDArray[np.int64]]] = {}
    by_head, unclassified = lines.classify()
    others = [unclassified]
    for (member, name), indexes in by_head.items():
        entity = _entity_named(rules.catalog, member, name)
        if isinstance(entity, str):
            others.append(indexes)
        else:
            known = alike.get(entity.table_key)
            joined = indexes if known is None else np.sort(np.concatenate([known[1], indexes]))
            alike[entity.table_key] = (entity, joined)
    parsed = _parse_each(lines, np.sort(np.concatenate(others)), rules)
    # A type with even one other line is read record by record, so that its records stay in order.
    unusual = {group.entity.table_key for group in parsed.groups} & alike.keys()
    if unusual:
        others += [alike.pop(key)[1] for key in unusual]
        parsed = _parse_each(lines, np.sort(np.concatenate(others)), rules)
    for entity, indexes in alike.values():
        group = _arrow_group(entity, lines, indexes, rules)
        found = Parsed([group]) if group else _parse_each(lines, indexes, rules)
        parsed.groups += found.groups
        parsed.unknown += found.unknown
        parsed.needs_document |= found.needs_document
    return parsed


def _parse_each(lines: Lines, indexes: npt.NDArray[np.int64], rules: _Rules) -> Parsed:
    texts = ((int(lines.numbers[index]), lines.text(index)) for index in indexes.tolist())
    parsed = _parse_texts(texts, rules)
    parsed.needs_document = any(
        finding.column is not None and lines.may_span(finding.line) for finding, _ in parsed.unknown
    )
    return parsed


def _arrow_group(
    entity: EntityType, lines: Lines, indexes: npt.NDArray[np.int64], rules: _Rules
) -> Group | None:
    """Read lines of one type as columns; None when Arrow refuses one of them."""
    is_edge = isinstance(entity, EdgeType)
    members = ["edge", "from", "to"] if is_edge else ["type"]
    schema = pa.schema([(name, pa.utf8()) for name in members] + [("data", json_fields(entity))])
    data = lines.join(indexes)
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="error"
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    if table.num_rows != len(indexes):
        return None
    fields = table["data"].combine_chunks()
    columns = pa.Table.from_arrays(fields.flatten(), names=[each.name for each in fields.type])
    if lacks_defaults(columns, entity):
        return None
    ends = tuple(table[name].combine_chunks() for name in ("from", "to")) if is_edge else None
    return Group(
        entity,
        lines.numbers[indexes],
        lambda row: lines.text(int(indexes[row])).decode(errors="replace"),
        columns=columns,
        ends=ends,
        reread=lambda: _parse_each(lines, indexes, rules),
    )


class _Collector:
    """Gathers records by type."""

    def __init__(self, rules: _Rules, text: Callable[[int], str]) -> None:
        self._rules = rules
        self.text = text
        self.parsed = Parsed()
        self._rows: dict[str, tuple[EntityType, list[int], list[int], list[Any], list[Any]]] = {}

    def add(self, position: int, line: int, record: object) -> None:
        entity = entity_of(record, self._rules)
        if isinstance(entity, str):
            self.refuse(position, line, entity)
            return
        assert isinstance(record, Mapping)
        row = self._rows.setdefault(entity.table_key, (entity, [], [], [], []))
        row[1].append(position)
        row[2].append(line)
        row[3].append(record.get("data") or {})
        row[4].append((record.get("from"), record.get("to")))

    def refuse(self, position: int, line: int, reason: str, column: int | None = None) -> None:
        self.parsed.refuse(line, reason, self.text(position), column)

    def finish(self) -> Parsed:
        for entity, positions, lines, records, ends in self._rows.values():
            self.parsed.groups.append(
                Group(
                    entity,
                    np.array(lines, dtype=np.int64),
                    lambda row, positions=positions: self.text(positions[row]),  # type: ignore[misc]
                    records=records,
                    ends=_text_ends(ends) if isinstance(entity, EdgeType) else None,
                )
            )
        return self.parsed


def _text_ends(ends: list[tuple[object, object]]) -> tuple[pa.Array, pa.Array]:
    def column(side: int) -> pa.Array:
        values = (pair[side] for pair in ends)
        return pa.array([value if isinstance(value, str) else None for value in values], pa.utf8())

    return column(0), column(1)


def _parse_texts(items: Iterable[tuple[int, bytes]], rules: _Rules) -> Parsed:
    texts: list[bytes] = []
    collector = _Collector(rules, lambda position: texts[position].decode(errors="replace"))
    for position, (line, text) in enumerate(items):
        texts.append(text)
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            at = line + error.lineno - 1
            reason = f"not a JSON object: {error.msg.partition(':')[0]}"
            collector.refuse(position, at, reason, error.colno)
            continue
        repeated = find_repeated(text, record)
        if repeated is None:
            collector.add(position, line, record)
        else:
            collector.refuse(position, line, f"the member {excerpt(repeated)} is there twice")
    return collector.finish()


def _parse_values(first: int, records: tuple[Any, ...], rules: _Rules) -> Parsed:
    collector = _Collector(rules, lambda position: text_of(records[position]))
    for position, record in enumerate(records):
        fault = fault_of(record)
        if fault is None:
            collector.add(position, first + position, record)
        else:
            collector.refuse(position, first + position, fault)
    return collector.finish()


def _to_group(block: RowsBlock, catalog: Catalog) -> Group:
    entity = catalog.entity(block.table_key)
    columns, ends = split_ends(with_constants(block.rows, block.constants, entity), entity)
    return Group(
        entity,
        np.arange(block.first, block.first + block.rows.num_rows),
        lambda row: text_of(
            {name: python_value(block.rows[name][row]) for name in block.rows.column_names}
        ),
        columns=columns,
        ends=ends,
    )


def entity_of(record: object, rules: _Rules) -> EntityType | str:
    """The type a record names, or what is wrong with the record."""
    if not isinstance(record, Mapping):
        return f"a record is a JSON object, got {excerpt(record) or 'null'}"
    if ("type" in record) == ("edge" in record):
        return "a record has exactly one of `type` and `edge`"
    member = "type" if "type" in record else "edge"
    name = record[member]
    if not isinstance(name, str):
        return f"`{member}` is the name of a type, got {excerpt(name) or 'null'}"
    data = record.get("data")
    if data is not None and not isinstance(data, Mapping):
        return f"`data` is a JSON object, got {excerpt(data)}"
    others = record.keys() - _MEMBERS[member]
    if others and not rules.ignores_members:
        other = min(map(str, others))
        return f"a record has no member {excerpt(other)} — properties belong under `data`"
    return _entity_named(rules.catalog, member, name)


def _entity_named(catalog: Catalog, member: str, name: str) -> EntityType | str:
    if member == "type":
        return catalog.node(name) or _unknown_type("node", name, catalog.nodes)
    return catalog.edge(name) or _unknown_type("edge", name, catalog.edges)


def _unknown_type(kind: str, name: str, known: Iterable[str]) -> str:
    return with_suggestion(f"unknown {kind} type {excerpt(name)}", name, known)
