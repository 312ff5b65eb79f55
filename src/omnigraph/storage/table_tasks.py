"""Table tasks: heavy work on one version of a table, cut up and done wherever there is room.

A handle stays in its process, so a task gets the name of the version and opens it anew. It writes
files beside the table and returns what names them; the caller commits. Files of a task that fails,
is repeated or is cancelled belong to no version, and a cleanup removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.storage.content import Spread
from omnigraph.storage.handles import ShownColumns, TableHandle
from omnigraph.storage.location import TableLocation, graph_root

if TYPE_CHECKING:
    from omnigraph.storage.tables import TableStorage

Item = TypeVar("Item")
Result = TypeVar("Result")

TASKS_ROWS = 1_000_000
"""A table of fewer rows is done sooner than its tasks would have started."""


@dataclass(frozen=True, slots=True)
class TableTasks:
    """Does work on tables of one graph by `spread`."""

    spread: Spread
    root: str
    storage_options: Mapping[str, str]

    def takes(self, handle: TableHandle) -> bool:
        """Whether a table is large enough for tasks."""
        return handle.row_count >= TASKS_ROWS

    def run(
        self,
        handle: TableHandle,
        work: Callable[[TableStorage, TableHandle, Item], Result],
        items: Sequence[Item],
    ) -> Sequence[Result]:
        """Call a function for every item, each with the table opened anew: the results in order.

        Raises:
            OmnigraphError: What the function raised, or that a task could not run.
        """
        version = _Version(
            self.root, self.storage_options, handle.location, handle.version, handle.shown
        )
        return self.spread(partial(_work_on, version, work), items)


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of a table, by name."""

    root: str
    storage_options: Mapping[str, str]
    location: TableLocation
    version: int
    shown: ShownColumns | None


def _work_on(
    version: _Version, work: Callable[[TableStorage, TableHandle, Item], Result], item: Item
) -> Result:
    from omnigraph.storage.tables import TableStorage  # it uses what gives work to tasks

    tables = TableStorage(graph_root(version.root), version.storage_options)
    handle = tables.open_at(version.location, version.version, shown=version.shown)
    return work(tables, handle, item)
