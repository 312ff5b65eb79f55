"""SQLite: a table per type, a primary key per node type, an index per end of an edge."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from benchmarks import social
from benchmarks.peers import with_numbers
from benchmarks.peers.sql import POINT, QUESTIONS


class Sqlite:
    version = sqlite3.sqlite_version
    questions = social.QUESTIONS

    def load(self, frames: Mapping[str, pa.Table], folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "social.sqlite")
        self._connection.execute("PRAGMA journal_mode = WAL")
        with self._connection:
            for name, frame in frames.items():
                self._fill(name, with_numbers(frame))
        self._connection.execute("ANALYZE")

    def _fill(self, name: str, table: pa.Table) -> None:
        columns = ", ".join(
            f'"{each}" INTEGER PRIMARY KEY' if each == "key" else f'"{each}"'
            for each in table.column_names
        )
        places = ", ".join("?" * table.num_columns)
        self._connection.execute(f'CREATE TABLE "{name}" ({columns})')
        values = zip(*(_plain(column) for column in table.columns), strict=True)
        self._connection.executemany(f'INSERT INTO "{name}" VALUES ({places})', values)
        for end in {"src", "dst"} & set(table.column_names):
            other = "dst" if end == "src" else "src"
            self._connection.execute(f'CREATE INDEX "{name}_{end}" ON "{name}" ({end}, {other})')

    def ask(self, question: str) -> list[float]:
        params = dict(social.PARAMS.get(question, {}))
        return [row[-1] for row in self._connection.execute(QUESTIONS[question], params)]

    def find(self, key: int) -> int:
        [(age,)] = self._connection.execute(POINT, {"key": key})
        return int(age)


def _plain(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = (
        column.cast(pa.utf8()) if pa.types.is_date(column.type) else column
    ).to_pylist()
    return values


def make() -> Sqlite:
    return Sqlite()
