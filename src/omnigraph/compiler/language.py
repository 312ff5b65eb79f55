"""Language: what there is to write in `.gq` and `.pg` files, for editors and for people.

Everything comes from where it is used: words from the grammars, functions and codes from the
checker, types and annotations from the schema language.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from omnigraph.catalog.annotations import ANNOTATIONS
from omnigraph.catalog.constraints import CONSTRAINTS
from omnigraph.compiler.codes import LINT_CODES, TYPE_CODES, Severity
from omnigraph.compiler.functions import describe_function, list_functions
from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm
from omnigraph.syntax.parse_query import QUERY_PARSER
from omnigraph.syntax.parse_schema import SCHEMA_PARSER
from omnigraph.types import Scalar

FileKind: TypeAlias = Literal["gq", "pg"]

TYPE_FORMS: Final = {
    Scalar.STRING: ("String", "text"),
    Scalar.BOOL: ("Bool", "true or false"),
    Scalar.I32: ("I32", "a whole number of 32 bits"),
    Scalar.I64: ("I64", "a whole number of 64 bits"),
    Scalar.U32: ("U32", "a whole number from zero, of 32 bits"),
    Scalar.U64: ("U64", "a whole number from zero, of 64 bits"),
    Scalar.F32: ("F32", "a floating-point number of 32 bits"),
    Scalar.F64: ("F64", "a floating-point number of 64 bits"),
    Scalar.DATE: ("Date", "a day"),
    Scalar.DATETIME: ("DateTime", "an instant in UTC, to the millisecond"),
    Scalar.BLOB: ("Blob", "bytes, or the URI of some"),
    Scalar.VECTOR: ("Vector(n)", "exactly n floating-point numbers, for similarity search"),
}
"""How the type of one value is written, and what it holds."""
_QUERY_ANNOTATIONS: Final = {
    "description": ('@description("…")', "A text for people and tools."),
    "instruction": ('@instruction("…")', "How a tool should use the query."),
}


@dataclass(frozen=True, slots=True)
class FunctionEntry(JsonForm):
    name: str
    signature: str
    result: str
    doc: str


@dataclass(frozen=True, slots=True)
class TypeEntry(JsonForm):
    name: str
    form: str
    doc: str


@dataclass(frozen=True, slots=True)
class AnnotationEntry(JsonForm):
    """`file` is the kind of file it is written in, `on` what it is written on."""

    name: str
    file: FileKind
    on: tuple[str, ...]
    form: str
    doc: str


@dataclass(frozen=True, slots=True)
class CodeEntry(JsonForm):
    code: str
    severity: Severity
    meaning: str


@dataclass(frozen=True, slots=True)
class Language(JsonForm):
    """All of it. `keywords` are single words, by the kind of file."""

    keywords: dict[FileKind, tuple[str, ...]]
    functions: tuple[FunctionEntry, ...]
    types: tuple[TypeEntry, ...]
    annotations: tuple[AnnotationEntry, ...]
    codes: tuple[CodeEntry, ...]


def describe_language() -> Language:
    """Gather what there is to write."""
    return Language(
        keywords={
            "gq": QUERY_PARSER.list_words().keywords,
            "pg": SCHEMA_PARSER.list_words().keywords,
        },
        functions=tuple(map(_function, list_functions())),
        types=(
            *(TypeEntry(scalar.value, *form) for scalar, form in TYPE_FORMS.items()),
            TypeEntry("enum", "enum(a, b)", "one of the listed words; in a schema only"),
        ),
        annotations=(*_query_annotations(), *_schema_annotations()),
        codes=tuple(_codes()),
    )


def _function(name: str) -> FunctionEntry:
    found = describe_function(name)
    return FunctionEntry(name, f"{name}({found.arguments})", found.result, found.doc)


def _query_annotations() -> list[AnnotationEntry]:
    names = QUERY_PARSER.list_words().annotations
    return [AnnotationEntry(name, "gq", ("query",), *_QUERY_ANNOTATIONS[name]) for name in names]


def _schema_annotations() -> list[AnnotationEntry]:
    """Those of properties and types, then what stands in the braces of a type or behind an edge."""
    notes = [
        AnnotationEntry(name, "pg", known.places, known.form, known.doc)
        for name, known in ANNOTATIONS.items()
    ]
    bodies = [
        AnnotationEntry(name, "pg", ("body",), form, doc)
        for name, (form, doc) in CONSTRAINTS.items()
    ]
    card = AnnotationEntry(
        "card", "pg", ("edge",), "@card(least..most)", "How many such edges leave a node."
    )
    return [*notes, *bodies, card]


def _codes() -> list[CodeEntry]:
    return [
        *(CodeEntry(code, "error", meaning) for code, meaning in TYPE_CODES.items()),
        *(CodeEntry(code, known.severity, known.meaning) for code, known in LINT_CODES.items()),
    ]
