"""Progress: a spinner or a bar for commands that take longer than a second.

Drawn only on a terminal, and on stderr. Quick commands draw nothing and do not import rich.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

DELAY_SECONDS = 1.0


@contextmanager
def show_spinner(what: str | None, *, is_shown: bool) -> Iterator[None]:
    """Show a spinner and the time elapsed while the block runs; without `what`, show nothing."""
    if what is None or not is_shown:
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
    if done.wait(DELAY_SECONDS):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(what, total=None)
        done.wait()


def track(items: Iterable[Item], what: str, *, is_shown: bool) -> Iterator[Item]:
    """Yield the items and show how many have passed."""
    if not is_shown:
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        for item in items:
            yield item
            bar.advance(task)
