"""Progress of upkeep: how many of its steps are done, and which one runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.json_form import JsonForm

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class UpkeepProgress(JsonForm):
    """`done` of `total` steps are behind; `step` is a table, a branch or a piece of work."""

    done: int
    total: int
    step: str


OnProgress: TypeAlias = Callable[[UpkeepProgress], None]


def track(
    items: Collection[Item], on_progress: OnProgress | None, name: Callable[[Item], str], *last: str
) -> Iterator[Item]:
    """Yield the items, each reported before; `last` are the steps that come behind all of them."""
    total = len(items) + len(last)
    for done, item in enumerate(items):
        if on_progress is not None:
            on_progress(UpkeepProgress(done, total, name(item)))
        yield item
    if on_progress is not None and last:
        on_progress(UpkeepProgress(len(items), total, last[0]))
