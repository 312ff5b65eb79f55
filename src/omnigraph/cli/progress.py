"""Progress: something to look at while a command takes longer than a second.

Only on a terminal, only on stderr, and only once the second has passed: quick commands draw nothing
and load nothing for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

PATIENCE_SECONDS = 1.0


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show that work goes on, and for how long."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_spin, args=(what, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _spin(what: str, done: threading.Event) -> None:
    if done.wait(PATIENCE_SECONDS):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        done.wait()


def counted(
    items: Iterable[Item], what: str, total: int | None = None, *, quiet: bool = False
) -> Iterator[Item]:
    """Yield the items and show how many have passed."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            yield item
            bar.advance(task)
