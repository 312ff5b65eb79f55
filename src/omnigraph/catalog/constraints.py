"""Constraints: `@key`, `@unique`, `@index`, `@range` and `@check` of one type, in canonical form.

An annotation such as `slug: String @key` is the body constraint `@key(slug)` in other words; both
ways go through the same checks, and what was written twice is kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Final, TypeAlias

from omnigraph.catalog.annotations import PropertyDraft
from omnigraph.catalog.model import EDGE_ENDS, Check, Range, TypeKind
from omnigraph.catalog.patterns import compile_pattern
from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError, did_you_mean
from omnigraph.source_text import NO_SPAN, Span
from omnigraph.syntax.schema_tree import ConstraintDecl, ConstraintName, Identifier, RangeBound
from omnigraph.types import PropertyType

Members: TypeAlias = tuple[str, ...]

CONSTRAINTS: Final[Mapping[ConstraintName, tuple[str, str]]] = {
    "key": ("@key(a, b)", "The values together identify the row."),
    "unique": ("@unique(a, b)", "No two rows share all values."),
    "index": ("@index(a, b)", "Makes look-ups by them fast."),
    "range": ("@range(p, low..high)", "A number within the bounds, both included."),
    "check": ('@check(p, "pattern")', "A String in which the pattern is found."),
}
"""How each constraint is written in the braces of a type, and what it asks."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Every constraint of one type. Members are in name order, constraints in member order."""

    key: Members | None = None
    uniques: tuple[Members, ...] = ()
    indexes: tuple[Members, ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(slots=True)
class _Reader:
    """Checks the constraints of one type one by one and gathers them."""

    kind: TypeKind
    owner: str
    properties: Mapping[str, PropertyDraft]
    keys: list[Members] = field(default_factory=list)
    uniques: set[Members] = field(default_factory=set)
    indexes: set[Members] = field(default_factory=set)
    ranges: dict[tuple[str, str], Range] = field(default_factory=dict)
    checks: set[tuple[str, str]] = field(default_factory=set)

    def read(self, constraint: ConstraintDecl) -> None:
        match constraint.name:
            case "key":
                if self.keys:
                    raise ParseError(
                        f"{self.owner} has multiple @key constraints — keep one; "
                        "write `@key(a, b)` in the body for a key of several properties",
                        span=constraint.span,
                    )
                self.keys.append(self._members(constraint, _refuse_in_key))
                self._require_ends(constraint)
            case "unique":
                self.uniques.add(self._members(constraint, _refuse_in_unique))
            case "index":
                self.indexes.add(self._members(constraint, _refuse_in_index))
            case "range":
                self._refuse_on_edges(constraint)
                range_ = self._range(constraint)
                self.ranges[(range_.property, f"{range_.lower}..{range_.upper}")] = range_
            case "check":
                self._refuse_on_edges(constraint)
                self.checks.add(self._check(constraint))

    def result(self) -> Constraints:
        return Constraints(
            key=self.keys[0] if self.keys else None,
            uniques=tuple(sorted(self.uniques)),
            indexes=tuple(sorted(self.indexes)),
            ranges=tuple(self.ranges[key] for key in sorted(self.ranges)),
            checks=tuple(Check(name, pattern) for name, pattern in sorted(self.checks)),
        )

    def _require_ends(self, constraint: ConstraintDecl) -> None:
        """Without both ends a key could move an edge to other nodes, which no write says."""
        others = [name for name in self.keys[-1] if name not in EDGE_ENDS]
        if self.kind == "edge" and len(others) + len(EDGE_ENDS) != len(self.keys[-1]):
            raise ParseError(
                f"@key of {self.owner} must name both ends of the edge — "
                f"write `@key({', '.join([*EDGE_ENDS, *others])})`",
                span=constraint.span,
            )

    def _refuse_on_edges(self, constraint: ConstraintDecl) -> None:
        if self.kind == "edge":
            raise ParseError(
                f"@{constraint.name} is not supported on edges, here {self.owner} — "
                "edges take @key, @unique and @index",
                span=constraint.span,
            )

    def _members(
        self, constraint: ConstraintDecl, refusal: Callable[[PropertyType], str | None]
    ) -> Members:
        members: set[str] = set()
        for argument in constraint.arguments:
            name, type_ = self._property(constraint, argument)
            reason = refusal(type_) if type_ is not None else None
            if reason is not None:
                raise ParseError(
                    f"@{constraint.name} of {self.owner}: `{name}` {reason}",
                    span=_span_of(argument, constraint),
                )
            if name in members:
                raise ParseError(
                    f"@{constraint.name} of {self.owner} names `{name}` multiple times — keep one",
                    span=_span_of(argument, constraint),
                )
            members.add(name)
        return tuple(sorted(members))

    def _property(
        self, constraint: ConstraintDecl, argument: object
    ) -> tuple[str, PropertyType | None]:
        """The property an argument names; a structural column of an edge has no type here."""
        if not isinstance(argument, Identifier):
            raise ParseError(
                f"@{constraint.name} of {self.owner} takes property names, bare and without quotes",
                span=_span_of(argument, constraint),
            )
        if self.kind == "edge" and argument.name in EDGE_ENDS:
            return argument.name, None
        draft = self.properties.get(argument.name)
        if draft is None:
            raise ParseError(
                f"@{constraint.name} of {self.owner} references unknown property `{argument.name}`",
                span=_span_of(argument, constraint),
                hint=did_you_mean(argument.name, self.properties),
            )
        return draft.name, draft.type

    def _range(self, constraint: ConstraintDecl) -> Range:
        match constraint.arguments:
            case (Identifier() as member, RangeBound() as bound):
                name, type_ = self._property(constraint, member)
            case _:
                raise ParseError(
                    f"@range of {self.owner} takes a property and bounds, "
                    "as in `@range(age, 0..200)`",
                    span=constraint.span,
                )
        if type_ is None or not type_.is_numeric:
            raise ParseError(
                f"@range of {self.owner} needs a numeric property, but `{name}` is {type_}",
                span=_span_of(member, constraint),
            )
        lower, upper = _plain(bound.lower), _plain(bound.upper)
        if lower is not None and upper is not None and lower > upper:
            raise ParseError(
                f"@range of {self.owner}: min {lower} exceeds max {upper}, "
                f"so no value of `{name}` could pass",
                span=bound.span,
            )
        return Range(name, lower, upper)

    def _check(self, constraint: ConstraintDecl) -> tuple[str, str]:
        match constraint.arguments:
            case (Identifier() as member, str() as pattern):
                name, type_ = self._property(constraint, member)
            case _:
                raise ParseError(
                    f"@check of {self.owner} takes a property and a pattern in quotes, "
                    'as in `@check(code, "^[A-Z]+$")`',
                    span=constraint.span,
                )
        if type_ is None or not type_.is_text:
            raise ParseError(
                f"@check of {self.owner} needs a String property, but `{name}` is {type_}",
                span=_span_of(member, constraint),
            )
        compile_pattern(pattern, constraint.span)
        return name, pattern


def read_constraints(
    kind: TypeKind,
    owner: str,
    properties: Mapping[str, PropertyDraft],
    body: Iterable[ConstraintDecl] = (),
) -> Constraints:
    """Check and gather the constraints of one type: those of `body` and those its properties carry.

    Raises:
        ParseError: A constraint does not fit this kind of type, its properties, or another one.
    """
    reader = _Reader(kind, owner, properties)
    # In the order of the file, so that a second `@key` is the one reported.
    for draft in sorted(properties.values(), key=lambda each: each.declaration.span.start):
        for constraint in _to_constraints(draft):
            reader.read(constraint)
    for constraint in body:
        reader.read(constraint)
    return reader.result()


def _to_constraints(draft: PropertyDraft) -> Iterable[ConstraintDecl]:
    for annotation in draft.constraint_annotations:
        member = Identifier(draft.name, span=annotation.span)
        match annotation.name:
            case "key" | "unique" | "index":
                yield ConstraintDecl(annotation.name, (member,), span=annotation.span)


def _refuse_in_key(type_: PropertyType) -> str | None:
    if type_.nullable:
        return "cannot be nullable, because every row needs its whole key — remove the `?`"
    return _refuse_in_unique(type_)


def _refuse_in_unique(type_: PropertyType) -> str | None:
    if type_.is_list:
        return f"is a list property ({type_}), which has no single value to compare"
    if type_.is_vector:
        return f"is a vector property ({type_}), which is not compared for equality"
    return _refuse_in_index(type_)


def _refuse_in_index(type_: PropertyType) -> str | None:
    return "is a blob property, whose bytes are not compared" if type_.is_blob else None


def _plain(value: int | float | None) -> int | float | None:
    """A whole decimal as an integer, so that `0.0..1.0` and `0..1` are the same bounds."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _span_of(argument: object, constraint: ConstraintDecl) -> Span:
    if isinstance(argument, Identifier | RangeBound) and argument.span != NO_SPAN:
        return argument.span
    return constraint.span
