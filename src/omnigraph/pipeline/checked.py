"""Checked ids: what the first round of the checks found, in this process or by exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import pyarrow as pa

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.check import Violation
from omnigraph.pipeline.columns import RowNumbers
from omnigraph.pipeline.key_items import CommittedRows


@dataclass(frozen=True, slots=True)
class CheckedIds:
    """Ids that occur twice, ids that are taken (row number, table, id), and rows that go.

    `lost` are loaded rows that a later record of their id replaces, `replaced` are committed rows
    that a merge replaces, by table. An exchange leaves them in files: `lost_in` has one per range.
    """

    repeated: list[Violation] = field(default_factory=list)
    repeated_total: int = 0
    taken: list[tuple[int, str, str]] = field(default_factory=list)
    lost: RowNumbers = field(default_factory=lambda: np.empty(0, np.int64))
    lost_in: Mapping[int, str] = field(default_factory=dict)
    replaced: Mapping[str, pa.Table] = field(default_factory=dict)
    replaced_in: tuple[CommittedRows, ...] = ()

    @property
    def has_lost(self) -> bool:
        return len(self.lost) > 0 or len(self.lost_in) > 0
