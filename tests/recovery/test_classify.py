"""The rules of recovery, cell by cell: class of a table, decision for a write, mode of a writer."""

from __future__ import annotations

import itertools

import pytest

from omnigraph.write.classify import (
    CONFIRMATION_FLOOR,
    Decision,
    Mode,
    Observation,
    TableClass,
    classify,
    decide,
    mode_of,
)
from omnigraph.write.sidecar import SCHEMA_VERSION, WriterKind

PAST, STILL = TableClass.ROLLED_PAST_EXPECTED, TableClass.NO_MOVEMENT
AT_P1, MULTI = TableClass.UNEXPECTED_AT_P1, TableClass.UNEXPECTED_MULTISTEP
PARTIAL, BROKEN = TableClass.INCOMPLETE_PHASE_B, TableClass.INVARIANT_VIOLATION
STRICT, LOOSE, CONFIRMED = Mode.STRICT, Mode.LOOSE, Mode.CONFIRMED

# mode, head, pin, expected, post_commit_pin, confirmed, is_ours → class
ROWS: list[tuple[Mode, int, int, int, int, int | None, bool | None, TableClass]] = [
    *[(mode, 4, 5, 5, 6, None, None, BROKEN) for mode in Mode],
    *[(mode, 5, 5, 5, 6, None, None, STILL) for mode in Mode],
    *[(mode, 6, 6, 5, 6, 6, None, STILL) for mode in Mode],
    (CONFIRMED, 6, 5, 5, 6, 6, None, PAST),
    (CONFIRMED, 8, 5, 5, 6, 8, None, PAST),
    (CONFIRMED, 7, 5, 5, 6, 8, None, MULTI),
    (CONFIRMED, 9, 5, 5, 6, 8, None, MULTI),
    (CONFIRMED, 8, 6, 5, 6, 8, None, MULTI),
    (CONFIRMED, 6, 5, 5, 6, None, None, PARTIAL),
    (CONFIRMED, 8, 5, 5, 6, None, None, PARTIAL),
    (STRICT, 6, 5, 5, 6, None, None, PAST),
    (STRICT, 6, 5, 5, 6, None, True, PAST),
    (STRICT, 6, 5, 4, 5, None, None, AT_P1),
    (STRICT, 6, 5, 5, 7, None, None, AT_P1),
    (STRICT, 7, 5, 5, 6, None, None, MULTI),
    (STRICT, 7, 5, 5, 7, None, None, MULTI),
    (LOOSE, 6, 5, 5, 6, None, None, PAST),
    (LOOSE, 9, 5, 5, 6, None, None, PAST),
    (LOOSE, 6, 5, 4, 5, None, None, AT_P1),
    (LOOSE, 8, 5, 4, 5, None, None, MULTI),
    # A HEAD that its transaction proves to be another writer's is never published as ours.
    *[(mode, 6, 5, 5, 6, 6, False, AT_P1) for mode in Mode],
    *[(mode, 8, 5, 5, 6, 8, False, MULTI) for mode in Mode],
]


@pytest.mark.accepts("S-094", "S-095", "S-096")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(map(str, row)))
def test_a_table_has_the_class_that_the_rules_give_it(
    row: tuple[Mode, int, int, int, int, int | None, bool | None, TableClass],
) -> None:
    mode, head, pin, expected, post, confirmed, is_ours, wanted = row

    assert classify(mode, Observation(head, pin, expected, post, confirmed, is_ours)) is wanted


def test_every_class_occurs_in_the_table() -> None:
    assert {row[-1] for row in ROWS} == set(TableClass)


def first_match(mode: Mode, seen: Observation) -> TableClass:
    """The decision tree of the specification, line by line, written a second time."""
    h, p, e = seen.head, seen.pin, seen.expected
    lines: list[tuple[bool, TableClass]] = [
        (h < p, BROKEN),
        (h == p, STILL),
        (mode is CONFIRMED and seen.confirmed == h and e == p, PAST),
        (mode is CONFIRMED and seen.confirmed is not None, MULTI),
        (mode is CONFIRMED, PARTIAL),
        (mode is STRICT and h == p + 1 and e == p and seen.post_commit_pin == h, PAST),
        (mode is STRICT and h == p + 1, AT_P1),
        (mode is STRICT, MULTI),
        (e == p, PAST),
        (h == p + 1, AT_P1),
        (True, MULTI),
    ]
    return next(found for is_match, found in lines if is_match)


@pytest.mark.accepts("S-094", "S-095", "S-096")
def test_the_classifier_agrees_with_the_tree_on_every_small_history() -> None:
    numbers = range(1, 6)
    for mode, head, pin, expected, post, confirmed in itertools.product(
        Mode, numbers, numbers, numbers, numbers, [None, *numbers]
    ):
        seen = Observation(head, pin, expected, post, confirmed)
        assert classify(mode, seen) is first_match(mode, seen), (mode, seen)


@pytest.mark.accepts("S-097", "S-098", "S-099")
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_a_decision_is_for_the_whole_write(size: int) -> None:
    """Every combination of classes: one that is not rolled past undoes all of them."""
    for classes in itertools.product(TableClass, repeat=size):
        for has_advanced in (False, True):
            if BROKEN in classes:
                wanted = Decision.ABORT
            elif set(classes) <= {PAST}:
                wanted = Decision.ROLL_FORWARD
            elif set(classes) == {STILL} and has_advanced:
                wanted = Decision.RECOVERED
            else:
                wanted = Decision.ROLL_BACK
            assert decide(classes, has_advanced=has_advanced) is wanted, classes


def test_what_a_write_was_checked_against_must_still_hold() -> None:
    assert decide([PAST, PAST], has_advanced=False, is_stale=True) is Decision.ROLL_BACK
    assert decide([STILL], has_advanced=True, is_stale=True) is Decision.RECOVERED


def test_a_published_write_is_never_undone_for_what_came_after_it() -> None:
    for after in (PAST, AT_P1, MULTI, PARTIAL, STILL):
        assert decide([after, STILL], has_advanced=True, is_published=True) is Decision.RECOVERED
    assert decide([BROKEN], has_advanced=True, is_published=True) is Decision.ABORT


MODES = {
    WriterKind.MUTATION: {1: STRICT, 2: STRICT},
    WriterKind.MUTATION_GROUP: {1: STRICT, 2: STRICT},
    WriterKind.LOAD: {1: STRICT, 2: STRICT},
    WriterKind.BRANCH_MERGE: {1: LOOSE, 2: CONFIRMED},
    WriterKind.SCHEMA_APPLY: {1: LOOSE, 2: LOOSE},
    WriterKind.ENSURE_INDICES: {1: LOOSE, 2: LOOSE},
    WriterKind.OPTIMIZE: {1: LOOSE, 2: LOOSE},
}


@pytest.mark.accepts("S-133")
@pytest.mark.parametrize("kind", WriterKind)
def test_the_mode_of_a_writer_is_stated_for_every_version(kind: WriterKind) -> None:
    """A new kind of writer, or a new version of the rules, has no row here and fails."""
    found = {version: mode_of(kind, version) for version in range(1, SCHEMA_VERSION + 1)}

    assert found == MODES[kind]


@pytest.mark.accepts("S-129")
def test_the_confirmation_floor_is_fixed() -> None:
    assert (SCHEMA_VERSION, CONFIRMATION_FLOOR) == (2, 2)
    assert mode_of(WriterKind.BRANCH_MERGE, 9) is CONFIRMED
