"""Sidecar files: the intent of a write is made durable before the write has any effect.

Invariant: no HEAD moves before `__recovery/{operation_id}.json` names the table, the version it
stands at and the transaction that will move it. Recovery decides from this file alone. A file
that is damaged or far too large is refused and stays.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from omnigraph.errors import InvariantViolated, OmnigraphError, RecoveryRequired
from omnigraph.failpoints import Failpoint, hit
from omnigraph.storage.graph_texts import GraphTexts
from omnigraph.write.sidecar import (
    DIRECTORY,
    Sidecar,
    checksum_of,
    sidecar_from_json,
    sidecar_path,
    sidecar_to_json,
)

_live: set[str] = set()

BYTES_MAX = 16 * 1024 * 1024
"""No sidecar of ours comes near this: a table takes a few hundred bytes."""


@contextmanager
def alive(operation_id: str) -> Iterator[None]:
    """Held by the writer of a sidecar, so that others of this process know that it is at work."""
    _live.add(operation_id)
    try:
        yield
    finally:
        _live.discard(operation_id)


def is_alive(operation_id: str) -> bool:
    """Whether the writer of a sidecar is at work in this process."""
    return operation_id in _live


def write_sidecar(store: GraphTexts, sidecar: Sidecar, staged: Collection[str] = ()) -> None:
    """Phase A: make the intent durable, and before it the files `staged` that are not yet.

    A failure here leaves nothing to recover.
    """
    hit(Failpoint.RECOVERY_SIDECAR_WRITE)
    path = sidecar_path(sidecar.operation_id)
    try:
        store.write_text(path, sidecar_to_json(sidecar), after=staged)
    except OmnigraphError:
        # The file may be there all the same. No HEAD has moved, so it may go.
        with suppress(OmnigraphError):
            store.delete(path)
        raise
    hit(Failpoint.COMMIT_AFTER_SIDECAR)


def confirm_sidecar(store: GraphTexts, sidecar: Sidecar, achieved: Mapping[str, int]) -> Sidecar:
    """Phase B is complete: write down the version that each table has reached.

    Replaces the file as a whole, so a reader finds it confirmed in full or not at all.

    Raises:
        InvariantViolated: A pinned table has no achieved version. The file is left as it was.
    """
    missing = [f"'{pin.table_key}'" for pin in sidecar.pins if pin.table_key not in achieved]
    if missing:
        raise InvariantViolated(
            f"sidecar {sidecar.operation_id} cannot be confirmed: no version was achieved for "
            f"{', '.join(missing)}"
        )
    hit(Failpoint.RECOVERY_SIDECAR_CONFIRM)
    pins = (replace(pin, confirmed_version=achieved[pin.table_key]) for pin in sidecar.pins)
    confirmed = replace(sidecar, pins=tuple(pins), is_confirmed=True)
    store.write_text(sidecar_path(sidecar.operation_id), sidecar_to_json(confirmed))
    return confirmed


def withdraw_confirmation(store: GraphTexts, sidecar: Sidecar) -> None:
    """The write will be undone: from here on no recovery takes it for complete."""
    pins = (replace(pin, confirmed_version=None) for pin in sidecar.pins)
    undone = replace(sidecar, pins=tuple(pins), is_confirmed=False)
    store.write_text(sidecar_path(sidecar.operation_id), sidecar_to_json(undone))


def delete_sidecar(store: GraphTexts, operation_id: str) -> None:
    """Phase D: the write is published, the intent is history.

    Recovery finds one that a power cut brings back published as well.
    """
    hit(Failpoint.RECOVERY_SIDECAR_DELETE)
    store.delete(sidecar_path(operation_id), is_lasting=False)
    hit(Failpoint.RECOVERY_AFTER_SIDECAR_DELETE)


def list_sidecars(store: GraphTexts) -> list[str]:
    """Operation ids of every sidecar there is, oldest first. A failed listing is loud."""
    hit(Failpoint.RECOVERY_SIDECAR_LIST)
    return sorted(
        name.removesuffix(".json") for name in store.list_dir(DIRECTORY) if name.endswith(".json")
    )


def read_sidecar_if_exists(store: GraphTexts, operation_id: str) -> Sidecar | None:
    """Read a sidecar, or None when its writer has deleted it meanwhile."""
    text = store.read_text_if_exists(sidecar_path(operation_id), bytes_max=BYTES_MAX)
    return None if text is None else sidecar_from_json(text, operation_id)


def relocate_sidecars(store: GraphTexts, former: Collection[str], root: str) -> None:
    """Point the sidecars of a graph that lay at one of `former` to where it lies now.

    One that names any other place, or is damaged, stays as it is: recovery refuses it.
    """
    for operation_id in list_sidecars(store):
        path = sidecar_path(operation_id)
        text = store.read_text_if_exists(path, bytes_max=BYTES_MAX)
        moved = None if text is None else _relocate(text, operation_id, former, root)
        if moved is not None:
            store.write_text(path, moved)


def _relocate(text: str, operation_id: str, former: Collection[str], root: str) -> str | None:
    try:
        sidecar_from_json(text, operation_id)
    except RecoveryRequired:
        return None
    body = json.loads(text)
    has_checksum = body.pop("checksum", None) is not None
    for table in body["tables"]:
        old = next((each for each in former if table["table_path"].startswith(f"{each}/")), None)
        if old is None:
            return None
        table["table_path"] = root + table["table_path"].removeprefix(old)
    # As it was written: other fields may be of a writer that knows more.
    return json.dumps({**body, "checksum": checksum_of(body)} if has_checksum else body, indent=2)
