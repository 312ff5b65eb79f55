"""Fields: take typed values out of a YAML tree and note every one that is not as expected."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import TypeVar

from omnigraph.errors import did_you_mean
from omnigraph.policy.problems import Problems
from omnigraph.policy.read_yaml import Mapping, Node, Scalar, Sequence

Word = TypeVar("Word", bound=StrEnum)

_SHOWN_MAX = 80
_HINTS_MAX = 100


def shown(name: str) -> str:
    """A name for a message: in quotes, not too long, on one line."""
    text = name if len(name) <= _SHOWN_MAX else f"{name[:_SHOWN_MAX]}…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "'"


class Fields:
    """Reads the values of one file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def mapping(
        self, node: Node, where: str, *, known: Collection[str], required: Collection[str] = ()
    ) -> dict[str, Node]:
        """The entries of a mapping that may have these keys only; an empty one may be absent."""
        if not isinstance(node, Mapping):
            self.wrong(node, where, "a mapping")
            return {}
        for key, line in node.key_lines.items():
            if key not in known:
                self.note(line, where, f"the key {shown(key)} is not known{self.hint(key, known)}")
        for key in required:
            if key not in node.entries:
                self.note(node.line, where, f"the key '{key}' is missing")
        return {
            key: value
            for key, value in node.entries.items()
            if key in known and (key in required or not _is_empty(value))
        }

    def entries(self, node: Node, where: str) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping whose keys are names."""
        if not isinstance(node, Mapping):
            self.wrong(node, where, "a mapping")
            return
        yield from node.entries.items()

    def items(self, node: Node | None, where: str) -> tuple[Node, ...]:
        """The items of a list; none when it is absent."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.wrong(node, where, "a list")
            return ()
        return node.items

    def text(self, node: Node | None, where: str) -> str | None:
        """A text that is not blank."""
        if node is None:
            return None
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            is_quotable = isinstance(node, Scalar) and node.value is not None
            self.wrong(node, where, "a text — put it in quotes" if is_quotable else "a text")
            return None
        if not node.value.strip():
            self.note(node.line, where, "is blank")
            return None
        return node.value

    def texts(self, node: Node | None, where: str, item: str) -> Iterator[tuple[int, str]]:
        """The texts of a list, with their lines."""
        for each in self.items(node, where):
            text = self.text(each, f"{where}: {item}")
            if text is not None:
                yield each.line, text

    def word(self, node: Node | None, where: str, words: type[Word]) -> Word | None:
        """One of the words of an enum."""
        text = self.text(node, where)
        if node is None or text is None:
            return None
        try:
            return words(text)
        except ValueError:
            hint = self.hint(text, [each.value for each in words])
            listed = ", ".join(words)
            self.note(node.line, where, f"{shown(text)} is not one of {listed}{hint}")
            return None

    def version(self, node: Node | None) -> None:
        """The version of the format, which is 1."""
        if node is None or (
            isinstance(node, Scalar) and node.value == 1 and node.value is not True
        ):
            return
        self.wrong(node, "version", "the number 1")

    def hint(self, word: str, known: Collection[str]) -> str:
        """What was probably meant, unless looking for it could take long."""
        if len(known) > _HINTS_MAX or len(self._problems.found) > _HINTS_MAX:
            return ""
        hint = did_you_mean(word[:_SHOWN_MAX], known)
        return f" — {hint}" if hint else ""

    def wrong(self, node: Node, where: str, expected: str) -> None:
        """Note that a value has another form than expected."""
        self.note(node.line, where, f"is {_form(node)}, expected {expected}")

    def note(self, line: int, where: str, text: str) -> None:
        """Note a problem at a named place."""
        joint = " " if text.startswith("is ") else ": "
        self._problems.add(line, f"{where}{joint}{text}" if where else text)


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _form(node: Node) -> str:
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Scalar(value=None):
            return "empty"
        case Scalar(value=bool() as value):
            return "true" if value else "false"
        case Scalar(value=str()):
            return "a text"
        case Scalar(value=value):
            return f"the number {value}"
