"""Read YAML into a tree that knows its lines, without expanding what could hang a reader.

The parser's events are read one by one, so that the limits hold before memory is spent: a file of
at most `CHARACTERS_MAX`, nested at most `DEPTH_MAX` deep, with at most `VALUES_MAX` values after
aliases are followed. An alias shares the tree it names; one inside itself names nothing yet.

Plain words follow YAML 1.2: `no` and `on` are texts, only `true` and `false` are truth values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from omnigraph.policy.problems import Problems

CHARACTERS_MAX = 1_048_576
DEPTH_MAX = 20
VALUES_MAX = 100_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # not YAML at all; lone surrogates among them
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, slots=True)
class Scalar:
    line: int
    value: str | int | float | bool | None
    size: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    line: int
    items: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in the order of the file. A key that comes twice keeps its first value."""

    line: int
    entries: dict[str, Node]
    key_lines: dict[str, int]
    size: int


Node: TypeAlias = Scalar | Sequence | Mapping


class _Stop(Exception):
    """The rest of the file cannot be read."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.text = text


def read_yaml(text: str, problems: Problems) -> Node:
    """The tree of one document. Notes what is wrong with single values.

    Raises:
        PolicyInvalid: There is no tree to look at.
    """
    try:
        _check_characters(text)
        return _read(yaml.parse(text, Loader=_Loader), problems)
    except _Stop as stop:
        problems.add(stop.line, stop.text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problems.add(
            1 if mark is None else mark.line + 1,
            "this is not YAML — look at the indentation, quotes, brackets and colons here",
        )
    raise problems.error()


def _check_characters(text: str) -> None:
    if len(text) > CHARACTERS_MAX:
        raise _Stop(1, f"the file has more than {CHARACTERS_MAX} characters")
    found = _FORBIDDEN.search(text, 1 if text.startswith("\ufeff") else 0)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise _Stop(line, f"the character U+{ord(found[0]):04X} is not allowed in YAML")


@dataclass(slots=True)
class _Frame:
    """A list or mapping whose end has not come yet."""

    line: int
    anchor: str | None
    is_mapping: bool
    children: list[Node] = field(default_factory=list)


def _read(events: Iterator[Any], problems: Problems) -> Node:
    reader = _Reader(problems)
    for event in events:
        reader.take(event)
    # An empty file has no document, and so no value.
    return Scalar(1, None) if reader.root is None else reader.root


class _Reader:
    """Builds the tree from events, innermost values first."""

    def __init__(self, problems: Problems) -> None:
        self.root: Node | None = None
        self._problems = problems
        self._open: list[_Frame] = []
        self._anchors: dict[str, Node] = {}

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent() if self.root is not None:
                raise _Stop(line, "a second document starts here — one file holds one document")
            case yaml.ScalarEvent():
                self._add(Scalar(line, self._value(event, line)), event.anchor)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._value(event, line)
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Frame(line, event.anchor, is_mapping))
                if len(self._open) > DEPTH_MAX:
                    raise _Stop(line, f"values are nested more than {DEPTH_MAX} deep")
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                frame = self._open.pop()
                self._add(self._closed(frame), frame.anchor)
            case yaml.AliasEvent():
                self._add(self._named(str(event.anchor), line), None)
            case _:
                pass

    def _value(self, event: Any, line: int) -> str | int | float | bool | None:
        """What a scalar means; a tag is refused, on lists and mappings too."""
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._problems.add(line, f"the tag '{event.tag}' is not used here — remove it")
        if not isinstance(event, yaml.ScalarEvent):
            return None
        text = str(event.value)
        is_plain = event.tag is None and event.implicit[0]
        if not is_plain:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else text

    def _named(self, anchor: str, line: int) -> Node:
        node = self._anchors.get(anchor)
        if node is None:
            raise _Stop(line, f"the alias '*{anchor}' names nothing above it")
        return node

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node

    def _closed(self, frame: _Frame) -> Node:
        size = 1 + sum(child.size for child in frame.children)
        if size > VALUES_MAX:
            raise _Stop(frame.line, f"there are more than {VALUES_MAX} values, aliases followed")
        if not frame.is_mapping:
            return Sequence(frame.line, tuple(frame.children), size)
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key, value in zip(frame.children[::2], frame.children[1::2], strict=True):
            if not isinstance(key, Scalar) or not isinstance(key.value, str):
                self._problems.add(key.line, "a key is not a text — put it in quotes")
            elif key.value in entries:
                first = lines[key.value]
                self._problems.add(key.line, f"the key '{key.value}' is on line {first} already")
            else:
                entries[key.value] = value
                lines[key.value] = key.line
        return Mapping(frame.line, entries, lines, size)
