"""Omnigraph itself, with its defaults: durable against a power cut, optimized after the load."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from benchmarks import social


class Omnigraph:
    version = og.__version__
    questions = social.QUESTIONS

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        self._graph = og.init(folder / "graph", schema=social.SCHEMA)
        self._graph.load_dataframes(frames, mode="append", engine="inline")
        self._graph.optimize()
        self._graph.cleanup(keep=1, confirm=True)

    def ask(self, question: str) -> list[float]:
        params = dict(social.PARAMS.get(question, {}))
        return [row["n"] for row in self._graph.query(social.QUERIES, question, params).rows()]

    def find(self, key: int) -> int:
        [row] = self._graph.query(social.QUERIES, "point", {"key": key}).rows()
        return int(row["p.age"])


def make() -> Omnigraph:
    return Omnigraph()
