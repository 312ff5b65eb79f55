"""Plain Lance: a dataset per type, a B-tree on the key. It has no joins, so no questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.peers import with_numbers


class PlainLance:
    version = lance.__version__
    questions = ()

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        for name, frame in frames.items():
            lance.write_dataset(with_numbers(frame), str(folder / name))
        self._people = lance.dataset(str(folder / "Person"))
        self._people.create_scalar_index("key", "BTREE")

    def ask(self, question: str) -> list[float]:
        raise NotImplementedError(question)

    def find(self, key: int) -> int:
        rows = self._people.to_table(columns=["age"], filter=f"key = {key}")
        return int(rows["age"][0].as_py())


def make() -> PlainLance:
    return PlainLance()
