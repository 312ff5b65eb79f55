"""What a file format has to do: cut a file into ranges, and read a range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from omnigraph.dataclass import dataclass
from omnigraph.pipeline.binding import RowRules
from omnigraph.pipeline.blocks import Block
from omnigraph.pipeline.input_files import Options
from omnigraph.pipeline.model import Range, RowsRange


@dataclass(frozen=True, slots=True)
class TypedFile:
    """A file whose rows are of one type. `size` is in bytes, as stored."""

    path: str
    size: int
    rules: RowRules


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """The ranges of a file; `weight` is about how many bytes it is once unpacked.

    `notes` say what was guessed about it.
    """

    ranges: tuple[Range, ...]
    weight: int
    notes: tuple[str, ...] = ()


class FileFormat(Protocol):
    """One way to store rows of a type in a file."""

    @property
    def name(self) -> str:
        """What a `RowsRange` calls the format."""

    def plan(self, file: TypedFile, part_bytes: int, options: Options) -> PlannedFile:
        """Cut a file into ranges of about `part_bytes`.

        Raises:
            BadRequestError: It cannot be read, or its columns do not fit its type.
        """

    def read(self, range_: RowsRange, part_bytes: int, options: Options) -> Iterator[Block]:
        """Yield the blocks of a range that `plan` made."""
