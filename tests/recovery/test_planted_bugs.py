"""The checks can fail: each bug that is planted in the protocol is caught, and by what is named.

A check that stays green over a broken protocol proves nothing. Each plant here is a mistake that
a developer could make; beside it stands the invariant, or the test, that goes red.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from omnigraph.errors import OmnigraphError, RecoveryRequired, StorageError
from omnigraph.failpoints import Failpoint, FailpointError, arm_failpoints, hit
from omnigraph.graph import Graph
from omnigraph.manifest import MAIN, Publish, publish
from omnigraph.storage.location import TableLocation
from omnigraph.storage.tables import TableStorage
from omnigraph.testing.inside import inside
from omnigraph.write import evidence, intent, protocol, recovery, recovery_actions, sidecar
from omnigraph.write import sidecar_files as store
from omnigraph.write.audit import RecoveryKind, record_recovery
from omnigraph.write.classify import Decision, Mode, TableClass
from omnigraph.write.environment import WriteEnvironment
from omnigraph.write.pins import version_to_pin
from omnigraph.write.recovery_actions import RecoveryActions
from tests.depth import cover, sample
from tests.recovery import fault_work, work
from tests.recovery import test_failures as failures
from tests.recovery import test_faults as faults
from tests.recovery import test_sidecars as sidecars
from tests.recovery.staging import new_graph, reopen, sidecar_files

RECOVER = "omnigraph.graph.session.recover_all"

pytestmark = pytest.mark.slow

Patch: TypeAlias = pytest.MonkeyPatch
Plant: TypeAlias = Callable[[Patch, Graph], None]

PARTIAL = (Failpoint.COMMIT_AFTER_TABLE, 1)
COMPLETE = (Failpoint.MUTATION_POST_FINALIZE_PRE_PUBLISHER, 1)


# The protocol, broken


def skip_the_sidecar(patch: Patch, _: Graph) -> None:
    patch.setattr(protocol, "write_sidecar", lambda *_: hit(Failpoint.COMMIT_AFTER_SIDECAR))


def write_the_sidecar_after_a_commit(patch: Patch, _: Graph) -> None:
    late: list[tuple[Any, ...]] = []
    patch.setattr(protocol, "write_sidecar", lambda *intent: late.append(intent))
    real = TableStorage.commit_staged

    def commit_first(self: TableStorage, *args: Any, **options: Any) -> Any:
        committed = real(self, *args, **options)
        while late:
            store.write_sidecar(*late.pop())
        return committed

    patch.setattr(TableStorage, "commit_staged", commit_first)


def publish_each_table_as_it_is_committed(patch: Patch, graph: Graph) -> None:
    real = TableStorage.commit_staged

    def commit_and_publish(self: TableStorage, *args: Any, **options: Any) -> Any:
        committed = real(self, *args, **options)
        for key, entry in graph.snapshot().entries.items():
            if self.root.child(entry.table_path) == committed.location.uri:
                pin = version_to_pin(key, committed)
                publish(inside(graph).coordinator, Publish(MAIN, (pin,)))
        return committed

    patch.setattr(TableStorage, "commit_staged", commit_and_publish)


def delete_the_sidecar_before_the_publish(patch: Patch, graph: Graph) -> None:
    def early(*args: Any) -> Any:
        for path in sidecar_files(graph):
            path.unlink()
        return publish(*args)

    patch.setattr(protocol, "publish", early)


def leave_a_table_out_of_the_sidecar(patch: Patch, _: Graph) -> None:
    real = intent.build_sidecar
    patch.setattr(
        protocol, "build_sidecar", lambda *a: (s := real(*a)) and replace(s, pins=s.pins[:-1])
    )


def overlook_a_table(patch: Patch, _: Graph) -> None:
    patch.setattr(recovery, "inspect_tables", lambda *a: evidence.inspect_tables(*a)[1:])


def audit_twice(patch: Patch, _: Graph) -> None:
    def twice(audit: Any, record: Any) -> None:
        record_recovery(audit, record)
        record_recovery(audit, replace(record, operation_id=f"{record.operation_id}'"))

    patch.setattr(recovery_actions, "record_recovery", twice)


def do_not_audit(patch: Patch, _: Graph) -> None:
    patch.setattr(recovery_actions, "record_recovery", lambda *_: None)


def restore_without_a_publish(patch: Patch, _: Graph) -> None:
    patch.setattr(RecoveryActions, "_publish", lambda *_, **__: None)


def publish_without_a_restore(patch: Patch, _: Graph) -> None:
    patch.setattr(TableStorage, "restore", lambda self, place, *_, **__: self.head_version(place))


def restore_the_version_before_the_pin(patch: Patch, _: Graph) -> None:
    real = TableStorage.restore
    patch.setattr(TableStorage, "restore", lambda s, p, v, **o: real(s, p, v - 1, **o))


def keep_the_sidecar(patch: Patch, _: Graph) -> None:
    for module in (recovery, recovery_actions):
        patch.setattr(module, "delete_sidecar", lambda *_: None)


def drop_the_sidecar_unread(patch: Patch, graph: Graph) -> None:
    def drop(*_: Any, **__: Any) -> int:
        for path in sidecar_files(graph):
            path.unlink()
        return 1

    patch.setattr(RECOVER, drop)


def decide_by_any_table(patch: Patch, _: Graph) -> None:
    def lenient(classes: Any, **_: Any) -> Decision:
        moved = TableClass.ROLLED_PAST_EXPECTED in set(classes)
        return Decision.ROLL_FORWARD if moved else Decision.ROLL_BACK

    patch.setattr(recovery, "decide", lenient)


def always_roll_back(patch: Patch, _: Graph) -> None:
    patch.setattr(recovery, "decide", lambda *_, **__: Decision.ROLL_BACK)


def skip_recovery(patch: Patch, _: Graph) -> None:
    for place in (RECOVER, "omnigraph.write.recovery.recover_all"):
        patch.setattr(place, lambda *_, **__: 0)


def acknowledge_before_the_publish(patch: Patch, graph: Graph) -> None:
    patch.setattr(protocol, "publish", lambda *_: inside(graph).coordinator.fresh(MAIN))


# plant, where the writer stops (None: it is acknowledged), tables, the invariant that is broken
PROTOCOL: list[tuple[Plant, tuple[Failpoint, int] | None, int, str]] = [
    (skip_the_sidecar, PARTIAL, 2, "every pin is its HEAD"),
    (
        write_the_sidecar_after_a_commit,
        (Failpoint.RECOVERY_SIDECAR_WRITE, 1),
        2,
        "every pin is its HEAD",
    ),
    (publish_each_table_as_it_is_committed, PARTIAL, 2, "all tables old, or all new"),
    (
        delete_the_sidecar_before_the_publish,
        (Failpoint.GRAPH_PUBLISH_BEFORE_MANIFEST_COMMIT, 1),
        2,
        "every pin is its HEAD",
    ),
    (leave_a_table_out_of_the_sidecar, COMPLETE, 2, "all tables old, or all new"),
    (overlook_a_table, COMPLETE, 2, "all tables old, or all new"),
    (overlook_a_table, (Failpoint.COMMIT_AFTER_TABLE, 2), 5, "every pin is its HEAD"),
    (audit_twice, PARTIAL, 2, "one audit row"),
    (do_not_audit, COMPLETE, 2, "one audit row"),
    (restore_without_a_publish, PARTIAL, 2, "every pin is its HEAD"),
    (publish_without_a_restore, PARTIAL, 2, "all tables old, or all new"),
    (restore_the_version_before_the_pin, PARTIAL, 2, "all tables old, or all new"),
    (keep_the_sidecar, PARTIAL, 2, "no sidecar is left"),
    (drop_the_sidecar_unread, PARTIAL, 2, "every pin is its HEAD"),
    (decide_by_any_table, PARTIAL, 2, "the graph opens"),
    (always_roll_back, COMPLETE, 2, "the outcome that its point requires"),
    (skip_recovery, PARTIAL, 2, "the next write succeeds at once"),
    (acknowledge_before_the_publish, None, 2, "no acknowledged write is lost"),
]


def broken_invariants(
    graph: Graph, old: Any, new: Any, *, is_forward: bool, was_acked: bool
) -> set[str]:
    """Every invariant that does not hold of a graph after its writer stopped."""
    try:
        recovered = reopen(graph)
        found = work.inspect(graph.uri)
    except OmnigraphError:
        return {"the graph opens"}
    first = found["first"]
    wanted = new if is_forward else old
    holds = {
        "all tables old, or all new": found["rows"] in (old, new),
        "the outcome that its point requires": found["rows"] == wanted,
        "no acknowledged write is lost": not was_acked or found["rows"] == new,
        "every pin is its HEAD": first["pins"] == first["heads"],
        "no sidecar is left": first["sidecars"] == [],
        "one audit row": len(recovered.recoveries()) == (0 if was_acked else 1),
        "a second open changes nothing": found["second"] == first,
        "the next write succeeds at once": found["next write"] == {},
        "verify has nothing to say": found["verify"] == "",
    }
    return {name for name, is_kept in holds.items() if not is_kept}


def after_stopping(
    tmp_path: Path, plant: Plant | None, stop: tuple[Failpoint, int] | None, count: int
) -> set[str]:
    whole = new_graph(tmp_path / "whole")
    old = work.rows_of(whole)
    work.WRITERS["insert"](whole, count)
    new = work.rows_of(whole)
    graph = new_graph(tmp_path / "graph")
    with pytest.MonkeyPatch.context() as patch:
        if plant is not None:
            plant(patch, graph)
        point, nth = stop or (Failpoint.INIT_AFTER_TABLE, 1)
        with arm_failpoints({point: f"raise@{nth}"}), suppress(FailpointError):
            work.WRITERS["insert"](graph, count)
        is_forward = stop in (None, COMPLETE)
        return broken_invariants(graph, old, new, is_forward=is_forward, was_acked=stop is None)


PLANTS = {f"{row[0].__name__} over {row[2]} tables": row for row in PROTOCOL}


def invariants_of(name: str) -> set[Hashable]:
    return {PLANTS[name][3]}


RUN_PLANTS = cover(PLANTS, invariants_of)


@pytest.mark.parametrize("name", RUN_PLANTS)
def test_a_planted_protocol_bug_breaks_a_named_invariant(tmp_path: Path, name: str) -> None:
    plant, stop, count, invariant = PLANTS[name]

    assert invariant in after_stopping(tmp_path, plant, stop, count)


@pytest.mark.parametrize("stop", [PARTIAL, COMPLETE, None])
def test_without_a_plant_every_invariant_holds(
    tmp_path: Path, stop: tuple[Failpoint, int] | None
) -> None:
    assert after_stopping(tmp_path, None, stop, 2) == set()


# Bugs that one test is there to catch


def publish_the_head_as_it_is_now(patch: Patch) -> None:
    real = RecoveryActions._pin_at
    patch.setattr(
        RecoveryActions,
        "_pin_at",
        lambda self, each, _: real(self, each, self.environment.tables.head_version(each.location)),
    )


def do_not_ask_whose_a_version_is(patch: Patch) -> None:
    patch.setattr(evidence, "_is_ours", lambda *_: None)


def take_no_queue(patch: Patch) -> None:
    patch.setattr(recovery, "list_queues", lambda *_: [])


def restore_at_entry(patch: Patch) -> None:
    real = recovery.recover_all
    patch.setattr(RECOVER, lambda *a, **o: real(*a, **{**o, "full": True}))


def never_undo_at_entry(patch: Patch) -> None:
    patch.setattr(WriteEnvironment, "has_system_locks", property(lambda _: False))


def never_recover_at_entry(patch: Patch) -> None:
    real = recovery.recover_all
    for place in (RECOVER, "omnigraph.write.recovery.recover_all"):
        patch.setattr(place, lambda *a, **o: real(*a, **o) if o["full"] else 0)


def do_not_undo_in_place(patch: Patch) -> None:
    patch.setattr(protocol, "undo", lambda *_: None)


def believe_every_failure(patch: Patch) -> None:
    patch.setattr(protocol, "has_commit", lambda *_: False)


def keep_the_schema_until_the_tables_are_restored(patch: Patch) -> None:
    patch.setattr(recovery, "discard", lambda _: None)


def undo_after_a_crash(patch: Patch) -> None:
    patch.setattr(protocol, "FailpointError", ZeroDivisionError)


def meet_a_dead_writer_once(patch: Patch) -> None:
    patch.setattr("omnigraph.write.commit.retry_after_recovery", lambda _, __, work: work())


def believe_an_unconfirmed_merge(patch: Patch) -> None:
    patch.setattr(evidence, "mode_of", lambda *_: Mode.LOOSE)


def believe_any_version(patch: Patch) -> None:
    patch.setattr(sidecar, "SCHEMA_VERSION", 99)


def trust_the_paths(patch: Patch) -> None:
    patch.setattr(
        evidence,
        "_own_location",
        lambda tables, state, sidecar, pin: TableLocation(pin.table_path, pin.table_branch),
    )


def skip_a_failed_listing(patch: Patch) -> None:
    def quiet(texts: Any) -> list[str]:
        try:
            return store.list_sidecars(texts)
        except StorageError:
            return []

    patch.setattr(recovery, "list_sidecars", quiet)


def skip_a_damaged_sidecar(patch: Patch) -> None:
    def quiet(*args: Any) -> Any:
        try:
            return store.read_sidecar_if_exists(*args)
        except RecoveryRequired:
            return None

    patch.setattr(recovery, "read_sidecar_if_exists", quiet)


def forget(patch: Patch, **fields: Any) -> None:
    def forgetful(*args: Any) -> Any:
        found = store.read_sidecar_if_exists(*args)
        return None if found is None else replace(found, **fields)

    patch.setattr(recovery, "read_sidecar_if_exists", forgetful)


def forget_what_was_read(patch: Patch) -> None:
    forget(patch, read_versions={})


def forget_the_condition(patch: Patch) -> None:
    forget(patch, if_commit=None)


def forget_which_branch_it_was(patch: Patch) -> None:
    forget(patch, branch_id=None)


def judge_by_the_pins_of_main(patch: Patch) -> None:
    patch.setattr(recovery, "_state_of", lambda env, _: env.coordinator.fresh(MAIN))


def label_by_the_pin_alone(patch: Patch) -> None:
    patch.setattr(
        evidence,
        "_prove",
        lambda tables, place, pin, shown: (
            RecoveryKind.ROLLED_FORWARD if shown > pin.expected_version else None
        ),
    )


def prove_nothing(patch: Patch) -> None:
    patch.setattr(evidence, "_prove", lambda *_: None)


def lose_the_commit_of_the_writer(patch: Patch) -> None:
    patch.setattr(RecoveryActions, "_original_commits", lambda *_: ())


def audit_before_everything(patch: Patch) -> None:
    real = RecoveryActions._publish

    def audit_first(*args: Any, **options: Any) -> None:
        hit(Failpoint.RECOVERY_SIDECAR_DELETE)
        real(*args, **options)

    patch.setattr(RecoveryActions, "_publish", audit_first)


def sum_nothing_up(patch: Patch) -> None:
    patch.setattr(sidecar, "checksum_of", lambda _: "")


def read_whatever_its_size(patch: Patch) -> None:
    patch.setattr(store, "BYTES_MAX", None)


def leave_a_failed_sidecar(patch: Patch) -> None:
    def plain(texts: Any, intent: Any) -> None:
        path = sidecar.sidecar_path(intent.operation_id)
        texts.write_text(path, sidecar.sidecar_to_json(intent))

    patch.setattr(protocol, "write_sidecar", plain)


def on(template: str, test: Callable[..., None], *arguments: Any) -> Callable[[Path, Patch], None]:
    def run(tmp_path: Path, patch: Patch) -> None:
        test(new_graph(tmp_path / "graph", template), *arguments)

    run.__name__ = test.__name__
    return run


def at(test: Callable[..., None], *arguments: Any) -> Callable[[Path, Patch], None]:
    def run(tmp_path: Path, patch: Patch) -> None:
        test(tmp_path, *arguments)

    run.__name__ = test.__name__
    return run


def patched(test: Callable[..., None], *arguments: Any) -> Callable[[Path, Patch], None]:
    def run(tmp_path: Path, patch: Patch) -> None:
        test(new_graph(tmp_path / "graph"), *arguments, patch)

    run.__name__ = test.__name__
    return run


def failing(test: Callable[..., None], writer: str, *more: Any) -> Callable[[Path, Patch], None]:
    def run(tmp_path: Path, patch: Patch) -> None:
        def start(name: str) -> Graph:
            fault_work.build(str(tmp_path / "graph"), name)
            return work.open_graph(str(tmp_path / "graph"), self_care=False)

        test(start, *([writer] if writer else []), *more)

    run.__name__ = test.__name__
    return run


def waiting(tmp_path: Path, patch: Patch) -> None:
    def start(_: str) -> Graph:
        return new_graph(tmp_path / "graph")

    failures.test_a_writer_that_dies_while_another_waits_is_undone_by_the_one_that_waited(
        start, tmp_path, patch
    )


POST_FINALIZE = COMPLETE[0]
TESTS: list[tuple[Callable[[Patch], None], Callable[[Path, Patch], None]]] = [
    (
        publish_the_head_as_it_is_now,
        on("plain", faults.test_what_was_classified_is_what_is_published),
    ),
    (
        do_not_ask_whose_a_version_is,
        on("plain", faults.test_a_foreign_commit_is_not_published_as_the_dead_writers),
    ),
    (
        take_no_queue,
        on(
            "plain",
            faults.test_a_live_writer_is_waited_for_and_never_robbed,
            POST_FINALIZE,
            "refresh",
        ),
    ),
    (
        restore_at_entry,
        patched(
            faults.test_without_locks_of_the_system_what_needs_a_restore_waits_for_an_open,
            "refresh",
        ),
    ),
    (
        never_undo_at_entry,
        on("plain", faults.test_a_live_handle_undoes_a_write_that_cannot_be_finished, "refresh"),
    ),
    (
        never_recover_at_entry,
        on(
            "plain",
            faults.test_a_live_handle_finishes_a_write_that_only_lacks_its_publish,
            "mutate",
        ),
    ),
    (
        do_not_undo_in_place,
        failing(
            failures.test_a_publish_that_fails_is_undone_before_the_caller_hears_of_it, "merge"
        ),
    ),
    (
        believe_every_failure,
        failing(
            failures.test_a_publish_that_fails_after_it_took_effect_is_a_success, "apply schema"
        ),
    ),
    (
        keep_the_schema_until_the_tables_are_restored,
        failing(
            failures.test_a_crash_in_the_middle_of_an_undo_never_finishes_the_write,
            "apply schema",
            Failpoint.RECOVERY_AFTER_RESTORE,
        ),
    ),
    (undo_after_a_crash, on("plain", faults.test_a_sidecar_goes_last, POST_FINALIZE)),
    (meet_a_dead_writer_once, waiting),
    (
        believe_an_unconfirmed_merge,
        on(
            "plain",
            sidecars.test_an_unconfirmed_merge_of_version_2_rolls_back,
            ["node:Person", "edge:Knows"],
        ),
    ),
    (
        believe_any_version,
        on("plain", sidecars.test_a_sidecar_from_the_future_is_refused_with_both_versions),
    ),
    (trust_the_paths, at(sidecars.test_a_sidecar_of_another_graph_touches_nothing)),
    (trust_the_paths, at(sidecars.test_a_copy_still_refuses_a_sidecar_of_a_third_graph)),
    (skip_a_failed_listing, on("plain", faults.test_a_listing_that_fails_is_loud_everywhere)),
    (
        skip_a_damaged_sidecar,
        on("plain", sidecars.test_a_damaged_sidecar_is_refused_by_name_and_kept, "empty"),
    ),
    (forget_what_was_read, patched(faults.test_an_edge_is_not_finished_once_its_node_is_gone)),
    (
        forget_the_condition,
        patched(faults.test_a_conditional_write_is_not_finished_on_another_head),
    ),
    (
        forget_which_branch_it_was,
        at(faults.test_a_branch_of_the_same_name_does_not_inherit_a_dead_write, POST_FINALIZE),
    ),
    (judge_by_the_pins_of_main, at(faults.test_a_branch_is_recovered_by_its_own_pins, "forked")),
    (label_by_the_pin_alone, patched(faults.test_a_write_that_never_began_is_not_called_done)),
    (
        prove_nothing,
        patched(faults.test_an_acknowledged_write_is_not_called_undone_for_a_later_death),
    ),
    (
        lose_the_commit_of_the_writer,
        on("plain", faults.test_a_rolled_forward_write_is_one_publish_with_its_own_commit),
    ),
    (audit_before_everything, on("plain", faults.test_a_sidecar_goes_last, POST_FINALIZE)),
    (
        sum_nothing_up,
        on("plain", sidecars.test_a_sidecar_with_a_flipped_bit_never_means_something_else),
    ),
    (
        read_whatever_its_size,
        on("plain", sidecars.test_a_huge_sidecar_is_refused_without_being_read),
    ),
    (leave_a_failed_sidecar, patched(faults.test_a_sidecar_whose_write_failed_late_is_taken_back)),
]

RED = (AssertionError, ValueError, OmnigraphError, pytest.fail.Exception)


@pytest.mark.parametrize(("plant", "test"), sample(TESTS, 4), ids=lambda each: each.__name__)
def test_a_planted_bug_turns_its_test_red(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[Patch], None],
    test: Callable[[Path, Patch], None],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)

        with pytest.raises(RED):
            test(tmp_path, monkeypatch)


def test_there_are_as_many_plants_as_promised() -> None:
    plants = {row[0].__name__ for row in PROTOCOL} | {plant.__name__ for plant, _ in TESTS}

    assert len(plants) >= 20
