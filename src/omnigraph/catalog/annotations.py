"""Annotations: what `@description`, `@embed`, `@rename_from` and the like say, read and checked.

Everything here is about one declaration at a time; what needs the rest of a type (constraints, the
source of an `@embed`) is checked where the whole type is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from omnigraph.catalog.backfill import read_backfill
from omnigraph.catalog.index_language import read_language
from omnigraph.catalog.model import DEFAULT, Backfill, Embed, OpaqueAnnotation, TypeKind
from omnigraph.dataclass import dataclass
from omnigraph.errors import ParseError
from omnigraph.source_text import Span
from omnigraph.syntax.schema_tree import Annotation, Identifier, PropertyDecl
from omnigraph.types import PropertyType

Place: TypeAlias = Literal["property", "type"]

CONSTRAINT_ANNOTATIONS = ("key", "unique", "index")


@dataclass(frozen=True, slots=True)
class KnownAnnotation:
    """An annotation that has a meaning: how it is written, where, and what it says."""

    form: str
    places: tuple[Place, ...]
    doc: str


ANNOTATIONS: Final[Mapping[str, KnownAnnotation]] = {
    "key": KnownAnnotation("@key", ("property",), "It identifies the node."),
    "unique": KnownAnnotation(
        "@unique", ("property",), "No two nodes or edges of the type share a value."
    ),
    "index": KnownAnnotation(
        "@index", ("property",), "Makes look-ups and searches by it fast; takes `language`."
    ),
    DEFAULT: KnownAnnotation(
        "@default(value)", ("property",), "What a new node or edge gets when the data has none."
    ),
    "embed": KnownAnnotation(
        '@embed("source")', ("property",), "A vector that is computed from a String property."
    ),
    "backfill": KnownAnnotation(
        "@backfill(value)", ("property",), "What existing rows get when the property is added."
    ),
    "rename_from": KnownAnnotation(
        '@rename_from("old")', ("property", "type"), "Was called `old` before."
    ),
    "description": KnownAnnotation(
        '@description("…")', ("property", "type"), "A text for people and tools."
    ),
    "instruction": KnownAnnotation(
        '@instruction("…")', ("type",), "How a tool should use the type."
    ),
}
"""Each stands at most once in its place; any other annotation is kept and has no meaning."""


def _list_of(place: Place) -> frozenset[str]:
    return frozenset(name for name, known in ANNOTATIONS.items() if place in known.places)


_ONCE_ON_PROPERTIES = _list_of("property")
_ONCE_ON_TYPES = _list_of("type")
_ONLY_ON_PROPERTIES = frozenset({*CONSTRAINT_ANNOTATIONS, "embed"})


@dataclass(frozen=True, slots=True)
class RenameHint:
    """`@rename_from("old")`, and where it is written."""

    old_name: str
    span: Span


@dataclass(frozen=True, slots=True)
class TypeNotes:
    """What the annotations of one node or edge type say."""

    description: str | None = None
    instruction: str | None = None
    annotations: tuple[OpaqueAnnotation, ...] = ()
    hint: RenameHint | None = None


@dataclass(frozen=True, slots=True)
class PropertyDraft:
    """One property with its annotations read, before it has an identity.

    `hints` has more than one member only when several interfaces inject the property.
    """

    declaration: PropertyDecl
    embed: Embed | None = None
    description: str | None = None
    annotations: tuple[OpaqueAnnotation, ...] = ()
    hints: tuple[RenameHint, ...] = ()
    injected_by: tuple[str, ...] = ()
    backfill: Backfill | None = None
    language: str | None = None

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def type(self) -> PropertyType:
        return self.declaration.type

    @property
    def constraint_annotations(self) -> tuple[Annotation, ...]:
        """The annotations that stand for a body constraint on this property."""
        return tuple(a for a in self.declaration.annotations if a.name in CONSTRAINT_ANNOTATIONS)

    def same_semantics(self, other: PropertyDraft) -> bool:
        """Whether both promise the same; where they come from and what they replace aside."""
        return self._semantics() == other._semantics()

    def with_interface(self, interface: str, hints: tuple[RenameHint, ...] = ()) -> PropertyDraft:
        """This property as a contribution of `interface` too, which may add its own `hints`."""
        return replace(
            self, injected_by=(*self.injected_by, interface), hints=(*self.hints, *hints)
        )

    def _semantics(self) -> tuple[object, ...]:
        constraints = frozenset(annotation.name for annotation in self.constraint_annotations)
        # Python takes True, 1 and 1.0 for equal; their spellings differ.
        opaque = repr(self.annotations)
        return self.type, constraints, self.embed, self.description, self.language, opaque


def read_property(declaration: PropertyDecl, kind: TypeKind, owner: str) -> PropertyDraft:
    """Read the annotations of one property; `owner` is what errors call its type.

    Raises:
        ParseError: An annotation is repeated, misplaced or has the wrong arguments.
    """
    subject = f"property `{declaration.name}` of {owner}"
    _refuse_repeats(declaration.annotations, _ONCE_ON_PROPERTIES, subject)
    draft = PropertyDraft(declaration)
    opaque: list[OpaqueAnnotation] = []
    for annotation in declaration.annotations:
        match annotation.name:
            case "key" | "unique" | "index":
                _check_constraint_annotation(annotation, declaration, kind, subject)
                if annotation.kwargs:
                    language = read_language(annotation, declaration.type, subject)
                    draft = replace(draft, language=language)
            case "embed":
                embed = _read_embed(annotation, declaration.type, kind, subject)
                draft = replace(draft, embed=embed)
            case "rename_from":
                draft = replace(draft, hints=(_read_hint(annotation, subject),))
            case "backfill":
                draft = replace(draft, backfill=read_backfill(annotation, subject))
            case "description":
                draft = replace(draft, description=_read_text(annotation, subject))
            case "instruction":
                raise ParseError(
                    f"@instruction is not supported on {subject} — "
                    "only node and edge types take one; use @description here",
                    span=annotation.span,
                )
            case _:
                opaque.append(_read_opaque(annotation))
    return replace(draft, annotations=_in_order(opaque))


def read_type(annotations: tuple[Annotation, ...], owner: str) -> TypeNotes:
    """Read the annotations of one node or edge type.

    Raises:
        ParseError: An annotation is repeated, misplaced or has the wrong arguments.
    """
    _refuse_repeats(annotations, _ONCE_ON_TYPES, owner)
    notes = TypeNotes()
    opaque: list[OpaqueAnnotation] = []
    for annotation in annotations:
        if annotation.name in _ONLY_ON_PROPERTIES:
            raise ParseError(
                f"@{annotation.name} is not supported on {owner} as a whole — "
                "write it on a property inside the braces",
                span=annotation.span,
            )
        match annotation.name:
            case "rename_from":
                notes = replace(notes, hint=_read_hint(annotation, owner))
            case "description":
                notes = replace(notes, description=_read_text(annotation, owner))
            case "instruction":
                notes = replace(notes, instruction=_read_text(annotation, owner))
            case _:
                opaque.append(_read_opaque(annotation))
    return replace(notes, annotations=_in_order(opaque))


def _refuse_repeats(annotations: Iterable[Annotation], once: frozenset[str], subject: str) -> None:
    seen: set[str] = set()
    for annotation in annotations:
        if annotation.name in once and annotation.name in seen:
            raise ParseError(
                f"@{annotation.name} is written multiple times on {subject} — keep one",
                span=annotation.span,
            )
        seen.add(annotation.name)


def _check_constraint_annotation(
    annotation: Annotation, declaration: PropertyDecl, kind: TypeKind, subject: str
) -> None:
    if annotation.name == "key" and kind == "edge":
        raise ParseError(
            f"@key is not supported on edge properties, here {subject} — an edge is identified by "
            f"its ends too: write `@key(src, dst, {declaration.name})` in the braces",
            span=annotation.span,
        )
    # Only the annotation is refused: a body `@index` may name a list beside other properties.
    if annotation.name == "index" and declaration.type.is_list:
        raise ParseError(
            f"@index is not supported on a list property, here {subject} — remove it",
            span=annotation.span,
        )


def _read_embed(annotation: Annotation, type_: PropertyType, kind: TypeKind, subject: str) -> Embed:
    if kind == "edge":
        raise ParseError(
            f"@embed is not supported on edge properties, here {subject} — "
            "put the vector on a node type",
            span=annotation.span,
        )
    if not type_.is_vector:
        raise ParseError(
            f"@embed needs a vector property, but {subject} is {type_} — declare it as Vector(n)",
            span=annotation.span,
        )
    source = _name_argument(annotation)
    if source is None:
        raise ParseError(
            f"@embed on {subject} must name the String property it is made from, "
            'as in `@embed("text")`',
            span=annotation.span,
        )
    return Embed(source, _read_model(annotation, subject))


def _read_model(annotation: Annotation, subject: str) -> str | None:
    if not annotation.kwargs:
        return None
    values = [value for name, value in annotation.kwargs if name == "model"]
    if len(values) != len(annotation.kwargs) or len(values) > 1:
        raise ParseError(
            f"unexpected argument of @embed on {subject}: only 'model' is supported, once",
            span=annotation.span,
        )
    if not isinstance(values[0], str) or not values[0].strip():
        raise ParseError(
            f"'model' of @embed on {subject} must be a non-blank string", span=annotation.span
        )
    return values[0]


def _read_hint(annotation: Annotation, subject: str) -> RenameHint:
    old_name = _name_argument(annotation)
    if old_name is None or annotation.kwargs:
        raise ParseError(
            f"@rename_from on {subject} takes exactly one non-empty old name, "
            'as in `@rename_from("old")`',
            span=annotation.span,
        )
    return RenameHint(old_name, annotation.span)


def _name_argument(annotation: Annotation) -> str | None:
    """The non-blank string or bare word an annotation is given, if that is what it is given."""
    value = annotation.value
    if isinstance(value, Identifier):
        return value.name
    return value if isinstance(value, str) and value.strip() else None


def _read_text(annotation: Annotation, subject: str) -> str:
    value = annotation.value
    if not isinstance(value, str) or not value.strip() or annotation.kwargs:
        raise ParseError(
            f"@{annotation.name} on {subject} takes exactly one non-blank string, "
            f'as in `@{annotation.name}("…")`',
            span=annotation.span,
        )
    return value


def _read_opaque(annotation: Annotation) -> OpaqueAnnotation:
    value = annotation.value
    return OpaqueAnnotation(
        annotation.name,
        value.name if isinstance(value, Identifier) else value,
        tuple(sorted(annotation.kwargs, key=repr)),
    )


def _in_order(opaque: list[OpaqueAnnotation]) -> tuple[OpaqueAnnotation, ...]:
    """Canonical order: the order in the source carries no meaning."""
    return tuple(sorted(opaque, key=lambda annotation: (annotation.name, repr(annotation))))
