"""Plain Lance as a searcher: an inverted index, and vectors by partitions. It fuses nothing."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa

from benchmarks.documents import ASKED, Documents


class LanceSearch:
    version = lance.__version__
    has_hybrid = False

    def load(self, documents: Documents, folder: Path) -> None:
        data = lance.write_dataset(documents.table, str(folder / "docs"))
        data.create_scalar_index("text", "INVERTED", with_position=True)
        data.create_index("vector", "IVF_FLAT", num_partitions=100)
        self.open_again(folder)

    def open_again(self, folder: Path) -> None:
        self._data = lance.dataset(str(folder / "docs"))

    def match(self, text: str) -> list[str]:
        found = self._data.to_table(columns=["key"], full_text_query=text, limit=ASKED)
        return [str(each) for each in found["key"].to_pylist()]

    def nearest(self, vector: list[float]) -> list[str]:
        asked = {"column": "vector", "q": vector, "k": ASKED, "nprobes": 10}
        found = self._data.to_table(columns=["key"], nearest=asked)
        return [str(each) for each in found["key"].to_pylist()]

    def fuse(self, text: str, vector: list[float]) -> list[str]:
        raise NotImplementedError

    def add(self, key: str, documents: Documents) -> None:
        row = pa.Table.from_pylist([documents.make_row(key)], schema=documents.table.schema)
        self._data = lance.write_dataset(row, self._data, mode="append")


def make() -> LanceSearch:
    return LanceSearch()
