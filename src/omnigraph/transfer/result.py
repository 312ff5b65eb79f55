"""What a transfer between two stores returns."""

from __future__ import annotations

from omnigraph.dataclass import dataclass
from omnigraph.display import show_html, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.json_form import JsonForm


@dataclass(frozen=True, slots=True)
class TransferResult(JsonForm):
    """What a transfer moved: files and bytes that the receiver did not have, and commits.

    `tags` came along; `refused_tags` did not, since the name stands for another commit at the
    receiver, or the state of theirs is gone there. `renewed` are fetched branches that were made
    again or reset at the source, and `pruned` those that are gone there.
    """

    files: int = 0
    bytes: int = 0
    commits: int = 0
    tags: tuple[str, ...] = ()
    refused_tags: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()

    def __add__(self, other: TransferResult) -> TransferResult:
        return TransferResult(
            self.files + other.files,
            self.bytes + other.bytes,
            self.commits + other.commits,
            _join(self.tags, other.tags),
            _join(self.refused_tags, other.refused_tags),
            _join(self.renewed, other.renewed),
            _join(self.pruned, other.pruned),
        )

    make_sheet = make_field_sheet
    __repr__ = show_text
    _repr_html_ = show_html


def _join(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """The names of both, each once."""
    return tuple(dict.fromkeys((*one, *other)))
