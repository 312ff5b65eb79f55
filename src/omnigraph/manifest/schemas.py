"""Schemas: the texts of every schema a graph has had, so that each commit is read in its own.

A branch is in the schema that its manifest names, which need not be that of main.

    __schemas/{id}.json   {"source": …, "ir": …}

The id is a hash of both texts, identities included: two schemas of one shape differ in it when a
property was dropped and added again. A manifest from before ids names the hash of the shape; the
schema that such a graph has when it is next opened to write is kept under that.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from functools import lru_cache

from omnigraph.catalog import FIRST_ID, Catalog, catalog_from_json
from omnigraph.dataclass import dataclass
from omnigraph.errors import ConflictError, OmnigraphError, StorageError
from omnigraph.manifest.contract import SchemaContract, schema_id, schema_text, text_id
from omnigraph.manifest.model import MAIN, ManifestState, Snapshot
from omnigraph.storage.graph_texts import GraphTexts

DIRECTORY = "__schemas"
CATALOGS_MAX = 256
DISTANCE_MIN = 2**32
"""A greater identity was not handed out by an Omnigraph that counted on from one to the next."""
DISTANCES = 2**36


@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """The schema a state is in, and what its manifest calls it; None when that does not say."""

    source: str
    catalog: Catalog
    name: str | None


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
    name = state.schema_name
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


def read_schema(
    texts: GraphTexts, snapshot: Snapshot | ManifestState, current: SchemaContract
) -> AcceptedSchema:
    """The schema that the tables of a branch are in; `current` is that of main.

    Raises:
        ConflictError: Its text is gone or damaged.
    """
    name = snapshot.schema_name
    kept = None
    if name is not None and name != current.schema_id:
        kept = load_schema(texts, name)
        if kept is None and not _is_of(current, snapshot):
            raise ConflictError(
                f"the schema of branch '{snapshot.branch}' cannot be read: "
                f"'{schema_path(name)}' is missing or damaged — restore it from a backup"
            )
    return kept or AcceptedSchema(current.source, current.catalog, name)


def _is_of(current: SchemaContract, snapshot: Snapshot | ManifestState) -> bool:
    """Whether the schema files at the root are those of a state whose kept text is not there."""
    is_named = snapshot.schema_name == current.catalog.shape_hash
    is_main = snapshot.branch == MAIN and snapshot.schema_hash == current.catalog.shape_hash
    return is_named or is_main


def list_kept(texts: GraphTexts) -> tuple[str, ...]:
    """The names of every schema that is kept, those of branches too."""
    return tuple(sorted(each.removesuffix(".json") for each in texts.list_dir(DIRECTORY)))


def load_catalogs(texts: GraphTexts, names: Iterable[str]) -> list[Catalog]:
    """The schemas that are kept under names; damaged ones are left out."""
    found = (_load_catalog(texts, name) for name in names)
    return [each for each in found if each is not None]


def _load_catalog(texts: GraphTexts, name: str) -> Catalog | None:
    kept = load_schema(texts, name)
    return None if kept is None else kept.catalog


def load_schema(texts: GraphTexts, name: str) -> AcceptedSchema | None:
    """A schema that is kept; None when its text is gone or damaged."""
    text = texts.read_text_if_exists(schema_path(name))
    if text is None:
        return None
    try:
        source, catalog = _parse_schema(text)
        return AcceptedSchema(source, catalog, name)
    except (ValueError, KeyError, TypeError, StorageError):
        return None  # damaged: as good as not there


@lru_cache(maxsize=CATALOGS_MAX)
def _parse_schema(text: str) -> tuple[str, Catalog]:
    """One catalogue per text, so that what is cached by its identity is found again."""
    kept = json.loads(text)
    return str(kept["source"]), catalog_from_json(kept["ir"])


def find_next_id(texts: GraphTexts) -> int:
    """The first identity that no schema of the graph has handed out, on whichever branch.

    Every schema is kept before a manifest names it, so those that are kept are all there can be.

    Raises:
        ConflictError: A schema that is kept cannot be read, so its identities are not known.
    """
    first = FIRST_ID
    for file in texts.list_dir(DIRECTORY):
        if not file.endswith(".json"):
            continue
        kept = load_schema(texts, file.removesuffix(".json"))
        if kept is None:
            raise ConflictError(
                f"'{DIRECTORY}/{file}' cannot be read, so a new type or property could get an "
                "identity that is in use — restore the file from a backup; nothing was changed"
            )
        first = max(first, kept.catalog.next_id)
    return first


def draw_next_id(texts: GraphTexts) -> int:
    """Where the identities of a schema change begin: behind all others, by a random distance.

    Another store of the graph may hand out identities at the same time. They count from the same
    number on, and the distance keeps what they hand out apart until it meets in a merge.

    Raises:
        ConflictError: A schema that is kept cannot be read, so its identities are not known.
    """
    return find_next_id(texts) + DISTANCE_MIN + secrets.randbelow(DISTANCES)


def is_unique_path(path: str) -> bool:
    """Whether the place of a table has an incarnation in its name that no other store hands out."""
    token = path.rpartition("/")[2].split("-")[1:2]
    return bool(token) and int(token[0], 16) >= DISTANCE_MIN


def find_damaged_schemas(texts: GraphTexts, named: Iterable[str]) -> dict[str, str]:
    """File → what is wrong with it, of the schemas that are kept, or `named` and should be."""
    found = {}
    kept = {each.removesuffix(".json") for each in texts.list_dir(DIRECTORY)}
    for name in sorted(kept | set(named)):
        try:
            problem = find_schema_problem(name, texts.read_text_if_exists(schema_path(name)))
        except (OmnigraphError, ValueError) as error:
            problem = f"cannot be read: {error}"
        if problem is not None:
            found[schema_path(name)] = problem
    return found


def find_schema_problem(name: str, text: str | None) -> str | None:
    """What is wrong with the text that a schema is kept as; None when it is whole."""
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
