"""Relate: which files are nodes, which are edges between them, and by which columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass
from omnigraph.infer.guess import ColumnGuess, guess_column
from omnigraph.infer.sample import Sample, type_stem
from omnigraph.infer.written import USUAL, Written

_KEY_NAMES = re.compile(r"(^|_)(id|key|slug|code|uuid|doi|isbn|name)$", re.IGNORECASE)
_END_NAMES = frozenset({"from", "to", "src", "dst", "source", "target"})
_SHARE_MIN = 0.9
"""So much of a column has to be keys of another file, of which only a part may have been read."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that holds keys of another file."""

    column: ColumnGuess
    target: str


@dataclass(frozen=True, slots=True)
class FileGuess:
    """One file: the type of its rows and what they hold. `ends` are those of an edge."""

    path: str
    type_name: str
    rows: int
    is_whole: bool
    columns: tuple[ColumnGuess, ...]
    key: ColumnGuess | None = None
    references: tuple[Reference, ...] = ()
    ends: tuple[Reference, Reference] | None = None
    is_keyed: bool = False
    ragged: int = 0
    written: Written = USUAL


def relate_files(samples: Sequence[Sample]) -> tuple[FileGuess, ...]:
    """Guess every file, and how they hang together."""
    files = [_guess_file(sample) for sample in samples]
    keys = {file.type_name: file.key.texts for file in files if file.key is not None}
    related = [_relate(file, keys) for file in files]
    # Only what is a node is an end: a file may hold keys of one that turned out to be an edge.
    nodes = {file.type_name for file in related if file.ends is None}
    return tuple(
        file if file.ends is None or {end.target for end in file.ends} <= nodes else _as_node(file)
        for file in related
    )


def _guess_file(sample: Sample) -> FileGuess:
    columns = tuple(
        guess_column(name, sample.rows.column(number))
        for number, name in enumerate(sample.rows.column_names)
    )
    name = to_type_name(type_stem(sample.path))
    key = _choose_key(columns, name)
    rows = sample.rows.num_rows
    return FileGuess(
        sample.path,
        name,
        rows,
        sample.is_whole,
        columns,
        key,
        ragged=sample.ragged,
        written=sample.written,
    )


def to_type_name(stem: str) -> str:
    """`blog_posts` → `BlogPost`: a word per part, the last one without its plural s."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", stem) if word] or ["Row"]
    last = words[-1]
    if last.lower().endswith("ies") and len(last) > 4:
        last = f"{last[:-3]}y"
    elif last.lower().endswith("s") and not last.lower().endswith(("ss", "us", "is")):
        last = last[:-1]
    name = "".join(word[0].upper() + word[1:] for word in [*words[:-1], last or "Row"])
    return name if name[0].isalpha() else f"T{name}"


def _choose_key(columns: tuple[ColumnGuess, ...], type_name: str) -> ColumnGuess | None:
    """The unique column that is most likely what a row is known by."""
    unique = [each for each in columns if each.is_unique]

    def rank(column: ColumnGuess) -> tuple[bool, bool, int]:
        name = column.column.lower()
        is_own = name in ("id", f"{type_name.lower()}_id", f"{type_name.lower()}id")
        return not is_own, _KEY_NAMES.search(name) is None, columns.index(column)

    return min(unique, key=rank, default=None)


def _relate(file: FileGuess, keys: dict[str, pa.Array]) -> FileGuess:
    found = [_find_reference(column, file, keys) for column in file.columns]
    references = tuple(each for each in found if each is not None)
    file = replace(file, references=references)
    has_own_key = file.key is not None and not any(each.column is file.key for each in references)
    if len(references) != 2 or has_own_key:
        return file
    source, target = references
    pairs = pa.table({"src": source.column.texts, "dst": target.column.texts})
    is_keyed = len(pairs.group_by(["src", "dst"]).aggregate([])) == pairs.num_rows
    return replace(file, ends=(source, target), is_keyed=is_keyed)


def _as_node(file: FileGuess) -> FileGuess:
    return replace(file, ends=None, is_keyed=False)


def _find_reference(
    column: ColumnGuess, file: FileGuess, keys: dict[str, pa.Array]
) -> Reference | None:
    """The other file whose keys a column holds; the one that its name resembles, of several."""
    if column.texts is None:
        return None
    # Numbers from 1 on are in every such column; only the name says which rows they mean.
    is_common = not pa.types.is_string(column.source_type) or column is file.key
    values = column.texts.drop_null()
    if len(values) == 0:
        return None
    fitting = [
        name
        for name, known in keys.items()
        if name != file.type_name
        and (not is_common or _is_named_after(column, name))
        and pc.mean(pc.is_in(values, known).cast(pa.int8())).as_py() >= _SHARE_MIN
    ]
    fitting.sort(key=lambda name: (name.lower() not in column.column.lower(), name))
    return Reference(column, fitting[0]) if fitting else None


def _is_named_after(column: ColumnGuess, type_name: str) -> bool:
    name = column.column.lower()
    return name in _END_NAMES or type_name.lower() in name.replace("_", "")
