"""Classify: what a crash left of one table, and what to do about the whole write.

Pure functions of numbers: no I/O, so the tables below can be tested cell by cell.

    pin    the version the manifest shows now          head     the table's latest version
    expected, post_commit_pin, confirmed               what the sidecar says
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import assert_never

from omnigraph.dataclass import dataclass
from omnigraph.write.sidecar import WriterKind

CONFIRMATION_FLOOR = 2
"""The first sidecar version whose BranchMerge confirms its tables. Fixed, whatever comes later."""


class Mode(StrEnum):
    """How much a moved HEAD proves.

    STRICT     the commits that the sidecar names, so HEAD must be exactly that far past the pin:
               one, but for a group
    LOOSE      derived or content-keeping changes, so any number of commits may be published
    CONFIRMED  several commits per table, complete only when the sidecar says so
    """

    STRICT = "strict"
    LOOSE = "loose"
    CONFIRMED = "confirmed"


def mode_of(
    kind: WriterKind, schema_version: int, *, is_main: bool = True, is_checked: bool = False
) -> Mode:
    """The mode that the writer of a sidecar was under, on main or on another branch."""
    if is_checked:
        return Mode.CONFIRMED
    match kind:
        case WriterKind.MUTATION | WriterKind.MUTATION_GROUP | WriterKind.LOAD:
            return Mode.STRICT
        case WriterKind.BRANCH_MERGE:
            # An older merge could not confirm. Taking that for "partial" would throw a finished
            # merge away, so it is believed; a partial one of that age looks the same.
            return Mode.CONFIRMED if schema_version >= CONFIRMATION_FLOOR else Mode.LOOSE
        case WriterKind.SCHEMA_APPLY if not is_main:
            return Mode.CONFIRMED  # on main its staged files say so
        case WriterKind.SCHEMA_APPLY | WriterKind.ENSURE_INDICES | WriterKind.OPTIMIZE:
            return Mode.LOOSE
        case _:
            assert_never(kind)


class TableClass(StrEnum):
    """What happened to one table."""

    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    NO_MOVEMENT = "NoMovement"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"
    INCOMPLETE_PHASE_B = "IncompletePhaseB"
    INVARIANT_VIOLATION = "InvariantViolation"


@dataclass(frozen=True, slots=True)
class Observation:
    """One table as recovery finds it. `is_ours` is None when nothing can prove whose HEAD it is.

    `steps` is how many commits the writer was about to make.
    """

    head: int
    pin: int
    expected: int
    post_commit_pin: int
    confirmed: int | None = None
    is_ours: bool | None = None
    steps: int = 1


def classify(mode: Mode, seen: Observation) -> TableClass:
    """The class of one table; the first matching line wins."""
    if seen.head < seen.pin:
        return TableClass.INVARIANT_VIOLATION
    if seen.head == seen.pin:
        return TableClass.NO_MOVEMENT
    if seen.is_ours is False:
        return _classify_unexpected(seen)
    match mode:
        case Mode.CONFIRMED:
            if seen.confirmed is None:
                return TableClass.INCOMPLETE_PHASE_B
            if seen.confirmed == seen.head and seen.expected == seen.pin:
                return TableClass.ROLLED_PAST_EXPECTED
            return TableClass.UNEXPECTED_MULTISTEP
        case Mode.STRICT:
            is_exact = seen.head == seen.pin + seen.steps == seen.post_commit_pin
            if is_exact and seen.expected == seen.pin:
                return TableClass.ROLLED_PAST_EXPECTED
            return _classify_unexpected(seen)
        case Mode.LOOSE:
            if seen.expected == seen.pin:
                return TableClass.ROLLED_PAST_EXPECTED
            return _classify_unexpected(seen)
        case _:
            assert_never(mode)


def _classify_unexpected(seen: Observation) -> TableClass:
    if seen.head == seen.pin + 1:
        return TableClass.UNEXPECTED_AT_P1
    return TableClass.UNEXPECTED_MULTISTEP


class Decision(StrEnum):
    """What to do with a whole write: all of its tables, the same way."""

    ROLL_FORWARD = "RollForward"
    ROLL_BACK = "RollBack"
    RECOVERED = "Recovered"
    ABORT = "Abort"


def decide(
    classes: Iterable[TableClass],
    *,
    has_advanced: bool,
    is_published: bool = False,
    is_stale: bool = False,
) -> Decision:
    """The decision for one sidecar.

    has_advanced   some pin is past what the sidecar expected: with no HEAD ahead of its pin, the
                   write was published, or undone, before, and only the records are missing
    is_published   the write is proved to be visible: a HEAD ahead of it is another writer's
    is_stale       what the write was checked against has changed since: publishing it now could
                   break a rule that it kept, such as an edge whose node is gone
    """
    seen = set(classes)
    if TableClass.INVARIANT_VIOLATION in seen:
        return Decision.ABORT
    if is_published:
        return Decision.RECOVERED
    if seen <= {TableClass.ROLLED_PAST_EXPECTED}:
        return Decision.ROLL_BACK if is_stale else Decision.ROLL_FORWARD
    if seen == {TableClass.NO_MOVEMENT} and has_advanced:
        return Decision.RECOVERED
    return Decision.ROLL_BACK
