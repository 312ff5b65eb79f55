"""Document: a YAML file as values that know where they stand, so that an error names file and line.

Values are asked for what they should be (`text`, `number`, `table`); what they are not is a
`ConfigError`. Keys nobody asks for become remarks, not errors: a newer file still loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from yaml import Node

VALUES_MAX = 100_000
_NAMES = {dict: "a table", list: "a list", str: "a text", bool: "true or false", int: "a number"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a file: a scalar, a list of values, or a table of values by key."""

    raw: Any
    place: str
    path: str

    def wrong(self, expected: str) -> ConfigError:
        found = _NAMES.get(type(self.raw), repr(self.raw))
        return ConfigError(f"{self.place}: {self.path} is {found}, expected {expected}")

    def text(self) -> str:
        """A text that is not blank, trimmed; a bare number counts as written."""
        if isinstance(self.raw, bool) or not isinstance(self.raw, str | int | float):
            raise self.wrong("a text")
        found = str(self.raw).strip()
        if not found:
            raise ConfigError(f"{self.place}: {self.path} is blank")
        return found

    def flag(self) -> bool:
        if not isinstance(self.raw, bool):
            raise self.wrong("true or false")
        return self.raw

    def number(self, *, at_least: int) -> int:
        if isinstance(self.raw, bool) or not isinstance(self.raw, int) or self.raw < at_least:
            raise self.wrong(f"a whole number of at least {at_least}")
        return self.raw

    def choice(self, known: Sequence[str]) -> str:
        found = self.text()
        if found not in known:
            raise ConfigError(
                f"{self.place}: {self.path} is '{found}', expected one of {', '.join(known)}"
            )
        return found

    def texts(self) -> tuple[str, ...]:
        if not isinstance(self.raw, list):
            raise self.wrong("a list")
        return tuple(each.text() for each in self.raw)

    def plain(self) -> Any:
        """The value without places, as JSON has it."""
        match self.raw:
            case dict():
                return {name: each.plain() for name, each in self.raw.items()}
            case list():
                return [each.plain() for each in self.raw]
            case None | str() | bool() | int() | float():
                return self.raw
            case _:
                return str(self.raw)


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of one place of a file. `remarks` collects what is odd but no error."""

    entries: Mapping[str, Value]
    place: str
    path: str
    remarks: list[str] = field(default_factory=list)

    def get(self, name: str) -> Value | None:
        """The value of a key; a key without a value is as good as absent."""
        found = self.entries.get(name)
        return None if found is None or found.raw is None else found

    def text(self, name: str) -> str | None:
        found = self.get(name)
        return None if found is None else found.text()

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.get(name)
        return () if found is None else found.texts()

    def required(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            raise ConfigError(f"{self.place}: {self.path}.{name} is missing")
        return found

    def table(self, name: str) -> Table:
        """The table under a key; an empty one when it is absent."""
        found = self.get(name)
        if found is None:
            return Table({}, self.place, self._path_of(name), self.remarks)
        return self._as_table(found)

    def tables(self, name: str) -> Iterator[tuple[str, Table]]:
        """The tables that a key holds by name."""
        for key, found in self.table(name).entries.items():
            if found.raw is None:
                yield key, Table({}, found.place, found.path, self.remarks)
            else:
                yield key, self._as_table(found)

    def only(self, *known: str) -> Table:
        """Remark on every key that is not known."""
        for name in self.entries:
            if name not in known:
                hint = did_you_mean(name, known)
                where, path = self.entries[name].place, self._path_of(name)
                self.remarks.append(
                    f"{where}: unknown key {path} is ignored" + (f" — {hint}" if hint else "")
                )
        return self

    def _as_table(self, value: Value) -> Table:
        if not isinstance(value.raw, dict):
            raise value.wrong("a table")
        return Table(value.raw, value.place, value.path, self.remarks)

    def _path_of(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def read_document(path: Path) -> Table | None:
    """The top table of a YAML file; None when there is no file.

    Raises:
        ConfigError: The file cannot be read, is not YAML, has a key twice, or is no table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read '{path}': {reason}") from None
    return parse_document(text, str(path))


def parse_document(text: str, name: str) -> Table:
    """The top table of a YAML text."""
    import yaml  # most commands meet no file

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        found = Value({}, f"{name}:1", "") if node is None else _Builder(name).value(node, "")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise ConfigError(
            f"{name}:{line}: this is not YAML — look at the indentation, quotes, brackets and "
            "colons here"
        ) from None
    except yaml.YAMLError:
        raise ConfigError(
            f"{name}:1: this is not YAML — it holds a character that YAML does not allow"
        ) from None
    except RecursionError:
        raise ConfigError(f"{name}:1: the file is nested without end") from None
    if not isinstance(found.raw, dict):
        kind = _NAMES.get(type(found.raw), "a value")
        raise ConfigError(f"{found.place}: the file is {kind}, expected a table of settings")
    return Table(found.raw, found.place, "")


@dataclass(slots=True)
class _Builder:
    """YAML nodes → values of one file, within a limit: references can repeat each other."""

    name: str
    values_left: int = VALUES_MAX

    def value(self, node: Node, path: str) -> Value:
        import yaml

        place = f"{self.name}:{node.start_mark.line + 1}"
        self.values_left -= 1
        if self.values_left < 0:
            raise ConfigError(f"{place}: more than {VALUES_MAX} values")
        match node:
            case yaml.MappingNode():
                return Value(self._entries(node.value, path), place, path)
            case yaml.SequenceNode():
                items = [self.value(each, f"{path}[{at}]") for at, each in enumerate(node.value)]
                return Value(items, place, path)
            case _:
                try:
                    raw = yaml.SafeLoader("").construct_object(node)
                except (yaml.YAMLError, ValueError):
                    raise ConfigError(f"{place}: {path or 'the file'} is no plain value") from None
                return Value(raw, place, path)

    def _entries(self, pairs: Sequence[tuple[Node, Node]], path: str) -> dict[str, Value]:
        entries: dict[str, Value] = {}
        for key_node, node in pairs:
            place = f"{self.name}:{key_node.start_mark.line + 1}"
            key = str(key_node.value) if isinstance(key_node.value, str) else ""
            if not key.strip():
                raise ConfigError(f"{place}: a key has to be a text")
            full = f"{path}.{key}" if path else key
            if key in entries:
                raise ConfigError(f"{place}: {full} is there twice")
            # The place of a setting is where its key stands.
            entries[key] = Value(self.value(node, full).raw, place, full)
        return entries
