"""Saved runs: a side of a relation in a sealed file, of which only what a query touches is read.

The neighbours of a few nodes take a few blocks of the file, whatever its size; each block is
checked when it is first read. A pass over all runs takes them into memory, once, and so does
reading as many of them bit by bit. Runs follow from the versions they were made of, so where a
block is damaged the same runs are made anew, with every entry where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from omnigraph.index.arrays import AnyArray, BoolArray, IntArray
from omnigraph.index.runs import Csr, WholeRuns, with_room
from omnigraph.index.sealed_file import Damaged, SealedFile

_IN_MEMORY = "flat"
_T = TypeVar("_T")


class SavedRuns(WholeRuns):
    """The same as a CSR. `mend` makes it anew, when told what is damaged.

    Raises:
        Damaged: The file has no such side.
    """

    edges: ClassVar[None] = None
    rooms: ClassVar[tuple[()]] = ()

    def __init__(self, file: SealedFile, side: str, mend: Callable[[Damaged], Csr]) -> None:
        try:
            self.offsets = file.sections[f"{side}.offsets"]
            self.targets = file.sections[f"{side}.targets"]
            self._loops = file.sections[f"{side}.loops"]
            self._degree_max = int(file.facts[f"{side}.degree_max"])
        except (KeyError, TypeError, ValueError) as error:
            raise Damaged(str(file.path)) from error
        self._mend = mend
        self._taken = 0

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    @property
    def count(self) -> int:
        return len(self.targets)

    @cached_property
    def flat(self) -> Csr:
        """All runs, in memory."""
        try:
            offsets = _widen(self.offsets.all())
            return with_room(Csr(offsets, _widen(self.targets.all()), None))
        except Damaged as error:
            return self._mend(error)

    def runs(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        saved = self.offsets
        self._taken += len(positions)
        return self._read(
            lambda: (_widen(saved.at(positions)), _widen(saved.at(positions + 1))),
            lambda csr: csr.runs(positions),
        )

    def neighbours(self, entries: IntArray) -> IntArray:
        self._taken += len(entries)
        return self._read(
            lambda: _widen(self.targets.at(entries)), lambda csr: csr.neighbours(entries)
        )

    @property
    def end(self) -> int:
        return self.count

    @property
    def degree_max(self) -> int:
        return self._degree_max

    @property
    def only_targets(self) -> IntArray:
        return self.flat.only_targets

    @cached_property
    def degree(self) -> IntArray:
        return self._read(lambda: np.diff(_widen(self.offsets.all())), lambda csr: csr.degree)

    @cached_property
    def has_neighbour(self) -> BoolArray:
        return np.asarray(self.degree > 0)

    @cached_property
    def loops(self) -> BoolArray:
        def read() -> BoolArray:
            looping = np.zeros(self.size, dtype=bool)
            looping[self._loops.all()] = True
            return looping

        return self._read(read, lambda csr: csr.loops)

    @property
    def nbytes(self) -> int:
        """What it comes to hold when all of it is used."""
        return self.count * 9 + self.size * 26

    def _read(self, saved: Callable[[], _T], in_memory: Callable[[Csr], _T]) -> _T:
        if _IN_MEMORY in self.__dict__ or self._taken > self.count + self.size:
            return in_memory(self.flat)
        try:
            return saved()
        except Damaged:
            return in_memory(self.flat)


def list_arrays(side: str, csr: Csr) -> dict[str, AnyArray]:
    """The arrays of a side as they are saved: in the smallest integers that hold them."""
    return {
        f"{side}.offsets": _narrow(csr.offsets),
        f"{side}.targets": _narrow(csr.targets),
        f"{side}.loops": _narrow(np.flatnonzero(csr.loops)),
    }


def _widen(positions: AnyArray) -> IntArray:
    return positions.astype(np.int64)


def _narrow(positions: IntArray) -> AnyArray:
    return positions.astype(np.min_scalar_type(int(positions.max(initial=0))))
