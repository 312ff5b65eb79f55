"""The schema contract: the three text files that say what a graph's schema is, and that they agree.

    _schema.pg            the source, as a person wrote it
    _schema.ir.json       the catalogue it was accepted as, with identities
    __schema_state.json   the hash that both must have

Every operation on a handle looks at them again, so an edit behind the engine's back is noticed
before it can do harm, and a schema applied by another process is picked up. On a local disk it
looks at their attributes, and reads them only when those do not prove that they are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.catalog import Catalog, catalog_from_json, catalog_to_json
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, OmnigraphError
from omnigraph.storage.file_times import Attributes
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.syntax import parse_schema

SOURCE_FILE = "_schema.pg"
IR_FILE = "_schema.ir.json"
STATE_FILE = "__schema_state.json"
FILES = (SOURCE_FILE, IR_FILE, STATE_FILE)
STAGING_SUFFIX = ".staging"

_FORMAT_VERSION = 1
_IDENTITY_VERSION = 1
_UNRECORDED = {"format_version", "schema_ir_hash", "schema_identity_version"}
_DAMAGED = "is damaged: its text is not what was written"


@dataclass(frozen=True, slots=True)
class SchemaContract:
    """An accepted schema, and the exact texts it was read from.

    While the files have these `attributes`, their texts are the same.
    """

    source: str
    catalog: Catalog
    texts: tuple[str | None, ...]
    schema_id: str
    attributes: tuple[Attributes, ...] | None = None


def build_contract_texts(source: str, catalog: Catalog) -> dict[str, str]:
    """The contents of the three files for an accepted schema."""
    state: dict[str, object] = {
        "format_version": _FORMAT_VERSION,
        "schema_ir_hash": catalog.shape_hash,
        "schema_identity_version": _IDENTITY_VERSION,
    }
    texts = {SOURCE_FILE: source, IR_FILE: catalog_to_json(catalog)}
    state["files"] = {name: _checksum(text) for name, text in texts.items()}
    return texts | {STATE_FILE: _build_state_text(state)}


def find_damaged_texts(store: GraphTexts) -> dict[str, str]:
    """File → what is wrong with it, of the schema files that are not as they were written."""
    try:
        state = store.read_text_if_exists(STATE_FILE)
        facts = json.loads(state or "")
        claimed = facts.pop("checksum", None)
    except OmnigraphError as error:
        return {STATE_FILE: f"cannot be read: {error.message}"}
    except (ValueError, AttributeError):
        return {STATE_FILE: "is missing" if state is None else "is damaged: it is no JSON object"}
    if claimed is None and facts.keys() <= _UNRECORDED:
        return {}  # written by a version that recorded none
    if claimed is None or state != _build_state_text(facts):
        return {STATE_FILE: _DAMAGED}
    found = {name: _find_text_problem(store, name, each) for name, each in facts["files"].items()}
    return {name: problem for name, problem in found.items() if problem is not None}


def _find_text_problem(store: GraphTexts, name: str, expected: str) -> str | None:
    try:
        text = store.read_text_if_exists(name)
    except OmnigraphError as error:
        return f"cannot be read: {error.message}"
    if text is None:
        return "is missing"
    return None if _checksum(text) == expected else _DAMAGED


def _build_state_text(facts: dict[str, object]) -> str:
    return json.dumps(facts | {"checksum": _checksum(json.dumps(facts))}, indent=2)


def _checksum(text: str) -> str:
    return f"crc32:{zlib.crc32(text.encode()):08x}"


def schema_text(source: str, catalog: Catalog) -> str:
    """A schema as one text: what was written, and the identities it was accepted with."""
    return json.dumps({"source": source, "ir": catalog_to_json(catalog)}, ensure_ascii=False)


def schema_id(source: str, catalog: Catalog) -> str:
    """What names a schema exactly, its identities included."""
    return text_id(schema_text(source, catalog))


def text_id(text: str) -> str:
    """What names a schema that is kept as this text."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def staging_name(name: str) -> str:
    """Where the next version of a schema file lies until it is accepted."""
    return f"{name}{STAGING_SUFFIX}"


def source_hash(source: str) -> str:
    """The hash of what a schema text means."""
    from omnigraph.catalog import build_catalog  # a text that is read was accepted as its catalogue

    return build_catalog(parse_schema(source, name=SOURCE_FILE)).shape_hash


def load_contract(store: GraphTexts, known: SchemaContract | None = None) -> SchemaContract:
    """Read the files and check that they agree; `known` is given back when nothing changed.

    A schema change moves its three files one after the other. Files that do not agree are read
    as they will be afterwards, so that no reader sees half of a change.

    Raises:
        ConflictError: A file is missing, damaged, or does not fit the others.
    """
    attributes = store.read_attributes(FILES)  # before the texts: what changes then is read
    if known is not None and attributes is not None and known.attributes == attributes:
        return known
    texts = tuple(store.read_text_if_exists(name) for name in FILES)
    if known is not None and known.texts == texts:
        return replace(known, attributes=attributes)
    try:
        return replace(_build_contract(texts), attributes=attributes)
    except ConflictError:
        moved = next_texts(store)
        if moved == texts:
            raise
        return _build_contract(moved)


def next_texts(store: GraphTexts) -> tuple[str | None, ...]:
    """The three texts as they are once everything staged has been moved."""
    return tuple(
        store.read_text_if_exists(name)
        if (staged := store.read_text_if_exists(staging_name(name))) is None
        else staged
        for name in FILES
    )


def next_contract(store: GraphTexts) -> SchemaContract:
    """The contract once everything staged has been moved."""
    return _build_contract(next_texts(store))


def _build_contract(texts: tuple[str | None, ...]) -> SchemaContract:
    source, ir, state = texts
    if source is None or ir is None or state is None:
        missing = ", ".join(name for name, text in zip(FILES, texts, strict=True) if text is None)
        raise ConflictError(f"the schema of this graph is incomplete: {missing} is missing")
    catalog = _build_checked_catalog(source, ir, state)
    return SchemaContract(source, catalog, texts, schema_id(source, catalog))


def _build_checked_catalog(source: str, ir: str, state: str) -> Catalog:
    try:
        facts = json.loads(state)
        accepted_hash = facts["schema_ir_hash"]
    except (ValueError, KeyError, TypeError):
        raise ConflictError(f"{STATE_FILE} cannot be read — restore it from a backup") from None
    try:
        catalog = catalog_from_json(ir)
        hashes = {IR_FILE: catalog.shape_hash}
        if not _are_as_written(facts, state, {SOURCE_FILE: source, IR_FILE: ir}):
            hashes[SOURCE_FILE] = source_hash(source)
    except OmnigraphError as error:
        raise ConflictError(
            f"the schema files of this graph were changed by hand: {error.message} — "
            "put back the accepted text and change it with `omnigraph schema apply`"
        ) from error
    for name, actual in hashes.items():
        if actual != accepted_hash:
            raise ConflictError(
                f"{name} is not the accepted schema of this graph — "
                "put back the accepted text and change it with `omnigraph schema apply`"
            )
    return catalog


def _are_as_written(facts: dict[str, Any], state: str, texts: Mapping[str, str]) -> bool:
    """Whether these are the texts that were accepted, so that none has to be parsed again."""
    recorded = {name: value for name, value in facts.items() if name != "checksum"}
    is_whole = "checksum" in facts and state == _build_state_text(recorded)
    return is_whole and facts.get("files") == {
        name: _checksum(text) for name, text in texts.items()
    }
