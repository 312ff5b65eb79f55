"""Type changes: whether values of one type can become values of another, and what that takes.

safe        every value fits: I32 → I64, F32 → F64, T → T?, an enum with more words, enum → String
validated   those that fit stay what they are: I64 → I32, T? → T, an enum with fewer words
(none)      no value fits by itself: a list, a Vector, a Blob, a date out of a text
"""

from __future__ import annotations

from enum import StrEnum

from omnigraph.types import PropertyType, Scalar

_WIDER: dict[Scalar, frozenset[Scalar]] = {
    Scalar.I32: frozenset({Scalar.I64, Scalar.F64}),
    Scalar.U32: frozenset({Scalar.I64, Scalar.U64, Scalar.F64}),
    Scalar.F32: frozenset({Scalar.F64}),
}


class Tier(StrEnum):
    """What a change of the schema asks of the rows that exist."""

    SAFE = "safe"
    VALIDATED = "validated"


def judge_change(before: PropertyType, after: PropertyType) -> Tier | None:
    """Whether all, some or no values of `before` are values of `after`."""
    kept = _judge_values(before, after)
    if kept is Tier.SAFE and before.nullable and not after.nullable:
        return Tier.VALIDATED
    return kept


def _judge_values(before: PropertyType, after: PropertyType) -> Tier | None:
    if before.is_list != after.is_list or before.dimension != after.dimension:
        return None
    if before.scalar is after.scalar:
        return _judge_words(before.variants, after.variants)
    if before.is_list or not (before.is_numeric and after.is_numeric):
        return None
    return Tier.SAFE if after.scalar in _WIDER.get(before.scalar, ()) else Tier.VALIDATED


def _judge_words(before: tuple[str, ...] | None, after: tuple[str, ...] | None) -> Tier:
    if after is None or (before is not None and set(before) <= set(after)):
        return Tier.SAFE
    return Tier.VALIDATED
