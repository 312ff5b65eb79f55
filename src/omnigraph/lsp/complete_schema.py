"""Completion of `.pg` texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from omnigraph.catalog.annotations import ANNOTATIONS
from omnigraph.catalog.constraints import CONSTRAINTS
from omnigraph.compiler.language import TYPE_FORMS
from omnigraph.lsp.complete import Completion, Item, Typing, gather, list_keywords, read_typing
from omnigraph.lsp.scan import Token, find_opening, scan, without_comments
from omnigraph.syntax.parse_schema import SCHEMA_PARSER


def complete_schema(text: str, offset: int) -> Completion:
    """What may be written at an offset of a `.pg` text."""
    typing = read_typing(text, 0, offset, SCHEMA_PARSER)
    if typing is None:
        return Completion(offset)
    tokens = without_comments(scan(text))
    before = [token for token in tokens if token.end <= typing.start]
    return gather(typing, _list_items(typing, tokens, before))


def _list_items(typing: Typing, tokens: Sequence[Token], before: Sequence[Token]) -> Iterator[Item]:
    if typing.expects("BASE_TYPE"):
        yield from (Item(scalar.value, "type", doc=doc) for scalar, (_, doc) in TYPE_FORMS.items())
        yield Item("enum", "type", "enum(a, b)")
    if typing.expects("TYPE_NAME"):
        yield from _types(tokens, before)
    if typing.expects("ANNOT_NAME"):
        for known in ANNOTATIONS.values():
            yield Item(known.form, "annotation", ", ".join(known.places), known.doc)
    if typing.expects("CONSTRAINT_NAME"):
        yield from (Item(form, "annotation", "body", doc) for form, doc in CONSTRAINTS.values())
    if typing.expects("CARD"):
        yield Item("@card(least..most)", "annotation", "edge")
    if typing.expects("IDENT"):
        yield from _members(before)
    yield from list_keywords(typing, SCHEMA_PARSER)


def _types(tokens: Sequence[Token], before: Sequence[Token]) -> Iterator[Item]:
    """The types that are declared: the interfaces behind `implements`, else the nodes."""
    if before and before[-1].is_word("node", "edge", "interface"):
        return
    is_promise = _is_behind_implements(before)
    for head, name in itertools.pairwise(tokens):
        if name.kind == "type" and head.is_word("interface" if is_promise else "node"):
            yield Item(name.text, "class", head.text)


def _is_behind_implements(before: Sequence[Token]) -> bool:
    for token in reversed(before):
        if token.is_word("implements"):
            return True
        if token.kind != "type" and not token.is_symbol(","):
            return False
    return False


def _members(before: Sequence[Token]) -> Iterator[Item]:
    """The properties that a constraint may name: those before it in the same braces."""
    parenthesis = find_opening(before, len(before))
    if parenthesis is None or not before[parenthesis].is_symbol("("):
        return
    braces = find_opening(before, parenthesis)
    for token, colon in zip(before[(braces or 0) + 1 :], before[(braces or 0) + 2 :], strict=False):
        if token.kind == "word" and colon.is_symbol(":"):
            yield Item(token.text, "property")
