"""Write: the guesses as a schema with comments, and as a mapping from files to types."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from omnigraph.infer.guess import ColumnGuess
from omnigraph.infer.relate import FileGuess

_ID = "id"


def write_schema(files: Sequence[FileGuess]) -> str:
    """The `.pg` text: nodes first, then the edges between them."""
    ordered = [*(f for f in files if f.ends is None), *(f for f in files if f.ends is not None)]
    heading = "// Inferred from a sample: read it, correct it, then check it with `schema check`.\n"
    return "\n".join([heading, *("\n".join(_declare(file)) + "\n" for file in ordered)])


def _declare(file: FileGuess) -> Iterator[str]:
    rows = f"{file.rows} rows" if file.is_whole else f"the first {file.rows} rows"
    left_out = f"; {file.ragged} of another length left out" if file.ragged else ""
    yield f"// {os.path.basename(file.path)}: {rows}{left_out}"
    for word, value in file.written.list_settings():
        yield f"// {word} are written `{value}`: load it with the mapping"
    if file.ends is None:
        yield f"node {file.type_name} {{"
    else:
        source, target = file.ends
        yield f"edge {file.type_name}: {source.target} -> {target.target} {{"
    yield from (f"    {line}" for line in _list_lines(file))
    yield "}"


def _list_lines(file: FileGuess) -> Iterator[str]:
    ends = [] if file.ends is None else [end.column for end in file.ends]
    for column in file.columns:
        if column in ends:
            continue
        if column.column == _ID:
            yield "// the column `id` is the id of the row, and no property"
        elif column.type is None:
            yield f"// left out: `{column.column}` holds {column.source_type}"
        else:
            yield _property(column, file)
    if file.is_keyed:
        yield "@key(src, dst)"


def _property(column: ColumnGuess, file: FileGuess) -> str:
    words = [f"{column.property}: {column.type}"]
    if column is file.key and file.ends is None:
        words.append("@key")
    notes = [f"keys of {each.target}" for each in file.references if each.column is column]
    if column.property != column.column:
        notes.append(f"the column `{column.column}`")
    if column.is_unique and column is not file.key:
        notes.append("all different")
    return " ".join([*words, *(["//", ", ".join(notes)] if notes else [])])


def write_mapping(files: Sequence[FileGuess]) -> str:
    """The mapping as YAML: per file its type, the ends of edges, and columns of another name.

    It belongs into the directory of the files, or where those of all files meet.
    """
    base = os.path.commonpath([os.path.abspath(os.path.dirname(file.path)) for file in files])
    lines = ["# Which type the rows of each file have, and what its columns are.", "files:"]
    for file in files:
        name = json.dumps(os.path.relpath(file.path, base), ensure_ascii=False)
        lines += [f"  - file: {name}", f"    type: {file.type_name}"]
        for end, word in zip(file.ends or (), ("from", "to"), strict=False):
            lines.append(f"    {word}: {json.dumps(end.column.column, ensure_ascii=False)}")
        renamed = dict(_list_renamed(file))
        if renamed:
            lines.append(f"    columns: {json.dumps(renamed, ensure_ascii=False)}")
        for word, value in file.written.list_settings():
            lines.append(f"    {word}: {json.dumps(value)}")
        ignored = [each.column for each in file.columns if each.type is None]
        if ignored:
            lines.append(f"    ignore: {json.dumps(ignored, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def _list_renamed(file: FileGuess) -> Iterator[tuple[str, str]]:
    ends = [end.column for end in file.ends or ()]
    for column in file.columns:
        is_property = column.type is not None and column not in ends and column.column != _ID
        if is_property and column.column != column.property:
            yield column.column, column.property
