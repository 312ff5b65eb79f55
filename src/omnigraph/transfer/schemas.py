"""Schemas that travel: the texts of those that received commits are in, and that they fit here.

Stores of one graph hand out identities without asking each other. They begin at random distances
(`draw_next_id`), so one number stands for one thing; that it does is looked at here all the same,
since schemas of one number for two things cannot be told apart afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from omnigraph.catalog import Catalog, catalog_from_json
from omnigraph.errors import ConflictError, DamagedFile
from omnigraph.manifest import load_contract
from omnigraph.manifest.contract import schema_text
from omnigraph.manifest.schemas import find_schema_problem, list_kept, load_catalogs, schema_path
from omnigraph.storage.graph_texts import GraphTexts

Meaning: TypeAlias = str
"""What an identity stands for, such as `node City` or `name of node City`."""


def bring_schemas(source: GraphTexts, target: GraphTexts, names: Iterable[str | None]) -> None:
    """Keep the schemas of these names at the target, as the source keeps them.

    Durable before this returns: a manifest never names a schema that is not there.

    Raises:
        ConflictError: The stores use one identity for different things.
        DamagedFile: A text is not what was written. Nothing is published.
    """
    kept = set(list_kept(target))
    new = {name: _read_text(source, name) for name in sorted({*names} - {None, *kept}, key=str)}
    if not new:
        return
    shared = load_catalogs(target, kept & set(list_kept(source)))
    here = load_catalogs(target, kept)
    _refuse_clashes(shared, here, _read_catalogs(new))
    for name, text in new.items():
        target.write_text_if_absent(schema_path(str(name)), text)


def _read_text(source: GraphTexts, name: str | None) -> str:
    text = source.read_text_if_exists(schema_path(str(name)))
    if text is None:
        # A graph whose schema never changed may have it in its schema files alone.
        contract = load_contract(source)
        if name in (contract.schema_id, contract.catalog.shape_hash):
            return schema_text(contract.source, contract.catalog)
    problem = find_schema_problem(str(name), text)
    if text is None or problem is not None:
        raise DamagedFile(schema_path(str(name)), problem or "is missing")
    return text


def _read_catalogs(texts: Mapping[str | None, str]) -> list[Catalog]:
    return [catalog_from_json(json.loads(text)["ir"]) for text in texts.values()]


def _refuse_clashes(
    shared: Iterable[Catalog], here: Iterable[Catalog], there: Iterable[Catalog]
) -> None:
    known = _list_meanings(shared)
    ours, theirs = _list_meanings(here), _list_meanings(there)
    for identity in sorted((ours.keys() & theirs.keys()) - known.keys()):
        if ours[identity].isdisjoint(theirs[identity]):
            raise ConflictError(
                f"identity {identity} is '{min(ours[identity])}' here and "
                f"'{min(theirs[identity])}' in the other store: both changed the schema with an "
                "Omnigraph that counted alike in all stores — nothing was changed; undo the "
                "schema change in one of them and make it again"
            )


def _list_meanings(catalogs: Iterable[Catalog]) -> dict[int, set[Meaning]]:
    found: dict[int, set[Meaning]] = {}
    for catalog in catalogs:
        for identity, meaning in _read_meanings(catalog):
            found.setdefault(identity, set()).add(meaning)
    return found


def _read_meanings(catalog: Catalog) -> Iterator[tuple[int, Meaning]]:
    for kind, types in catalog.types_by_kind().items():
        for name, each in types.items():
            yield each.type_id, f"{kind} {name}"
            for property_name, found in each.properties.items():
                yield found.property_id, f"{property_name} of {kind} {name}"
