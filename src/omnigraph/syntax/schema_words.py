"""How errors speak of the schema grammar: names for what was expected, and hints."""

from __future__ import annotations

import re

from omnigraph.errors import did_you_mean
from omnigraph.syntax.unexpected import (
    END_OF_TEXT,
    PUNCTUATION,
    Situation,
    Vocabulary,
    hint_case,
    hint_character,
    hint_number,
    hint_type,
    quote_words,
)

_DECLARATIONS = ("node", "edge", "interface")
_LITERALS = frozenset({"STRING", "FLOAT", "INT", "BOOL"})


def _hint_keyword(situation: Situation) -> str | None:
    if not situation.expected & {"_NODE", "_IMPLEMENTS"} or situation.found == END_OF_TEXT:
        return None
    known = _DECLARATIONS if "_NODE" in situation.expected else ("implements",)
    return did_you_mean(situation.found, known)


def _hint_separator(situation: Situation) -> str | None:
    if situation.found == "," and {"IDENT", "RBRACE"} <= situation.expected:
        return "properties are not separated; leave out the `,`"
    return None


def _hint_annotation(situation: Situation) -> str | None:
    if situation.found == ".." and re.search(r"@\s*card\s*\(\s*[0-9]+\s*\Z", situation.before):
        return "`@card(…)` comes right after the target type of an edge"
    if situation.found == "=" and re.search(r"\(\s*[a-z_]\w*\s*\Z", situation.before):
        return "the first argument of an annotation has no name; named ones follow it"
    if situation.found == ")" and re.search(r"@\s*[a-z_]\w*\s*\(\s*\Z", situation.before):
        return "parentheses hold at least one argument; leave them out otherwise"
    if situation.found.startswith("@") and "CONSTRAINT_NAME" not in situation.expected:
        if "ANNOT_NAME" in situation.expected and "RBRACE" not in situation.expected:
            return "constraints go inside the braces"
        if "RBRACE" in situation.expected:
            return "an interface has no constraints of its own; annotate the property instead"
        if situation.expected == {"LBRACE"}:
            return "an interface takes no annotations; its properties do"
    return None


def _hint_property(situation: Situation) -> str | None:
    if situation.found == "-" and "INT" in situation.expected:
        return "a sign is allowed only in the bounds of @range and in the value of an annotation"
    if situation.expected == {"BASE_TYPE"}:
        return "a list holds scalars only"
    if situation.found == "enum" and "ENUM" in situation.expected:
        return "the variants follow in parentheses: `enum(a, b)`"
    if situation.found == "implements" and "CARD" in situation.expected:
        return "an edge cannot implement an interface"
    return None


SCHEMA_WORDS = Vocabulary(
    groups=(
        (_LITERALS | {"IDENT", "NEG_NUMBER", "DOTDOT"}, "an argument"),
        (_LITERALS | {"IDENT", "NEG_NUMBER"}, "an argument"),
        (_LITERALS, "a literal"),
        (frozenset({"INT", "FLOAT", "NEG_NUMBER"}), "a number"),
        (frozenset({"BASE_TYPE", "LSQB", "ENUM", "VECTOR"}), "a type"),
        (frozenset({"CARD", "ANNOT_NAME", "INDEX_NAME"}), "an annotation"),
    ),
    prefixes=(
        ("node A { x", "a property name"),
        ("node A { @key(x", "a property name"),
        ("node A @a(1, x", "the name of an argument"),
    ),
    terminals={
        **quote_words([*_DECLARATIONS, "implements"]),
        "TYPE_NAME": "a type name",
        "IDENT": "a name",
        "BASE_TYPE": "a scalar type",
        "ENUM_VALUE": "an enum variant",
        "STRING": "a string",
        "INT": "an integer",
        "FLOAT": "a number",
        "NEG_NUMBER": "a number",
        "BOOL": "a boolean",
        "ENUM": "a type",
        "VECTOR": "a type",
        "CARD": "an annotation",
        "ANNOT_NAME": "an annotation",
        "INDEX_NAME": "an annotation",
        "CONSTRAINT_NAME": "a constraint",
        **PUNCTUATION,
    },
    hints=(
        hint_character,
        _hint_separator,
        _hint_annotation,
        _hint_property,
        hint_number,
        hint_type,
        _hint_keyword,
        hint_case,
    ),
)
