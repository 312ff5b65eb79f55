"""The language of an index: `@index(language: "de")`, read and checked."""

from __future__ import annotations

from omnigraph.errors import ParseError, did_you_mean
from omnigraph.languages import DEFAULT_LANGUAGE, LANGUAGES, PLAIN
from omnigraph.syntax.schema_tree import Annotation
from omnigraph.types import PropertyType

_OPTION = "language"


def read_language(annotation: Annotation, type_: PropertyType, subject: str) -> str | None:
    """The language that `@index` names; None for the one that it has without a name.

    Raises:
        ParseError: It names another option, no known language, or stands on no text.
    """
    (option, value), *others = annotation.kwargs
    if option != _OPTION or others:
        wrong = others[0][0] if option == _OPTION else option
        raise ParseError(
            f"unexpected option `{wrong}` of @index on {subject}: "
            "only `language` is supported, once",
            span=annotation.span,
            hint=did_you_mean(wrong, [_OPTION]),
        )
    if not type_.is_text or type_.is_list or type_.variants is not None:
        raise ParseError(
            f"`language` of @index on {subject} needs a String property, but it is {type_} — "
            "leave the language out",
            span=annotation.span,
        )
    if value not in LANGUAGES and value != PLAIN:
        known = ", ".join([*LANGUAGES, PLAIN])
        raise ParseError(
            f"`language` of @index on {subject} is {value!r}, expected one of {known}",
            span=annotation.span,
            hint=_suggest(value),
        )
    return None if value == DEFAULT_LANGUAGE else str(value)


def _suggest(value: object) -> str | None:
    """The code of a language that is given by its name, or almost right."""
    by_name = {name.lower(): code for code, name in LANGUAGES.items()}
    wrong = str(value).lower()
    if wrong in by_name:
        return f"did you mean `{by_name[wrong]}`?"
    return did_you_mean(wrong.replace("_", "-").split("-")[0], [*LANGUAGES, PLAIN])
