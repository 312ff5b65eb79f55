"""Embedding a file: JSON lines in, the same lines out with vectors added or removed.

The text of a record is `type: <Type>` and a line `<field>: <value>` for every field that has one.
The output is written under a temporary name and renamed, so it is complete or absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError

if TYPE_CHECKING:
    from omnigraph.embed import Embedder

BATCH_RECORDS = 64


class EmbedMode(StrEnum):
    FILL_MISSING = "fill_missing"
    REEMBED_SELECTED = "reembed_selected"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class EmbedType:
    """The field of a type that holds the vector, and the fields that make up its text."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmbedSpec:
    dimension: int
    types: Mapping[str, EmbedType]


@dataclass(frozen=True, slots=True)
class Selector:
    """`[Type:]field=value`."""

    type: str | None
    field: str
    value: str

    def matches(self, type_name: str, data: Mapping[str, Any]) -> bool:
        if self.type not in (None, type_name) or self.field not in data:
            return False
        found = data[self.field]
        return self.value in map(_to_text, found if isinstance(found, list) else [found])


@dataclass(frozen=True, slots=True)
class EmbedRequest:
    """What to do to which records; without types and selectors, to all types of the spec."""

    input: Path
    output: Path
    spec: EmbedSpec
    mode: EmbedMode
    types: frozenset[str] = frozenset()
    selectors: tuple[Selector, ...] = ()

    def selects(self, type_name: str, data: Mapping[str, Any]) -> bool:
        if type_name not in self.spec.types or (self.types and type_name not in self.types):
            return False
        return not self.selectors or any(each.matches(type_name, data) for each in self.selectors)


@dataclass(slots=True)
class EmbedCounts:
    records: int = 0
    selected_records: int = 0
    embedded_records: int = 0
    cleaned_records: int = 0


@dataclass(slots=True)
class _Line:
    """One line of the input, copied unless its record was changed."""

    raw: str
    record: dict[str, Any] | None = None
    text: str | None = None

    def to_text(self) -> str:
        if self.record is None:
            return self.raw
        return json.dumps(self.record, ensure_ascii=False, separators=(",", ":"))


def read_spec(value: Any, name: str) -> EmbedSpec:
    """Read a spec: `{dimension, types: {<Type>: {target, fields}}}`."""
    try:
        types = {
            str(type_name): EmbedType(str(each["target"]), tuple(map(str, each["fields"])))
            for type_name, each in value["types"].items()
        }
        dimension = value["dimension"]
    except (TypeError, KeyError, AttributeError) as error:
        raise BadRequestError(
            f"{name}: an embedding spec is {{dimension, types: {{<Type>: {{target, fields}}}}}}, "
            f"but {error} is wrong or missing"
        ) from None
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise BadRequestError(f"{name}: dimension is {dimension!r}, expected a whole number")
    return EmbedSpec(dimension, types)


def embed_file(
    request: EmbedRequest,
    make_embedder: Callable[[], Embedder],
    watch: Callable[[Iterable[str]], Iterable[str]] = iter,
) -> EmbedCounts:
    """Write the output and count records. The embedder is made for the first text that needs one.

    Raises:
        BadRequestError: The input cannot be read, or a line is not a record.
        EmbeddingFailed, EmbeddingNotConfigured: No output is written.
    """
    counts = EmbedCounts()
    temporary = request.output.with_name(f"{request.output.name}.tmp")
    try:
        request.output.parent.mkdir(parents=True, exist_ok=True)
        with (
            request.input.open(encoding="utf-8") as source,
            temporary.open("w", encoding="utf-8") as sink,
        ):
            numbered = enumerate(watch(source), start=1)
            while batch := list(islice(numbered, BATCH_RECORDS)):
                lines = [_prepare(raw, number, request, counts) for number, raw in batch]
                _fill(lines, request, counts, make_embedder)
                sink.writelines(f"{line.to_text()}\n" for line in lines)
        os.replace(temporary, request.output)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise BadRequestError(f"cannot embed '{request.input}': {reason}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return counts


def _prepare(raw: str, number: int, request: EmbedRequest, counts: EmbedCounts) -> _Line:
    line = _Line(raw.rstrip("\n"))
    if not raw.strip() or raw.lstrip().startswith("//"):
        return line
    try:
        record = json.loads(raw)
    except ValueError:
        raise BadRequestError(f"{request.input}:{number}: not a JSON record") from None
    counts.records += 1
    type_name = record.get("type") if isinstance(record, dict) else None
    if not isinstance(type_name, str):
        return line
    data = record.setdefault("data", {})
    if not isinstance(data, dict):
        raise BadRequestError(f"{request.input}:{number}: data is not an object")
    if not request.selects(type_name, data):
        return line
    counts.selected_records += 1
    wanted = request.spec.types[type_name]
    if request.mode is EmbedMode.CLEAN:
        if wanted.target in data:
            del data[wanted.target]
            counts.cleaned_records += 1
            line.record = record
    elif request.mode is not EmbedMode.FILL_MISSING or data.get(wanted.target) in (None, []):
        line.record = record
        line.text = record_text(type_name, wanted.fields, data)
    return line


def record_text(type_name: str, fields: Sequence[str], data: Mapping[str, Any]) -> str:
    """Build the text that is embedded for a record."""
    texts = ((name, _to_text(data.get(name)).strip()) for name in fields)
    return "\n".join([f"type: {type_name}", *(f"{name}: {text}" for name, text in texts if text)])


def _fill(
    lines: Sequence[_Line],
    request: EmbedRequest,
    counts: EmbedCounts,
    make_embedder: Callable[[], Embedder],
) -> None:
    pending = [(line.record, line.text) for line in lines if line.record and line.text is not None]
    if not pending:
        return
    texts = [text for _, text in pending]
    vectors = make_embedder().embed_documents(texts, request.spec.dimension)
    for (record, _), vector in zip(pending, vectors, strict=True):
        record["data"][request.spec.types[record["type"]].target] = vector.tolist()
    counts.embedded_records += len(pending)


def _to_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return ", ".join(text for each in value if (text := _to_text(each).strip()))
        case _:
            return json.dumps(value, ensure_ascii=False)


def parse_selector(text: str) -> Selector:
    """Parse `Person:city=Rome`, or `city=Rome` for every type."""
    name, separator, value = text.partition("=")
    type_name, colon, field = name.rpartition(":")
    if not separator or not field.strip():
        raise BadRequestError(f"'{text}' is not a selector — expected [Type:]field=value")
    return Selector(type_name.strip() if colon else None, field.strip(), value)
