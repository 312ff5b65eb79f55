"""Views: what a variable is bound in, where that is not one table.

    TableView      a type
    UnionView      an interface: the tables of its types one after the other, by type name
    Paths          what a walk followed; Scores what a stage sorted by
    NullableView   any of these, and one position more, where everything is null

So a position tells entities apart whatever their type is, and whether there is one: rows, groups
and orders hold positions and need no case of their own for either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.executor.paths import Paths
from omnigraph.executor.scores import Scores
from omnigraph.index import Selection, TableView
from omnigraph.index.arrays import BoolArray, IntArray
from omnigraph.index.columns import Ranks
from omnigraph.ir.expressions import ID_PROPERTY, TYPE_PROPERTY

_NONE: IntArray = np.empty(0, dtype=np.int64)


class UnionView:
    """The nodes of several types. Those of the first come first; equal ids are apart."""

    def __init__(
        self, name: str, parts: Sequence[TableView], types: Mapping[str, pa.DataType]
    ) -> None:
        self.table_key = f"interface:{name}"
        self.parts = tuple(parts)
        self.type_names = [part.table_key.partition(":")[2] for part in parts]
        self.ends = np.cumsum([part.size for part in parts], dtype=np.int64)
        self.size = int(self.ends[-1]) if parts else 0
        self.types = {TYPE_PROPERTY: pa.utf8(), ID_PROPERTY: pa.utf8(), **types}

    def start_of(self, type_name: str) -> int:
        """The first position of a type."""
        place = self.type_names.index(type_name)
        return int(self.ends[place]) - self.parts[place].size

    def spans(self) -> Iterator[tuple[TableView, int, int]]:
        """Every part, with its first position and the one after its last."""
        for part, end in zip(self.parts, self.ends.tolist(), strict=True):
            yield part, end - part.size, end

    def parts_of(self, positions: IntArray) -> IntArray:
        """The number of the part that each position is in."""
        return np.searchsorted(self.ends, positions, side="right")

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """The values of some columns at these positions, which may repeat."""
        of_part = self.parts_of(positions)
        stored = [name for name in names if name != TYPE_PROPERTY]
        pieces = {name: [pa.array([], self.types[name])] for name in stored}
        order: list[IntArray] = []
        for number, (part, start, _) in enumerate(self.spans()):
            here = np.flatnonzero(of_part == number)
            order.append(here)
            for name, column in part.values(stored, positions[here] - start).items():
                pieces[name].append(column)
        back = np.empty(len(positions), dtype=np.int64)
        back[np.concatenate([*order, _NONE])] = np.arange(len(positions))
        found = {name: pa.concat_arrays(each).take(pa.array(back)) for name, each in pieces.items()}
        if TYPE_PROPERTY in names:
            found[TYPE_PROPERTY] = pa.array(self.type_names, pa.utf8()).take(pa.array(of_part))
        return found


class NullableView:
    """The entities of a view, and null at the position after them."""

    def __init__(self, view: Entities) -> None:
        self.base = view
        self.size = view.size + 1

    @property
    def null(self) -> int:
        """The position of null."""
        return self.base.size

    def known(self, positions: IntArray) -> BoolArray:
        """Where there is an entity."""
        return positions < self.null

    def values(self, names: Sequence[str], positions: IntArray) -> dict[str, pa.Array]:
        """The values of some columns at these positions, which may repeat."""
        known = self.known(positions)
        if known.all():
            return self.base.values(names, positions)
        found = self.base.values(names, positions[known])
        places = pa.array(np.cumsum(known) - 1, mask=~known)
        return {name: column.take(places) for name, column in found.items()}


Entities: TypeAlias = TableView | UnionView | Paths | Scores
View: TypeAlias = Entities | NullableView


def ranks_at(view: View, name: str, positions: IntArray) -> Ranks | None:
    """The ranks of the values at these positions, when the whole column is ranked for it."""
    if isinstance(view, NullableView):
        known = view.known(positions)
        found = ranks_at(view.base, name, positions[known])
        if found is None:
            return None
        codes = np.zeros(len(positions), dtype=found.codes.dtype)
        codes[known] = found.codes
        return Ranks(codes, found.values)
    if not isinstance(view, TableView) or not view.lookup.prefers_ranks(name, len(positions)):
        return None
    ranks = view.lookup.ranks(name)
    return Ranks(ranks.codes[positions], ranks.values)


def join_selections(view: UnionView, parts: Sequence[Selection]) -> Selection:
    """What is selected of each part, as positions of the whole."""
    if all(part.is_all for part in parts):
        return Selection(view.size)
    starts = (start for _, start, _ in view.spans())
    found = [part.positions() + start for part, start in zip(parts, starts, strict=True)]
    return Selection(view.size, positions=np.concatenate(found))
