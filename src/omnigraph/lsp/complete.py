"""Complete: what may stand at a position, as the parser expects it there.

The text before the position is parsed; where it is the beginning of a valid text the parser says
which words, names and values may follow. Where it is not, every word is offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from omnigraph.compiler.functions import describe_function
from omnigraph.dataclass import dataclass
from omnigraph.lsp.scan import Token, scan
from omnigraph.syntax.parser import Parser

ItemKind: TypeAlias = Literal[
    "keyword", "function", "type", "class", "property", "variable", "edge", "annotation"
]
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"


@dataclass(frozen=True, slots=True)
class Item:
    """One suggestion: what is written, what it is, and more about it."""

    label: str
    kind: ItemKind
    detail: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """What may stand instead of the word that begins at `start` and is being typed."""

    start: int
    items: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Typing:
    """A position: where the word begins that is being typed, and what may stand there.

    `expected` are the terminals, by the name that the place gives each; None where the text before
    is no beginning of a valid one.
    """

    start: int
    expected: dict[str, str | None] | None

    def expects(self, *terminals: str) -> bool:
        return self.expected is None or any(each in self.expected for each in terminals)

    def expects_name(self, name: str) -> bool:
        """Whether a name of this sort stands here, such as "an edge name"."""
        return self.expected is not None and name in self.expected.values()


def read_typing(text: str, start: int, offset: int, parser: Parser) -> Typing | None:
    """What is being typed at an offset of the part that begins at `start`; None in a string."""
    if _is_inside(scan(text[start:offset])):
        return None
    at = offset
    while at > start and text[at - 1] in _NAME:
        at -= 1
    if at > start and text[at - 1] in "$@":
        at -= 1
    return Typing(at, parser.list_expected(text[start:at]))


def _is_inside(tokens: list[Token]) -> bool:
    """Whether what follows these tokens is part of a string or a comment."""
    last = tokens[-1] if tokens else None
    if last is None or last.kind not in ("string", "comment"):
        return False
    if last.kind == "string":
        return len(last.text) == 1 or not last.text.endswith('"') or last.text.endswith('\\"')
    return last.text.startswith("//") or not last.text.endswith("*/")


def list_keywords(typing: Typing, parser: Parser) -> Iterator[Item]:
    """The words that may stand here."""
    words = parser.list_words()
    if typing.expected is None:
        yield from (Item(word, "keyword") for word in words.keywords)
        return
    phrases = {each for terminal in typing.expected for each in words.phrases.get(terminal, ())}
    for phrase in sorted(phrases.difference(words.calls)):
        if phrase[0].islower():
            yield Item(phrase, "keyword")


def make_function(name: str) -> Item:
    """A function with its signature."""
    known = describe_function(name)
    return Item(name, "function", f"{name}({known.arguments}) → {known.result}", known.doc)


def gather(typing: Typing, items: Iterable[Item]) -> Completion:
    """Each suggestion once."""
    return Completion(
        typing.start, tuple({(item.label, item.kind): item for item in items}.values())
    )
