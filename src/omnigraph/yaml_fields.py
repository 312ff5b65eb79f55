"""YAML fields: typed values out of a YAML tree; each that is not as expected becomes a problem."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any, TypeVar

from omnigraph.errors import did_you_mean
from omnigraph.yaml_text import Mapping, Mark, Node, Problems, Scalar, Sequence, to_printable

Word = TypeVar("Word", bound=StrEnum)

_QUOTE_MAX = 80
_HINTS_MAX = 100


def quote(name: str) -> str:
    """A name for a message: in quotes, not too long, on one line."""
    return f"'{to_printable(name if len(name) <= _QUOTE_MAX else f'{name[:_QUOTE_MAX]}…')}'"


class Fields:
    """Reads the values of one file.

    With `takes_numbers` a number where a text is expected counts as it is written. Unknown keys
    are problems; with `warnings` they are noted there instead.
    """

    def __init__(
        self,
        problems: Problems,
        *,
        takes_numbers: bool = False,
        warnings: Problems | None = None,
    ) -> None:
        self.problems = problems
        self._takes_numbers = takes_numbers
        self._warnings = warnings

    def mapping(
        self,
        node: Node | None,
        where: str,
        *,
        known: Collection[str] | None,
        required: Collection[str] = (),
    ) -> dict[str, Node]:
        """The entries of a mapping that may have these keys only; an empty one may be absent."""
        entries = dict(self.entries(node, where))
        if not isinstance(node, Mapping):
            return {}
        known = entries if known is None else known
        for key in entries:
            if key not in known:
                self._note_unknown(node.keys[key].mark, where, key, known)
        for key in required:
            if key not in entries:
                self.note(node.mark, where, f"the key '{key}' is missing")
        return {
            key: value
            for key, value in entries.items()
            if key in known and (key in required or not _is_empty(value))
        }

    def _note_unknown(self, mark: Mark, where: str, key: str, known: Collection[str]) -> None:
        listed = ", ".join(known) + ("" if self._warnings is None else ", and is ignored")
        text = f"the key {quote(key)} is not one of {listed}{self.hint(key, known)}"
        (self._warnings or self.problems).add(mark, f"{where}: {text}" if where else text)

    def entries(self, node: Node | None, where: str) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping whose keys are names; none when it is absent."""
        if node is None:
            return
        if not isinstance(node, Mapping):
            self.note_wrong(node, where, "a mapping")
            return
        for key, value in node.entries.items():
            if self._takes_numbers or isinstance(node.keys[key].value, str):
                yield key, value
            else:
                self.problems.add(node.keys[key].mark, "a key is not a text — put it in quotes")

    def items(self, node: Node | None, where: str) -> tuple[Node, ...]:
        """The items of a list; none when it is absent."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.note_wrong(node, where, "a list")
            return ()
        return node.items

    def text(self, node: Node | None, where: str) -> str | None:
        """A text that is not blank."""
        if node is None:
            return None
        if not isinstance(node, Scalar) or node.value is None:
            self.note_wrong(node, where, "a text")
            return None
        is_number = not isinstance(node.value, str | bool)
        if not isinstance(node.value, str) and not (is_number and self._takes_numbers):
            self.note_wrong(node, where, "a text — put it in quotes")
            return None
        if not node.text.strip():
            self.note(node.mark, where, "is blank")
            return None
        return node.text

    def texts(self, node: Node | None, where: str, item: str = "an item") -> Iterator[str]:
        """The texts of a list."""
        for each in self.items(node, where):
            text = self.text(each, f"{where}: {item}")
            if text is not None:
                yield text

    def choice(self, node: Node | None, where: str, known: Collection[str]) -> str | None:
        """One of the known words."""
        text = self.text(node, where)
        if node is None or text is None or text in known:
            return text
        hint = self.hint(text, known)
        self.note(node.mark, where, f"{quote(text)} is not one of {', '.join(known)}{hint}")
        return None

    def word(self, node: Node | None, where: str, words: type[Word]) -> Word | None:
        """One of the words of an enum."""
        text = self.choice(node, where, [each.value for each in words])
        return None if text is None else words(text)

    def flag(self, node: Node | None, where: str) -> bool | None:
        """True or false."""
        if node is None or (isinstance(node, Scalar) and isinstance(node.value, bool)):
            return None if node is None else bool(node.value)
        self.note_wrong(node, where, "true or false")
        return None

    def number(self, node: Node | None, where: str, *, at_least: int) -> int | None:
        """A whole number of at least so much."""
        match node:
            case None:
                return None
            case Scalar(value=int() as value) if value >= at_least and value is not True:
                return value
            case _:
                self.note_wrong(node, where, f"a whole number of at least {at_least}")
                return None

    def version(self, node: Node | None) -> None:
        """The version of the format, which is 1."""
        if node is not None and (
            not isinstance(node, Scalar) or node.value != 1 or node.value is True
        ):
            self.note_wrong(node, "version", "the number 1")

    def hint(self, word: str, known: Collection[str]) -> str:
        """What was probably meant, unless looking for it could take long."""
        if len(known) > _HINTS_MAX or len(self.problems.found) > _HINTS_MAX:
            return ""
        hint = did_you_mean(word[:_QUOTE_MAX], known)
        return f" — {hint}" if hint else ""

    def note_wrong(self, node: Node, where: str, expected: str) -> None:
        """Note that a value has another form than expected."""
        self.note(node.mark, where or "the file", f"is {_describe(node)}, expected {expected}")

    def note(self, mark: Mark, where: str, text: str) -> None:
        """Note a problem with a named thing."""
        joint = " " if text.startswith("is ") else ": "
        self.problems.add(mark, f"{where}{joint}{text}" if where else text)


def to_plain(node: Node) -> Any:
    """A tree as JSON has it."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [to_plain(each) for each in node.items]
        case Mapping():
            return {key: to_plain(each) for key, each in node.entries.items()}


def _is_empty(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _describe(node: Node) -> str:
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
