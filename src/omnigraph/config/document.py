"""Document: a YAML file read key by key. Problems are collected and raised together.

A key that is not known is a problem too: a misspelt `policy:` must not pass for an absent one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.errors import ConfigError
from omnigraph.yaml_fields import Fields, to_plain
from omnigraph.yaml_text import Mark, Node, Problems, Scalar, read_yaml

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Table:
    """The entries of one mapping. A key without a value is as good as absent."""

    fields: Fields
    mark: Mark
    path: str
    entries: Mapping[str, Node]

    @property
    def place(self) -> str:
        return self.fields.problems.place(self.mark)

    def text(self, name: str) -> str | None:
        """A text that is not blank, trimmed; a bare number counts as it is written."""
        found = self.fields.text(self.entries.get(name), self._path_to(name))
        return None if found is None else found.strip()

    def require(self, name: str) -> str:
        """The text of a key that has to be there."""
        if name not in self.entries:
            self.note(f"the key '{name}' is missing")
        return self.text(name) or ""

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.fields.texts(self.entries.get(name), self._path_to(name))
        return tuple(each.strip() for each in found)

    def is_scalar(self, name: str) -> bool:
        """Whether a key has one value, and not a list or a table."""
        return isinstance(self.entries.get(name), Scalar)

    def choice(self, name: str, known: tuple[str, ...]) -> str | None:
        return self.fields.choice(self.entries.get(name), self._path_to(name), known)

    def flag(self, name: str) -> bool | None:
        return self.fields.flag(self.entries.get(name), self._path_to(name))

    def number(self, name: str, *, at_least: int) -> int | None:
        return self.fields.number(self.entries.get(name), self._path_to(name), at_least=at_least)

    def file(self, name: str, directory: Path) -> Path | None:
        """A path that is relative to a directory."""
        found = self.text(name)
        return None if found is None else directory / Path(found).expanduser()

    def values(self, name: str) -> dict[str, Any]:
        """A mapping of any values, as JSON has it; an empty one when it is absent."""
        found = self.fields.entries(self.entries.get(name), self._path_to(name))
        return {key: to_plain(node) for key, node in found}

    def table(self, name: str, *known: str) -> Table:
        """The table under a key, which may have these keys only; an empty one when it is absent."""
        absent = Scalar(self.mark, None)
        return _to_table(self.fields, self.entries.get(name, absent), self._path_to(name), known)

    def tables(self, name: str, *known: str) -> Iterator[tuple[str, Table]]:
        """The tables under a key, by their names."""
        path = self._path_to(name)
        for key, node in self.fields.entries(self.entries.get(name), path):
            yield key, _to_table(self.fields, node, f"{path}.{key}", known)

    def note(self, problem: str) -> None:
        self.fields.note(self.mark, self.path, problem)

    def _path_to(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def read_document(
    path: Path,
    read: Callable[[Table], Result],
    *,
    known: tuple[str, ...],
    warnings: list[str] | None = None,
) -> Result | None:
    """What `read` makes of the top table of a YAML file; None when there is no file.

    Raises:
        ConfigError: The file cannot be used; every problem is named with its place.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    return parse_document(text, str(path), read, known=known, warnings=warnings)


def parse_document(
    text: str,
    name: str,
    read: Callable[[Table], Result],
    *,
    known: tuple[str, ...] = (),
    warnings: list[str] | None = None,
) -> Result:
    """What `read` makes of the top table of a YAML text, which may have the known keys only.

    With `warnings` unknown keys are no problems: what is to be said about them is added there.
    """
    problems = Problems(name, lambda lines: ConfigError("\n".join(lines)))
    unknown = None if warnings is None else Problems(name, problems.make_error)
    fields = Fields(problems, takes_numbers=True, warnings=unknown)
    result = read(_to_table(fields, read_yaml(text, problems), "", known))
    problems.raise_if_any()
    if warnings is not None and unknown is not None:
        warnings += unknown.lines()
    return result


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
    return ConfigError(f"cannot read '{path}': {reason}")


def _to_table(fields: Fields, node: Node, path: str, known: tuple[str, ...]) -> Table:
    is_empty = isinstance(node, Scalar) and node.value is None
    entries = {} if is_empty else fields.mapping(node, path, known=known or None)
    return Table(fields, node.mark, path, entries)
