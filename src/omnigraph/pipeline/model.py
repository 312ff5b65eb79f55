"""Model: what goes into a load and what comes out of each step, as values that may travel.

A range is the part of the input that one task reads. Everything here is small and picklable: it
crosses to Spark workers and back. Rows travel only in a load that stays in one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog import Catalog
from omnigraph.dataclass import dataclass
from omnigraph.embed import EmbedSource
from omnigraph.pipeline.embed import EmbedPlan, FillCounts
from omnigraph.storage.unattached import UnattachedFragment
from omnigraph.write.bad_rows import BadRow

Ordinals: TypeAlias = npt.NDArray[np.int64]
"""Records of one type in one range, counted from 0 in input order."""


class LoadMode(StrEnum):
    """How loaded records meet the rows that are there."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


class OnError(StrEnum):
    """What happens to a load with bad rows."""

    REJECT = "reject"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class TextForm:
    """How texts of a file spell values. None means: as JSON does, or found in the file."""

    delimiter: str | None = None
    encoding: str | None = None
    nulls: tuple[str, ...] = ()
    decimal: str = "."
    dates: str | None = None
    lists: str | None = None
    header: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowForm:
    """How the columns of a file become the rows of one table.

    `columns` are pairs of a column and the property it fills (`id`, `src` and `dst` too), in the
    order of the file; `constants` fill properties that the file does not have. `names` are all
    columns of the file, where it has a header.
    """

    table_key: str
    columns: tuple[tuple[str, str], ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    names: tuple[str, ...] = ()
    text: TextForm = TextForm()


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of a plain file that start at or after byte `start` and before byte `end`.

    With a `form` each line is one row of its table; without, each names its type.
    """

    path: str
    start: int
    end: int
    form: RowForm | None = None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """A whole file read from front to back: compressed, or with records over several lines."""

    path: str
    is_document: bool = False
    form: RowForm | None = None


@dataclass(frozen=True, slots=True)
class RowsRange:
    """Rows of one table in a file of a format (`formats/`), which counts `start` and `end`.

    `first` is the line or row of the file that the range begins with; `skipped` rows of what is
    counted come before it, and `count` rows are read, all when it is None.
    """

    path: str
    format: str
    form: RowForm
    start: int = 0
    end: int | None = None
    first: int = 1
    skipped: int = 0
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TextRange:
    """Records handed over as bytes: some of the lines of a text."""

    data: bytes = field(repr=False)
    is_document: bool = False


@dataclass(frozen=True, slots=True)
class RecordsRange:
    """Records handed over as Python values; `first` is the number of the first of them."""

    first: int
    records: tuple[Any, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class FrameRange:
    """Typed rows of one table; `first` is the number of the first of them."""

    table_key: str
    first: int
    rows: pa.Table = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class ParquetRange:
    """Typed rows of one table, in a file; `first` is the number of the first of them."""

    table_key: str
    path: str
    first: int = 1


Range: TypeAlias = (
    LineRange | StreamRange | RowsRange | TextRange | RecordsRange | FrameRange | ParquetRange
)


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What every task of a load has to know.

    With `scratch_uri` rows are written there as unattached fragments, without it they come back in
    memory. Relative paths of the input are below `directory`, wherever a task runs. A preview
    stores nothing, so it computes no vectors.
    """

    catalog: Catalog
    mode: LoadMode
    on_error: OnError
    scratch_uri: str | None
    storage_options: Mapping[str, str] = field(repr=False)
    part_bytes: int
    input_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: str = ""
    ignores_members: bool = False
    is_preview: bool = False
    embed: EmbedPlan = field(default_factory=lambda: EmbedPlan({}, EmbedSource()), repr=False)


@dataclass(frozen=True, slots=True)
class RangeTask:
    """One range to read. Records named in `dropped`, by table key, are left out.

    So are those named in the files `dropped_in`: very many do not travel.
    """

    index: int
    range: Range
    dropped: Mapping[str, Ordinals] = field(default_factory=dict)
    dropped_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with one record. `line` counts from 1 within its range."""

    line: int
    bad: BadRow
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that was left out, as it came, and why; with its id, where it can be told."""

    line: int
    record: str
    reasons: tuple[str, ...]
    type_name: str = ""
    entity_id: str | None = None


@dataclass(frozen=True, slots=True)
class StagedPart:
    """Good rows of one table from one range: in memory (`rows`) or written (`fragments`).

    `ordinals` says which record each row was; None when it is every one from `first_ordinal` on.
    """

    range_index: int
    table_key: str
    row_count: int
    has_made_ids: bool
    first_ordinal: int = 0
    ordinals: Ordinals | None = None
    rows: pa.Table | None = field(default=None, repr=False)
    fragments: tuple[UnattachedFragment, ...] = ()

    def ordinal(self, row: int) -> int:
        """Which record of its type in the range a row was."""
        return int(self.find_ordinals(np.array([row]))[0])

    def find_ordinals(self, rows: Ordinals) -> Ordinals:
        """The same of several rows."""
        return self.first_ordinal + rows if self.ordinals is None else self.ordinals[rows]


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What one task made of its range. `lines` is how many line ends it has."""

    index: int
    lines: int = 0
    parts: tuple[StagedPart, ...] = ()
    findings: tuple[Finding, ...] = ()
    findings_total: int = 0
    rejected: tuple[Rejected, ...] = ()
    vectors: FillCounts = field(default_factory=dict)
    needs_document: bool = False

    @property
    def rows(self) -> int:
        return sum(part.row_count for part in self.parts)
