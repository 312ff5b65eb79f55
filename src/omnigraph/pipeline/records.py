"""Records: the load format, read and grouped by type, each with the place it came from.

    {"type": "<Node>", "data": {...}}
    {"edge": "<Edge>", "from": "<id>", "to": "<id>", "data": {...}}

Blank lines and lines that start with `//` are skipped. Nodes and edges may come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from omnigraph.catalog import Catalog, EntityType
from omnigraph.errors import BadRequestError, did_you_mean
from omnigraph.write.bad_rows import BadRow, BadRows

Source: TypeAlias = str | Path | Iterable[Mapping[str, Any]]
Located: TypeAlias = tuple[str, Mapping[str, Any]]

_NODE_MEMBERS = {"type", "data"}
_EDGE_MEMBERS = {"edge", "from", "to", "data"}


@dataclass(slots=True)
class TypeRecords:
    """All records of one type, in input order."""

    entity: EntityType
    data: list[Mapping[str, Any]] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    targets: list[str | None] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


def read_records(source: Source) -> Iterator[Located]:
    """Yield every record with its place. A path names a file; other text is the records."""
    if isinstance(source, Path) or (isinstance(source, str) and not _is_inline(source)):
        path = Path(source)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise BadRequestError(f"cannot read '{path}': no such file") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequestError(f"cannot read '{path}': {error}") from error
        yield from _read_lines(text, str(path))
    elif isinstance(source, str):
        yield from _read_lines(source, "data")
    else:
        for number, record in enumerate(source, start=1):
            yield f"record {number}", record


def _is_inline(text: str) -> bool:
    stripped = text.lstrip()
    return not stripped or (stripped[0] in "{/" and "\n" in text) or stripped.startswith("{")


def _read_lines(text: str, name: str) -> Iterator[Located]:
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("//"):
            continue
        try:
            record = orjson.loads(stripped)
        except orjson.JSONDecodeError as error:
            raise BadRequestError(
                f"{name}:{number}:{error.colno}: not a JSON object — {error.msg}; "
                "nothing was written"
            ) from None
        yield f"{name}:{number}", record


def group_records(
    records: Iterable[Located], catalog: Catalog
) -> tuple[dict[str, TypeRecords], BadRows]:
    """Group records by table key; what is no record of the schema comes back as bad rows."""
    groups: dict[str, TypeRecords] = {}
    bad: list[BadRow] = []
    for place, record in records:
        entity = _entity_of(record, catalog)
        if isinstance(entity, str):
            bad.append(BadRow(0, "record", None, "", entity, location=place))
            continue
        group = groups.setdefault(entity.table_key, TypeRecords(entity))
        group.data.append(record.get("data") or {})
        group.places.append(place)
        if entity.kind == "edge":
            group.sources.append(_text(record.get("from")))
            group.targets.append(_text(record.get("to")))
    return groups, BadRows(tuple(bad[:100]), len(bad))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _entity_of(record: object, catalog: Catalog) -> EntityType | str:
    """The type a record names, or what is wrong with the record."""
    if not isinstance(record, Mapping):
        return "a record is a JSON object"
    if ("type" in record) == ("edge" in record):
        return "a record has exactly one of `type` and `edge`"
    kind, members = ("type", _NODE_MEMBERS) if "type" in record else ("edge", _EDGE_MEMBERS)
    unknown = sorted(set(record) - members)
    if unknown:
        return f"a record of a {'node' if kind == 'type' else 'edge'} has no member `{unknown[0]}`"
    if not isinstance(record.get("data", {}), Mapping):
        return "`data` is a JSON object"
    name = record[kind]
    found = catalog.node(str(name)) if kind == "type" else catalog.edge(str(name))
    if found is None:
        known = catalog.nodes if kind == "type" else catalog.edges
        hint = did_you_mean(str(name), known)
        return f"unknown {kind} '{name}'" + (f" — {hint}" if hint else "")
    return found
