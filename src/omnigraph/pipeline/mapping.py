"""Mapping: a YAML file that says which files hold which type, and which column is which property.

    files:
      - file: papers/*.csv           # a file, directory or pattern, from where the mapping is
        type: Paper
        columns: {"Paper Title": title}    # column: property; others keep their names
        constants: {source: arxiv}
        ignore: [notes]
      - file: cites.parquet
        type: Cites
        from: citing                 # the columns that hold the ends of an edge
        to: cited

Beside these `delimiter`, `encoding`, `nulls`, `decimal`, `dates`, `lists` and `header` say how a
CSV spells values. Everything that is wrong with the file is reported at once, by line and column.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import field

from omnigraph.catalog import Catalog, EdgeType, EntityType
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, OmnigraphError
from omnigraph.pipeline.binding import ENDS, RowRules, known_targets
from omnigraph.pipeline.model import TextForm
from omnigraph.write.convert import scalar_from_value
from omnigraph.yaml_fields import Fields, quote, to_plain
from omnigraph.yaml_text import Node, Problems, read_yaml

_KEYS = (
    *("file", "type", "columns", "from", "to", "constants", "ignore"),
    *("delimiter", "encoding", "nulls", "decimal", "dates", "lists", "header"),
)


@dataclass(frozen=True, slots=True)
class MappedFiles:
    """Files, by a path or pattern, and what is said about their rows."""

    pattern: str
    rules: RowRules


def read_mapping(path: str, catalog: Catalog, base: str | None = None) -> list[MappedFiles]:
    """Read a mapping. Its patterns are relative to `base`, or to where the mapping is.

    Raises:
        BadRequestError: The file cannot be read, or says something that cannot be.
    """
    problems = Problems(path, _refuse)
    reader = _Reader(Fields(problems, takes_numbers=True), catalog)
    found = reader.read(read_yaml(_read_text(path), problems))
    problems.raise_if_any()
    folder = os.path.dirname(path) if base is None else base
    return [MappedFiles(_join(folder, each.pattern), each.rules) for each in found]


def list_patterns(path: str) -> list[str]:
    """The files that a mapping names, which have to be in or below its directory.

    Nothing else is checked: this is for mappings that go to a server, or came from a client.

    Raises:
        BadRequestError: The mapping cannot be read, or names files elsewhere.
    """
    problems = Problems(path, _refuse)
    fields = Fields(problems, takes_numbers=True)
    root = fields.mapping(read_yaml(_read_text(path), problems), "", known=None)
    found: list[str] = []
    for item in fields.items(root.get("files"), "files"):
        node = fields.mapping(item, "a file", known=None).get("file")
        pattern = fields.text(node, "file")
        if node is None or pattern is None:
            continue
        if "://" in pattern or pattern.startswith("/") or ".." in pattern.split("/"):
            text = f"{quote(pattern)} is not below the mapping, and only those are sent to a server"
            fields.note(node.mark, "file", text)
        found.append(pattern)
    problems.raise_if_any()
    return found


def _refuse(lines: list[str]) -> OmnigraphError:
    return BadRequestError("\n".join([*lines, "nothing was written"]))


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadRequestError(
            f"cannot read the mapping '{path}': {str(reason).lower()} — nothing was written"
        ) from None


def _join(folder: str, pattern: str) -> str:
    return pattern if "://" in pattern else os.path.join(folder, pattern)


@dataclass(slots=True)
class _Reader:
    fields: Fields
    catalog: Catalog
    found: list[MappedFiles] = field(default_factory=list)

    def read(self, root: Node) -> list[MappedFiles]:
        entries = self.fields.mapping(root, "", known=("version", "files"), required=("files",))
        self.fields.version(entries.get("version"))
        for item in self.fields.items(entries.get("files"), "files"):
            self._read_entry(item)
        return self.found

    def _read_entry(self, item: Node) -> None:
        entry = self.fields.mapping(item, "a file", known=_KEYS, required=("file", "type"))
        pattern = self.fields.text(entry.get("file"), "file")
        name = self.fields.choice(
            entry.get("type"), "type", [*self.catalog.nodes, *self.catalog.edges]
        )
        if pattern is None or name is None:
            return
        entity = self.catalog.node(name) or self.catalog.edge(name)
        assert entity is not None
        rules = RowRules(
            entity,
            self._read_columns(entry, entity),
            self._read_constants(entry.get("constants"), entity),
            frozenset(self.fields.texts(entry.get("ignore"), "ignore", "a column")),
            self._read_text_form(entry),
        )
        self.found.append(MappedFiles(pattern, rules))

    def _read_columns(self, entry: Mapping[str, Node], entity: EntityType) -> dict[str, str]:
        columns: dict[str, str] = {}
        known = sorted(known_targets(entity))
        for column, node in self.fields.entries(entry.get("columns"), "columns"):
            target = self.fields.choice(node, f"the column {quote(column)}", known)
            if target is not None:
                columns[column] = target
        for end in ("from", "to"):
            named = entry.get(end)
            end_column = self.fields.text(named, end)
            if named is None or end_column is None:
                continue
            if not isinstance(entity, EdgeType):
                self.fields.note(named.mark, end, f"{entity.name} is a node type, without ends")
            elif end_column in columns:
                self.fields.note(named.mark, end, f"the column {quote(end_column)} is mapped twice")
            else:
                columns[end_column] = end
        self._refuse_shared(entry, columns)
        return columns

    def _refuse_shared(self, entry: Mapping[str, Node], columns: Mapping[str, str]) -> None:
        targets = [ENDS.get(target, target) for target in columns.values()]
        for target in sorted({each for each in targets if targets.count(each) > 1}):
            place = entry.get("columns") or entry["file"]
            self.fields.note(place.mark, "columns", f"several columns are mapped to '{target}'")

    def _read_constants(self, node: Node | None, entity: EntityType) -> dict[str, object]:
        constants: dict[str, object] = {}
        for name, each in self.fields.entries(node, "constants"):
            known = entity.properties.get(name)
            if known is None:
                hint = self.fields.hint(name, entity.properties)
                text = f"{entity.name} has no property {quote(name)}{hint}"
                self.fields.note(each.mark, "constants", text)
                continue
            value = to_plain(each)
            try:
                scalar_from_value(known.type, value, name=name)
            except OmnigraphError as error:
                self.fields.note(each.mark, "constants", str(error))
            constants[name] = value
        return constants

    def _read_text_form(self, entry: Mapping[str, Node]) -> TextForm:
        fields = self.fields
        return TextForm(
            delimiter=self._read_mark(entry.get("delimiter"), "delimiter"),
            encoding=self._read_encoding(entry.get("encoding")),
            nulls=tuple(fields.texts(entry.get("nulls"), "nulls", "a word")),
            decimal=fields.choice(entry.get("decimal"), "decimal", (".", ",")) or ".",
            dates=fields.text(entry.get("dates"), "dates"),
            lists=self._read_mark(entry.get("lists"), "lists"),
            header=tuple(fields.texts(entry.get("header"), "header", "a column")),
        )

    def _read_mark(self, node: Node | None, where: str) -> str | None:
        text = str(to_plain(node)) if node is not None else None
        if node is None or (text is not None and len(text) == 1 and text.isascii()):
            return text
        self.fields.note_wrong(node, where, 'one character, as in "," or "\\t"')
        return None

    def _read_encoding(self, node: Node | None) -> str | None:
        name = self.fields.text(node, "encoding")
        if node is None or name is None:
            return None
        try:
            found = codecs.lookup(name).name
        except LookupError:
            self.fields.note(node.mark, "encoding", f"{quote(name)} is unknown")
            return None
        return None if found == "utf-8" else found
