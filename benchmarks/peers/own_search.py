"""Omnigraph as a searcher, with its defaults."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og
from benchmarks.documents import ASKED, DIMENSIONS, Documents

SCHEMA = f"""
node Doc {{
    key: String @key
    text: String @index
    vector: Vector({DIMENSIONS}) @index
}}
"""
QUERIES = f"""
query match($q: String) {{
    match {{ $d: Doc search($d.text, $q) }}
    return {{ $d.key }} order {{ bm25($d.text, $q) }} limit {ASKED}
}}
query nearest($v: Vector({DIMENSIONS})) {{
    match {{ $d: Doc }} return {{ $d.key }} order {{ nearest($d.vector, $v) }} limit {ASKED}
}}
query fuse($q: String, $v: Vector({DIMENSIONS})) {{
    match {{ $d: Doc }} return {{ $d.key }}
    order {{ rrf(nearest($d.vector, $v), bm25($d.text, $q)) }} limit {ASKED}
}}
query add($key: String, $text: String, $vector: Vector({DIMENSIONS})) {{
    insert Doc {{ key: $key, text: $text, vector: $vector }}
}}
"""


class OwnSearch:
    version = og.__version__
    has_hybrid = True

    def load(self, documents: Documents, folder: Path) -> None:
        self._graph = og.init(folder / "graph", schema=SCHEMA)
        self._graph.load_dataframes({"Doc": documents.table}, mode="append", engine="inline")
        self._graph.optimize()

    def open_again(self, folder: Path) -> None:
        self._graph.close()
        self._graph = og.open(folder / "graph")

    def match(self, text: str) -> list[str]:
        return self._ask("match", q=text)

    def nearest(self, vector: list[float]) -> list[str]:
        return self._ask("nearest", v=vector)

    def fuse(self, text: str, vector: list[float]) -> list[str]:
        return self._ask("fuse", q=text, v=vector)

    def add(self, key: str, documents: Documents) -> None:
        self._graph.mutate(QUERIES, "add", documents.make_row(key))

    def _ask(self, name: str, **params: object) -> list[str]:
        return [row["d.key"] for row in self._graph.query(QUERIES, name, params).rows()]


def make() -> OwnSearch:
    return OwnSearch()
