"""Schema files in motion: the next schema is laid beside the present one, then moved over it.

    _schema.pg.staging  _schema.ir.json.staging  __schema_state.json.staging

They are written before the publish that brings the tables in line with them, and moved after it,
source first. Which schema the tables are in, the manifest says, so that a change that died at any
point can be told: published means move them, not published means remove them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from omnigraph.catalog import Catalog, catalog_from_json
from omnigraph.errors import ConflictError, OmnigraphError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.contract import (
    FILES,
    IR_FILE,
    SOURCE_FILE,
    STATE_FILE,
    SchemaContract,
    build_contract_texts,
    load_contract,
    next_contract,
    source_hash,
    staging_name,
)
from omnigraph.manifest.coordinator import Coordinator
from omnigraph.manifest.model import MAIN, ManifestState
from omnigraph.manifest.schemas import load_schema
from omnigraph.storage.graph_texts import GraphTexts


def load_accepted_contract(
    texts: GraphTexts, coordinator: Coordinator, known: SchemaContract | None
) -> SchemaContract:
    """The schema that the tables are in, as the manifest says; read only if it may have changed.

    Between the publish of a schema change and the move of its files, the next schema holds while
    the present one is still in place.

    Raises:
        ConflictError: The schema files are not those of this graph.
    """
    contract = load_contract(texts, known)
    if _matches(texts, contract, coordinator.last_seen(MAIN)):
        return contract
    state = coordinator.fresh(MAIN)
    contract = load_contract(texts)
    if not _matches(texts, contract, state):
        contract = _find_lagging(texts, contract, state) or next_contract(texts)
    if not _matches(texts, contract, state):
        raise ConflictError(
            f"{SOURCE_FILE} is not the accepted schema of this graph — put back the accepted "
            "text and change it with `omnigraph schema apply`"
        )
    return contract


def _matches(texts: GraphTexts, contract: SchemaContract, state: ManifestState) -> bool:
    """Whether files are those of a state: with the same meaning, and the same identities."""
    if state.schema_hash not in (None, contract.catalog.shape_hash):
        return False
    if state.schema_id in (None, contract.schema_id):
        return True
    # A remark that was added to the source changes the id, and no identity.
    kept = load_schema(texts, str(state.schema_id))
    return kept is None or kept.catalog == contract.catalog


def _find_lagging(
    texts: GraphTexts, contract: SchemaContract, state: ManifestState
) -> SchemaContract | None:
    """The schema of main, when its files are those of an earlier one: a merge publishes first.

    None when the files are of no schema that the graph has had.
    """
    if load_schema(texts, contract.schema_id) is None or state.schema_id is None:
        return None
    kept = load_schema(texts, state.schema_id)
    if kept is None:
        return None
    return SchemaContract(kept.source, kept.catalog, contract.texts, state.schema_id)


def catch_up_files(texts: GraphTexts, coordinator: Coordinator) -> None:
    """Write the schema files of main as its manifest says, when a merge did not come to it.

    The caller holds the schema queue.
    """
    state = coordinator.fresh(MAIN)
    contract = load_contract(texts)
    if _matches(texts, contract, state):
        return
    found = _find_lagging(texts, contract, state)
    if found is not None:
        write_staging(texts, found.source, found.catalog)
        promote(texts)


def has_staging(texts: GraphTexts) -> bool:
    """Whether any staging file is there."""
    return any(texts.exists(staging_name(name)) for name in FILES)


def write_staging(texts: GraphTexts, source: str, catalog: Catalog) -> None:
    """Lay the next schema beside the present one; its state comes last."""
    contract = build_contract_texts(source, catalog)
    for name in FILES:
        texts.write_text(staging_name(name), contract[name])


def read_staged_hash(texts: GraphTexts) -> str | None:
    """The hash of a schema that is laid down in full and not moved yet, else None."""
    if not all(texts.exists(staging_name(name)) for name in FILES):
        return None
    return _read_hash(texts.read_text_if_exists(staging_name(STATE_FILE)))


def promote(texts: GraphTexts) -> None:
    """Move what is staged over the present schema. May be repeated from any point."""
    for name in FILES:
        if texts.exists(staging_name(name)):
            texts.rename_text(staging_name(name), name)
            hit(Failpoint.SCHEMA_APPLY_AFTER_FILE_PROMOTED)


def discard(texts: GraphTexts) -> None:
    """Remove what is staged, state first: without it nothing can be taken for complete."""
    for name in reversed(FILES):
        texts.delete(staging_name(name))


def reconcile_staging(texts: GraphTexts, coordinator: Coordinator) -> None:
    """Finish or undo staging files that no sidecar names. The caller holds the schema queue.

    Raises:
        ConflictError: Nothing says whether they were published. They stay, to be compared by hand.
    """
    if not has_staging(texts):
        return
    next_hash = _read_hash(texts.read_text_if_exists(staging_name(STATE_FILE)))
    if next_hash is None:
        discard(texts)  # never complete, so never published
        return
    if not texts.exists(staging_name(SOURCE_FILE)):
        # The source is moved already, which happens only after the publish.
        if source_hash(texts.read_text(SOURCE_FILE)) != next_hash:
            raise _ambiguity_error("the source that was moved is not the one they belong to")
        promote(texts)
        return
    live_hash = _read_hash(texts.read_text_if_exists(STATE_FILE))
    if next_hash == live_hash:
        discard(texts)
        return
    state = coordinator.fresh(MAIN)
    if state.schema_hash is not None:
        published = state.schema_hash == next_hash
    else:
        published = _is_published_by_tables(texts, state.entries)
    if published:
        promote(texts)
    else:
        discard(texts)


def _is_published_by_tables(texts: GraphTexts, shown: Iterable[str]) -> bool:
    """Decide from the tables alone, for a manifest that does not name its schema."""
    before = _read_table_keys(texts.read_text_if_exists(IR_FILE))
    after = _read_table_keys(texts.read_text_if_exists(staging_name(IR_FILE)))
    if before == after:
        raise _ambiguity_error("both schemas have the same tables")
    if set(shown) == after:
        return True
    if set(shown) == before:
        return False
    raise _ambiguity_error("the tables of the graph are those of neither schema")


def _read_table_keys(text: str | None) -> set[str]:
    try:
        return {entity.table_key for entity in catalog_from_json(text or "").entities()}
    except OmnigraphError as error:
        raise _ambiguity_error(error.message) from error


def _read_hash(text: str | None) -> str | None:
    try:
        found = json.loads(text or "")["schema_ir_hash"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _ambiguity_error(why: str) -> ConflictError:
    return ConflictError(
        f"a schema change was interrupted and {why} — compare `_schema.pg.staging` with "
        "`_schema.pg`, then remove the staging files or move them over the others"
    )
