"""Binding: the columns of a file meet the properties of a type, before a row is read.

What a user says about the files of a type (`RowRules`) and the columns that a file has become a
`RowForm`. Everything that is wrong with the columns is reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from omnigraph.catalog import EdgeType, EntityType
from omnigraph.catalog.model import Property
from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, with_suggestion
from omnigraph.pipeline.model import RowForm, TextForm
from omnigraph.write.bad_rows import excerpt

ENDS = {"from": "src", "to": "dst", "src": "src", "dst": "dst"}
_END_NAMES = {"src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class RowRules:
    """What is said about the files of one type: `columns` maps columns to properties."""

    entity: EntityType
    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    text: TextForm = TextForm()

    def target(self, column: str) -> str:
        """The property, or structural column, that a column of a file fills."""
        named = self.columns.get(column, column)
        return ENDS.get(named, named) if isinstance(self.entity, EdgeType) else named

    def to_form(self) -> RowForm:
        """The form of a file whose rows name their own columns."""
        columns = tuple((column, self.target(column)) for column in self.columns)
        constants = tuple(self.constants.items())
        return RowForm(self.entity.table_key, columns, constants, text=self.text)


def bind_columns(rules: RowRules, names: Sequence[str], path: str) -> RowForm:
    """Decide which property each column of a file fills.

    Raises:
        BadRequestError: Columns are unknown, missing, repeated, or fill one property together.
    """
    used = [(name, rules.target(name)) for name in names if name not in rules.ignored]
    problems = [
        *_find_repeated(names),
        *_find_absent(rules, names),
        *_find_unknown(rules, used),
        *_find_shared(rules, used),
        *_find_missing(rules, {target for _, target in used} | rules.constants.keys()),
    ]
    if problems:
        raise BadRequestError(_describe(path, problems, names))
    return replace(rules.to_form(), columns=tuple(used), names=tuple(names))


def known_targets(entity: EntityType) -> set[str]:
    """What a column may be called, or mapped to."""
    return {*entity.structural_columns, *entity.properties} | (
        ENDS.keys() if isinstance(entity, EdgeType) else set()
    )


def _find_repeated(names: Sequence[str]) -> list[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    return [f"the column {excerpt(name)} is there more than once" for name in repeated]


def _find_absent(rules: RowRules, names: Sequence[str]) -> list[str]:
    wanted = sorted((rules.columns.keys() | rules.ignored) - set(names))
    return [with_suggestion(f"there is no column {excerpt(name)}", name, names) for name in wanted]


def _find_unknown(rules: RowRules, used: Sequence[tuple[str, str]]) -> list[str]:
    entity = rules.entity
    known = {*entity.structural_columns, *entity.properties}
    return [
        with_suggestion(
            f"{entity.name} has no property {excerpt(target)}", target, known_targets(entity)
        )
        + (f" (for the column {excerpt(name)})" if name != target else "")
        for name, target in used
        if target not in known
    ]


def _find_shared(rules: RowRules, used: Sequence[tuple[str, str]]) -> list[str]:
    by_target: dict[str, list[str]] = {}
    for name, target in used:
        by_target.setdefault(target, []).append(name)
    for name in rules.constants:
        by_target.setdefault(name, []).append("a constant")
    return [
        f"`{_END_NAMES.get(target, target)}` is filled more than once: by {', '.join(names)}"
        for target, names in by_target.items()
        if len(set(names)) > 1
    ]


def _find_missing(rules: RowRules, filled: set[str]) -> list[str]:
    entity = rules.entity
    missing = [
        f"no column for the required property `{each.name}`"
        for each in entity.properties.values()
        if each.name not in filled and not _may_be_missing(each)
    ]
    if isinstance(entity, EdgeType):
        ends = [name for name, column in (("from", "src"), ("to", "dst")) if column not in filled]
        missing += [f"no column for `{name}`, an end of the edge" for name in ends]
    return missing


def _may_be_missing(each: Property) -> bool:
    return each.type.nullable or each.embed is not None or each.default is not None


def _describe(path: str, problems: list[str], names: Sequence[str]) -> str:
    shown = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    if len(problems) == 1:
        stop = "" if problems[0].endswith("?") else ";"
        return f"{path}: {problems[0]}{stop} its columns are {shown} — nothing was written"
    lines = [f"{path}: {len(problems)} problems with its columns, which are {shown}:"]
    return "\n".join([*lines, *(f"  {each}" for each in problems), "nothing was written"])
