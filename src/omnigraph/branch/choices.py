"""Choices: resolve conflicts by keeping one side of each, as the caller says.

`"ours"` keeps what the target has, `"theirs"` what the source has; for everything, or one by one:

    {"node:Person": "theirs", "edge:Knows": {"01J…": "ours"}}
    [{"table_key": "node:Person", "row_id": "lin", "take": "theirs"}]

Of a row that both sides have, properties can be chosen one by one, or given:

    {"node:Person": {"lin": {"title": "theirs", "team": "ours", "room": {"value": "3.14"}}}}

What only one side changed is then that side's unless it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from omnigraph.dataclass import dataclass
from omnigraph.errors import BadRequestError, MergeConflict

Side: TypeAlias = Literal["ours", "theirs"]
Take: TypeAlias = Side | Mapping[str, Side | Mapping[str, Any]]
Resolution: TypeAlias = Side | Mapping[str, Side | Mapping[str, Take]] | Sequence[Mapping[str, Any]]

SIDES = ("ours", "theirs")
VALUE = "value"


@dataclass(frozen=True, slots=True)
class Given:
    """A value that neither side need have."""

    value: Any


Picks: TypeAlias = Mapping[str, Side | Given]
Choice: TypeAlias = Side | Picks
_Scope: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Choices:
    """What to keep, by table and row; None is the word for all rows or all tables."""

    by_row: Mapping[_Scope, Choice]

    @classmethod
    def read(cls, resolution: Resolution | None) -> Choices:
        """Read what the caller gave.

        Raises:
            BadRequestError: It is in none of the known forms.
        """
        match resolution:
            case None:
                return cls({})
            case str():
                return cls({(None, None): _side(resolution)})
            case Mapping():
                return cls(dict(_pairs_of_mapping(resolution)))
            case list() | tuple():
                return cls(dict(_pair_of_item(item) for item in resolution))
            case _:
                raise _unreadable(resolution)

    def find(self, conflict: MergeConflict) -> Choice | None:
        """What the caller said about a conflict, the closest word first."""
        key, row = conflict.table_key, conflict.row_id
        for scope in ((key, row), (key, None), (None, None)):
            if scope in self.by_row:
                return self.by_row[scope]
        return None

    def check_used(self, conflicts: Iterable[MergeConflict]) -> None:
        """Refuse a choice that would silently do nothing.

        It is about a row that is not in conflict, or about a property in which the sides agree.
        """
        differing: dict[_Scope, set[str]] = {}
        for each in conflicts:
            names = differing.setdefault((each.table_key, each.row_id), set())
            if each.ours is not None and each.theirs is not None:
                names.update(each.ours)
        for (key, row), choice in self.by_row.items():
            if row is not None and (key, row) not in differing:
                raise BadRequestError(
                    f"there is no conflict on {key} '{row}' to resolve — preview the merge to see "
                    "the conflicts there are"
                )
            if not isinstance(choice, str):
                _check_names(f"{key} '{row}'", choice, differing[key, row])


def _check_names(subject: str, picks: Picks, differing: set[str]) -> None:
    if not differing:
        raise BadRequestError(
            f"the two sides of {subject} do not both have the row with values that differ, so its "
            "properties cannot be chosen one by one — nothing was merged; choose 'ours' or 'theirs'"
        )
    for name in picks:
        if name not in differing:
            raise BadRequestError(
                f"there is no conflict on '{name}' of {subject} to resolve: the sides differ in "
                f"{', '.join(sorted(differing))} — nothing was merged"
            )


def _pairs_of_mapping(resolution: Mapping[str, Any]) -> Iterator[tuple[_Scope, Choice]]:
    for key, choice in resolution.items():
        if isinstance(choice, Mapping):
            for row, take in choice.items():
                yield (key, row), _choice(take)
        else:
            yield (key, None), _side(choice)


def _pair_of_item(item: Any) -> tuple[_Scope, Choice]:
    if not isinstance(item, Mapping) or "table_key" not in item or "take" not in item:
        raise _unreadable(item)
    key, row, take = str(item["table_key"]), item.get("row_id"), item["take"]
    if row is None:
        return (key, None), _side(take)
    if not isinstance(row, str):
        raise _unreadable(item)
    return (key, row), _choice(take)


def _choice(take: Any) -> Choice:
    if isinstance(take, Mapping):
        return {name: _pick(each) for name, each in take.items()}
    return _side(take)


def _pick(pick: Any) -> Side | Given:
    if isinstance(pick, Mapping) and pick.keys() == {VALUE}:
        return Given(pick[VALUE])
    return _side(pick)


def _side(side: Any) -> Side:
    if side not in SIDES:
        raise _unreadable(side)
    return cast("Side", side)


def _unreadable(value: Any) -> BadRequestError:
    return BadRequestError(
        f"cannot resolve with {value!r} — give 'ours' or 'theirs', a mapping of table keys to "
        "these or to row ids, or a list of objects with table_key, row_id and take; of a row, also "
        "a mapping of properties to 'ours', 'theirs' or {'value': …}"
    )
