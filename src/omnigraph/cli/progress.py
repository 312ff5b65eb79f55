"""Progress: a spinner or a bar for commands that take longer than a second.

Drawn only on a terminal, and on stderr. Quick commands draw nothing and do not import rich.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from omnigraph.pipeline.progress import Listener, LoadProgress

Item = TypeVar("Item")

DELAY_SECONDS = 1.0
REDRAW_SECONDS = 0.2


@contextmanager
def show_spinner(what: str | None, *, is_shown: bool) -> Iterator[Listener | None]:
    """Show a spinner and the time elapsed while the block runs; without `what`, show nothing.

    What it gives is told how far the work is, and shows that.
    """
    if what is None or not is_shown:
        yield None
        return
    done, shown = threading.Event(), [what]
    watcher = threading.Thread(target=_spin, args=(lambda: shown[0], done), daemon=True)
    watcher.start()

    def tell(progress: LoadProgress) -> None:
        shown[0] = f"{what}: {describe_progress(progress)}"

    try:
        yield tell
    finally:
        done.set()
        watcher.join()


def describe_progress(progress: LoadProgress) -> str:
    """How far some work is, in a line."""
    from omnigraph.display import count_noun

    parts = f" {progress.done} of {progress.total}" if progress.total else ""
    rows = f", {count_noun(progress.rows, 'row')}" if progress.rows else ""
    return f"{progress.stage}{parts}{rows}"


def _spin(describe: Callable[[], str], done: threading.Event) -> None:
    if done.wait(DELAY_SECONDS):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(describe(), total=None)
        is_done = False
        while not is_done:
            is_done = done.wait(REDRAW_SECONDS)
            bar.update(task, description=describe())


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
