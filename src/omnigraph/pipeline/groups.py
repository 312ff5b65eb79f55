"""Groups: the records of a block by type, and what is no record of the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import EntityType
from omnigraph.dataclass import dataclass
from omnigraph.pipeline.model import Finding
from omnigraph.write.bad_rows import BadRow


@dataclass(slots=True)
class Group:
    """All records of one type in a block, in input order: as Arrow columns, or one by one.

    `ends` holds `from` and `to` of edges, row for row. `lines` and `text` say where a record is
    and how it reads. `reread` gives the same records one by one, for reasons.
    """

    entity: EntityType
    lines: npt.NDArray[np.int64]
    text: Callable[[int], str]
    columns: pa.Table | None = None
    records: Sequence[Mapping[str, Any]] = ()
    ends: tuple[pa.Array, pa.Array] | None = None
    reread: Callable[[], Parsed] | None = None


@dataclass(slots=True)
class Parsed:
    """The groups of a block, and what is no record of the schema, as it came.

    `needs_document` says that a record goes over several lines, which a range of lines cannot
    follow: the file has to be read from front to back.
    """

    groups: list[Group] = field(default_factory=list)
    unknown: list[tuple[Finding, str]] = field(default_factory=list)
    needs_document: bool = False

    def refuse(
        self, line: int, reason: str, text: str, column: int | None = None, name: str = "record"
    ) -> None:
        """Count a record that cannot be read as one of the schema."""
        bad = BadRow(line, name, None, "", reason)
        self.unknown.append((Finding(line, bad, column), text))
