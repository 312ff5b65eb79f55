"""`repair` adopts table versions that were committed outside Omnigraph and verify as safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequestError, ConflictError, InvariantViolated
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints
from omnigraph.storage.handles import TransactionInfo
from omnigraph.testing.inside import inside
from omnigraph.upkeep.repair import Action, Drift, action_for, classify_drift, repair
from tests.upkeep.graphs import dataset, fill, heads, pins, reopen, rows, sidecars


def found(report: Any, key: str) -> tuple[str, str, tuple[str, ...]]:
    row = next(row for row in report.tables if row.table_key == key)
    return row.classification.value, row.action.value, row.operations


@pytest.mark.parametrize(
    ("drift", "preview", "confirmed", "forced"),
    [
        (Drift.NONE, Action.NO_OP, Action.NO_OP, Action.NO_OP),
        (Drift.MAINTENANCE, Action.PREVIEW, Action.HEALED, Action.HEALED),
        (Drift.SUSPICIOUS, Action.PREVIEW, Action.REFUSED, Action.FORCED),
        (Drift.UNVERIFIABLE, Action.PREVIEW, Action.REFUSED, Action.FORCED),
    ],
)
def test_the_table_of_actions(
    drift: Drift, preview: Action, confirmed: Action, forced: Action
) -> None:
    assert action_for(drift, confirm=False, force=False) is preview
    assert action_for(drift, confirm=True, force=False) is confirmed
    assert action_for(drift, confirm=True, force=True) is forced


@pytest.mark.parametrize(
    ("names", "drift"),
    [
        ([], Drift.NONE),
        (["Rewrite"], Drift.MAINTENANCE),
        (["BaseOperation", "Rewrite"], Drift.MAINTENANCE),
        (["BaseOperation"], Drift.SUSPICIOUS),
        (["BaseOperation", "Append"], Drift.SUSPICIOUS),
        (["Rewrite", "Append"], Drift.SUSPICIOUS),
        (["CreateIndex"], Drift.SUSPICIOUS),
        (["Rewrite", None], Drift.UNVERIFIABLE),
    ],
)
def test_transactions_past_the_pin_are_classified(names: list[str | None], drift: Drift) -> None:
    assert classify_drift([TransactionInfo("u", name, {}) for name in names]) is drift


def test_a_missing_transaction_is_unverifiable() -> None:
    assert classify_drift([None]) is Drift.UNVERIFIABLE


def test_a_foreign_compaction_is_healed(library: og.Graph) -> None:
    for start in (100, 200):
        fill(library, start, 2)
    dataset(library, "node:Paper").optimize.compact_files()
    before, pinned = rows(library, "node:Paper"), pins(library)

    preview = library.repair()
    assert found(preview, "node:Paper")[:2] == ("verified_maintenance", "preview")
    assert found(preview, "node:Author") == ("no_drift", "no_op", ())
    assert pins(library) == pinned

    report = library.repair(confirm=True)
    assert found(report, "node:Paper") == (
        "verified_maintenance", "healed", ("ReserveFragments", "Rewrite"),
    )  # fmt: skip
    assert not report.has_refusals
    assert heads(library) == pins(library)
    assert rows(library, "node:Paper") == before
    assert library.commits()[0].actor == "omnigraph:repair"
    fill(library, 300, 2)
    assert library.verify().errors == ()


def test_a_foreign_delete_is_refused_and_can_be_forced(library: og.Graph) -> None:
    dataset(library, "node:Author").delete("slug = 'a001'")
    dataset(library, "edge:Wrote").delete("src = 'a001'")

    report = library.repair(confirm=True)
    assert found(report, "node:Author") == ("suspicious", "refused", ("Delete",))
    assert report.has_refusals
    assert len(rows(library, "node:Author")) == 12

    report = library.repair(confirm=True, force=True)
    assert found(report, "node:Author")[1] == "forced"
    assert len(rows(library, "node:Author")) == 11
    assert library.commits()[0].actor == "omnigraph:repair:force"
    assert reopen(library).verify().errors == ()


def test_force_needs_confirm(library: og.Graph) -> None:
    with pytest.raises(BadRequestError, match="confirm"):
        library.repair(force=True)


@pytest.mark.accepts("S-121")
def test_it_refuses_while_a_sidecar_is_pending(library: og.Graph) -> None:
    with arm_failpoints({Failpoint.COMMIT_AFTER_TABLE: "raise"}), pytest.raises(FailpointError):
        fill(library, 100)

    for confirm, force in ((False, False), (True, False), (True, True)):
        with pytest.raises(ConflictError, match="repair cannot run while"):
            repair(inside(library).environment(), confirm=confirm, force=force)

    assert len(sidecars(library)) == 1
    assert {row.action for row in library.repair().tables} == {"no_op"}  # it recovers it first


def test_a_head_behind_its_pin_is_damage(library: og.Graph) -> None:
    entry = library.snapshot().entries["node:Paper"]
    name = f"{2**64 - 1 - entry.version:020d}.manifest"
    (Path(library.uri) / entry.table_path / "_versions" / name).unlink()

    with pytest.raises(InvariantViolated, match="restore them from a backup"):
        library.repair()
