"""What a transfer between two stores returns."""

from __future__ import annotations

from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.json_form import JsonForm


@dataclass(frozen=True, slots=True)
class TransferResult(JsonForm):
    """What a transfer moved: files and bytes that the receiver did not have, and commits."""

    files: int = 0
    bytes: int = 0
    commits: int = 0

    def __add__(self, other: TransferResult) -> TransferResult:
        return TransferResult(
            self.files + other.files, self.bytes + other.bytes, self.commits + other.commits
        )

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html
