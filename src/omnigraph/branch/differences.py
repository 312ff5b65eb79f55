"""Differences: the rows in which two versions of a table differ, as row ids of both sides."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.dataclass import dataclass

SCHEMA = pa.schema([("id", pa.utf8()), ("before", pa.uint64()), ("after", pa.uint64())])


@dataclass(frozen=True, slots=True)
class Differences:
    """Rows by id, with the row id on each side, null where the row is not there. Sorted by id."""

    rows: pa.Table

    @property
    def ids(self) -> pa.StringArray:
        return self.rows["id"].combine_chunks()

    def inserts(self) -> pa.Table:
        return self.rows.filter(self.rows["before"].is_null())

    def deletes(self) -> pa.Table:
        return self.rows.filter(self.rows["after"].is_null())

    def updates(self) -> pa.Table:
        is_update = pc.and_(self.rows["before"].is_valid(), self.rows["after"].is_valid())
        return self.rows.filter(is_update)

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many inserts, updates and deletes there are."""
        inserts, deletes = self.rows["before"].null_count, self.rows["after"].null_count
        return inserts, self.rows.num_rows - inserts - deletes, deletes

    def list_parts(self, start: str | None = None) -> Iterator[pa.Table]:
        """The rows from an id on."""
        if start is None:
            yield self.rows
        else:
            yield self.rows.filter(pc.greater_equal(self.rows["id"], start))

    def __len__(self) -> int:
        return int(self.rows.num_rows)


NO_DIFFERENCES = Differences(SCHEMA.empty_table())
