"""DuckDB: a table per type in a database file; it needs no index for scans and joins."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import social
from benchmarks.peers import with_numbers
from benchmarks.peers.sql import POINT, QUESTIONS

# Not an import: the types of a system that may not be installed are not checked.
duckdb: Any = import_module("duckdb")


class DuckDb:
    version = str(duckdb.__version__)
    questions = social.QUESTIONS

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        self._connection = duckdb.connect(str(folder / "social.duckdb"))
        for name, frame in frames.items():
            self._connection.register("incoming", with_numbers(frame))
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM incoming')
            self._connection.unregister("incoming")
        self._connection.execute('CREATE UNIQUE INDEX person_key ON "Person" (key)')
        self._connection.execute("CHECKPOINT")

    def ask(self, question: str) -> list[float]:
        params = dict(social.PARAMS.get(question, {}))
        rows = self._connection.execute(QUESTIONS[question], params).fetchall()
        return [row[-1] for row in rows]

    def find(self, key: int) -> int:
        [(age,)] = self._connection.execute(POINT, {"key": key}).fetchall()
        return int(age)


def make() -> DuckDb:
    return DuckDb()
