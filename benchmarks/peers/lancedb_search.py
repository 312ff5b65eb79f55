"""LanceDB as a searcher: full text, vectors by partitions, and both fused by its own reranker."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.documents import ASKED, Documents

# Not a dependency of the checks: it takes part when it is there.
lancedb: Any = import_module("lancedb")
rerankers: Any = import_module("lancedb.rerankers")


class LanceDbSearch:
    version = lancedb.__version__
    has_hybrid = True

    def load(self, documents: Documents, folder: Path) -> None:
        table = lancedb.connect(str(folder / "db")).create_table("docs", documents.table)
        table.create_fts_index("text", with_position=True)
        table.create_index(vector_column_name="vector", index_type="IVF_FLAT", num_partitions=100)
        self.open_again(folder)

    def open_again(self, folder: Path) -> None:
        self._table = lancedb.connect(str(folder / "db")).open_table("docs")

    def match(self, text: str) -> list[str]:
        return _keys(self._table.search(text, query_type="fts").select(["key"]))

    def nearest(self, vector: list[float]) -> list[str]:
        return _keys(self._table.search(vector).nprobes(10).select(["key"]))

    def fuse(self, text: str, vector: list[float]) -> list[str]:
        asked = self._table.search(query_type="hybrid").vector(vector).text(text).nprobes(10)
        return _keys(asked.rerank(rerankers.RRFReranker()).select(["key"]))

    def add(self, key: str, documents: Documents) -> None:
        self._table.add([documents.make_row(key)])


def _keys(query: Any) -> list[str]:
    return [str(each) for each in query.limit(ASKED).to_arrow()["key"].to_pylist()]


def make() -> LanceDbSearch:
    return LanceDbSearch()
