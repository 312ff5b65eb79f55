"""YAML text: a file → a tree of values that know their line and column. The only YAML reader.

Values follow the core schema of YAML 1.2: only `true` and `false` are truth values, `010` is ten,
`1:30` and dates are texts, and there are no merge keys.

The parser's events are read one by one, so that the limits hold before memory is spent: a file of
at most `CHARACTERS_MAX`, nested at most `DEPTH_MAX` deep, with at most `VALUES_MAX` values after
aliases are followed. An alias shares the tree it names and cannot stand inside that tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, NamedTuple, TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.errors import OmnigraphError

CHARACTERS_MAX = 1_048_576
DEPTH_MAX = 20
VALUES_MAX = 100_000
PROBLEMS_MAX = 100

_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Not YAML at all; lone surrogates among them."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_OTHER_BASE = re.compile(r"0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class Mark(NamedTuple):
    """A position in a file; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single value, and its text as it is written in the file."""

    mark: Mark
    value: str | int | float | bool | None
    text: str = ""
    size: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    mark: Mark
    items: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Entries by the text of their key, in the order of the file."""

    mark: Mark
    entries: dict[str, Node]
    keys: dict[str, Scalar]
    size: int


Node: TypeAlias = Scalar | Sequence | Mapping


@dataclass(slots=True)
class Problems:
    """What is wrong with one file, collected so that one run reports all of it."""

    name: str
    make_error: Callable[[list[str]], OmnigraphError]
    found: list[tuple[Mark, str]] = field(default_factory=list)

    def add(self, mark: Mark, text: str) -> None:
        self.found.append((mark, text))

    def place(self, mark: Mark) -> str:
        """A position as terminals and editors link it: `file:line:column`."""
        return f"{to_printable(self.name)}:{mark.line}:{mark.column}"

    def lines(self) -> list[str]:
        """One line per problem, in the order of the file."""
        listed = [f"{self.place(mark)}: {text}" for mark, text in sorted(self.found)]
        more = len(listed) - PROBLEMS_MAX
        return listed[:PROBLEMS_MAX] + ([f"and {more} more"] if more > 0 else [])

    def raise_if_any(self) -> None:
        if self.found:
            raise self.make_error(self.lines())


class _Stop(Exception):
    """The rest of the file cannot be read."""

    def __init__(self, mark: Mark, text: str) -> None:
        self.mark = mark
        self.text = text


def read_yaml(text: str, problems: Problems) -> Node:
    """Read the tree of one document; add what is wrong with single values to `problems`.

    Raises:
        OmnigraphError: The one that `problems` makes: there is no tree to look at.
    """
    import yaml  # most commands read no YAML

    try:
        _check_characters(text)
        reader = _Reader(problems)
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            reader.take(event)
        # An empty file has no document, and so no value.
        return Scalar(Mark(1, 1), None) if reader.root is None else reader.root
    except _Stop as stop:
        problems.add(stop.mark, stop.text)
    except yaml.YAMLError as error:
        problems.add(
            _to_mark(getattr(error, "problem_mark", None)),
            "this is not YAML — look at the indentation, quotes, brackets and colons here",
        )
    raise problems.make_error(problems.lines())


def to_printable(text: str) -> str:
    """The text on one line, with escapes for characters that a terminal does not show."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _to_mark(mark: Any) -> Mark:
    return Mark(1, 1) if mark is None else Mark(mark.line + 1, mark.column + 1)


def _check_characters(text: str) -> None:
    if len(text) > CHARACTERS_MAX:
        raise _Stop(Mark(1, 1), f"the file has more than {CHARACTERS_MAX} characters")
    # Compiled here: that takes three milliseconds, and a command imports this to find no file.
    found = re.compile(_FORBIDDEN).search(text, 1 if text.startswith("\ufeff") else 0)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        mark = Mark(line, found.start() - text.rfind("\n", 0, found.start()))
        raise _Stop(mark, f"the character U+{ord(found[0]):04X} is not allowed in YAML")


@dataclass(slots=True)
class _Frame:
    """A list or mapping whose end has not been read yet."""

    mark: Mark
    anchor: str | None
    is_mapping: bool
    children: list[Node] = field(default_factory=list)


class _Reader:
    """Builds the tree from events, innermost values first."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[_Frame] = []
        self._anchors: dict[str, Node] = {}

    def take(self, event: Any) -> None:
        mark = _to_mark(event.start_mark)
        match type(event).__name__:
            case "DocumentStartEvent" if self.root is not None:
                raise _Stop(mark, "a second document starts here — one file holds one document")
            case "ScalarEvent":
                self._check_tag(event, mark)
                self._add(Scalar(mark, _to_value(event), event.value), event.anchor)
            case "SequenceStartEvent" | "MappingStartEvent" as name:
                self._check_tag(event, mark)
                self._open.append(_Frame(mark, event.anchor, name == "MappingStartEvent"))
                if len(self._open) > DEPTH_MAX:
                    raise _Stop(mark, f"values are nested more than {DEPTH_MAX} deep")
            case "SequenceEndEvent" | "MappingEndEvent":
                frame = self._open.pop()
                self._add(self._close(frame), frame.anchor)
            case "AliasEvent":
                node = self._anchors.get(event.anchor)
                if node is None:
                    raise _Stop(mark, f"the alias '*{event.anchor}' names nothing above it")
                self._add(node, None)

    def _check_tag(self, event: Any, mark: Mark) -> None:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._problems.add(mark, f"the tag '{event.tag}' is not used here — remove it")

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def _close(self, frame: _Frame) -> Node:
        size = 1 + sum(child.size for child in frame.children)
        if size > VALUES_MAX:
            raise _Stop(frame.mark, f"there are more than {VALUES_MAX} values, aliases followed")
        if not frame.is_mapping:
            return Sequence(frame.mark, tuple(frame.children), size)
        mapping = Mapping(frame.mark, {}, {}, size)
        for key, value in zip(frame.children[::2], frame.children[1::2], strict=True):
            if not isinstance(key, Scalar) or key.value is None:
                self._problems.add(key.mark, "a key is not a text — put it in quotes")
            elif key.text == "<<":
                self._problems.add(key.mark, "YAML 1.2 has no merge keys — write the keys out")
            elif key.text in mapping.keys:
                first = mapping.keys[key.text].mark.line
                text = f"the key '{to_printable(key.text)}' is on line {first} already"
                self._problems.add(key.mark, text)
            else:
                # A list or mapping is reported where its key is: a block starts a line later.
                is_scalar = isinstance(value, Scalar)
                mapping.entries[key.text] = value if is_scalar else replace(value, mark=key.mark)
                mapping.keys[key.text] = key
        return mapping


def _to_value(event: Any) -> str | int | float | bool | None:
    text = str(event.value)
    if event.tag is not None or not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if not _FLOAT.fullmatch(text):
        return text
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
