"""Progress: how far a load or other heavy work is, for a callable or shown as a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from omnigraph.dataclass import dataclass
from omnigraph.storage.work_progress import progress_to


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is. `total` is 0 while it is unknown."""

    stage: str
    done: int = 0
    total: int = 0
    rows: int = 0
    elapsed_seconds: float = 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0


Listener: TypeAlias = Callable[[LoadProgress], None]


class Reporter:
    """Keeps the figures of one load and passes them on."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._started = time.monotonic()
        self._shown = LoadProgress("starting")

    @property
    def is_heard(self) -> bool:
        """Whether there is a listener."""
        return self._listener is not None

    def stage(self, name: str, total: int = 0, rows: int | None = None) -> None:
        """Begin a new stage; with `rows`, count them from there."""
        self._show(stage=name, done=0, total=total, rows=self._shown.rows if rows is None else rows)

    def update(self, done: int, rows: int | None = None) -> None:
        """Report how many parts of the stage are done, and how many rows in all."""
        self._show(done=done, rows=self._shown.rows if rows is None else rows)

    def _show(self, **changes: str | int) -> None:
        elapsed = time.monotonic() - self._started
        self._shown = replace(self._shown, elapsed_seconds=elapsed, **changes)  # type: ignore[arg-type]
        if self._listener is not None:
            self._listener(self._shown)


@contextmanager
def reporting(progress: Listener | bool | None) -> Iterator[Reporter]:
    """Report to a callable, to a bar on the terminal (True), or not at all."""
    if progress is not True:
        yield Reporter(progress or None)
        return
    with _bar() as listener:
        yield Reporter(listener)


@contextmanager
def reporting_work(progress: Listener | bool | None) -> Iterator[None]:
    """Report, in the same way, the rows that the block compares or writes."""
    if not progress:
        yield
        return
    with reporting(progress) as reporter, progress_to(reporter):
        yield


@contextmanager
def _bar() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rows]:,} rows  {task.fields[speed]:,.0f} rows/s"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task("starting", total=None, rows=0, speed=0.0)

        def show(progress: LoadProgress) -> None:
            bar.update(
                task,
                description=progress.stage,
                completed=progress.done,
                total=progress.total or None,
                rows=progress.rows,
                speed=progress.rows_per_second,
            )

        yield show
