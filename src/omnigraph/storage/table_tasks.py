"""Table tasks: heavy work on one version of a table, cut up and done wherever there is room.

A handle stays in its process, so a task gets the name of the version and opens it anew. It reads,
or writes files beside the table and returns what names them; the caller commits. Files of a task
that fails, is repeated or is cancelled belong to no version, and a cleanup removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from omnigraph.dataclass import dataclass
from omnigraph.storage.content import Spread
from omnigraph.storage.handles import Fragment, ShownColumns, TableHandle
from omnigraph.storage.location import TableLocation, graph_root

if TYPE_CHECKING:
    from omnigraph.storage.tables import TableStorage

Item = TypeVar("Item")
Result = TypeVar("Result")

TASKS_ROWS = 1_000_000
"""Fewer rows are done sooner than their tasks would have started."""
PART_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class TableTasks:
    """Does work on tables of one graph by `spread`."""

    spread: Spread
    root: str
    storage_options: Mapping[str, str]

    def takes(self, handle: TableHandle) -> bool:
        """Whether a table is large enough for tasks."""
        return self.takes_rows(handle.row_count, handle)

    def takes_rows(self, rows: int, *handles: TableHandle) -> bool:
        """Whether so many rows of these tables are enough; what lies in memory no task can open."""
        return rows >= TASKS_ROWS and all(map(_is_stored, handles))

    def run(
        self,
        handle: TableHandle,
        work: Callable[[TableStorage, TableHandle, Item], Result],
        items: Sequence[Item],
        stage: str,
        rows_of: Callable[[Result], int] = lambda _: 0,
    ) -> Sequence[Result]:
        """Call a function for every item, each with the table opened anew: the results in order.

        `stage` is what the progress of the call says meanwhile, with the rows of the results.

        Raises:
            OmnigraphError: What the function raised, or that a task could not run.
        """
        store = _Store(self.root, self.storage_options)
        task = partial(_work_on, store, NamedVersion.of(handle), work)
        return self.spread(task, items, stage, rows_of)


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """One version of a table, by name: what a handle is called where it cannot go."""

    location: TableLocation
    version: int
    shown: ShownColumns | None

    @staticmethod
    def of(handle: TableHandle) -> NamedVersion:
        return NamedVersion(handle.location, handle.version, handle.shown)

    def open(self, tables: TableStorage) -> TableHandle:
        return tables.open_at(self.location, self.version, shown=self.shown)


@dataclass(frozen=True, slots=True)
class _Store:
    """Where the tables are."""

    root: str
    storage_options: Mapping[str, str]


def cut_rows(count: int) -> list[slice]:
    """Rows in parts, each for one task."""
    return [slice(first, first + PART_ROWS) for first in range(0, count, PART_ROWS)]


def cut_fragments(fragments: Iterable[Fragment]) -> list[list[int]]:
    """The ids of neighbouring fragments in groups, each for one task."""
    groups: list[list[int]] = []
    rows = PART_ROWS
    for each in fragments:
        if rows >= PART_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(each.fragment_id)
        rows += each.rows
    return groups


def _is_stored(handle: TableHandle) -> bool:
    return handle.beside is None and not handle.location.uri.startswith("memory:")


def _work_on(
    store: _Store,
    version: NamedVersion,
    work: Callable[[TableStorage, TableHandle, Item], Result],
    item: Item,
) -> Result:
    from omnigraph.storage.tables import TableStorage  # it has what gives work to tasks

    tables = TableStorage(graph_root(store.root), store.storage_options)
    return work(tables, version.open(tables), item)
