"""Schemas: the texts of every schema a graph has had, so that each commit is read in its own.

    __schemas/{id}.json   {"source": …, "ir": …}

The id is a hash of both texts, identities included: two schemas of one shape differ in it when a
property was dropped and added again. A manifest from before ids names the hash of the shape; the
schema that such a graph has when it is next opened to write is kept under that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from omnigraph.catalog import Catalog, catalog_from_json
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.manifest.contract import SchemaContract, schema_id, schema_text, text_id
from omnigraph.manifest.model import ManifestState, Snapshot
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__schemas"
CATALOGS_MAX = 256


def keep_schema(texts: GraphTexts, source: str, catalog: Catalog, name: str | None = None) -> str:
    """Keep the texts of a schema; returns its id, or the `name` to keep it under.

    Durable before this returns: a manifest never names a schema that is not there.
    """
    kept_as = name or schema_id(source, catalog)
    path = schema_path(kept_as)
    if not texts.exists(path):
        texts.write_text_if_absent(path, schema_text(source, catalog))
    return kept_as


def keep_accepted(texts: GraphTexts, state: ManifestState, contract: SchemaContract) -> None:
    """Keep the schema the graph has now, unless it is kept or the files are about to change."""
    name = state.snapshot().schema_name
    if name in (contract.schema_id, contract.catalog.shape_hash):
        keep_schema(texts, contract.source, contract.catalog, name)


def schema_path(name: str) -> str:
    """Where the texts of a schema lie below the root of the graph."""
    return f"{DIRECTORY}/{name}.json"


def find_catalog(texts: GraphTexts, snapshot: Snapshot, current: SchemaContract) -> Catalog | None:
    """The schema that the tables of a snapshot are in; None when its text is not there.

    `current` is the accepted schema, which need not be read again.
    """
    name = snapshot.schema_name
    if name is None or name == current.schema_id:
        return current.catalog
    kept = _load_catalog(texts, name)
    if kept is None and name == current.catalog.shape_hash:
        return current.catalog
    return kept


def _load_catalog(texts: GraphTexts, name: str) -> Catalog | None:
    text = texts.read_text_if_exists(schema_path(name))
    if text is None:
        return None
    try:
        return _parse_catalog(text)
    except (ValueError, KeyError, TypeError, StorageError):
        return None  # damaged: as good as not there


@lru_cache(maxsize=CATALOGS_MAX)
def _parse_catalog(text: str) -> Catalog:
    """One catalogue per text, so that what is cached by its identity is found again."""
    return catalog_from_json(json.loads(text)["ir"])


def find_damaged_schemas(texts: GraphTexts, named: Iterable[str]) -> dict[str, str]:
    """File → what is wrong with it, of the schemas that are kept, or `named` and should be."""
    found = {}
    kept = {each.removesuffix(".json") for each in texts.list_dir(DIRECTORY)}
    for name in sorted(kept | set(named)):
        try:
            problem = _find_problem(name, texts.read_text_if_exists(schema_path(name)))
        except (OmnigraphError, ValueError) as error:
            problem = f"cannot be read: {error}"
        if problem is not None:
            found[schema_path(name)] = problem
    return found


def _find_problem(name: str, text: str | None) -> str | None:
    if text is None:
        return "is missing"
    if name == text_id(text):
        return None
    try:
        # A graph from before ids names its schema by what it means.
        is_named = catalog_from_json(json.loads(text)["ir"]).shape_hash == name
    except (ValueError, KeyError, TypeError, OmnigraphError):
        is_named = False
    return None if is_named else "is damaged: its bytes are not those that were written"
