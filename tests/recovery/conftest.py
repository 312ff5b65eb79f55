"""A zygote and the graphs that crash cells start from, once for each worker of the suite."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from omnigraph.testing.crash import CrashRunner, Outcome
from tests.recovery import work

WORK = "tests.recovery.work"

Rows: TypeAlias = dict[str, dict[str, list[str]]]

# Self-care counts the fragments of the manifest: one more write would make it come too early.
ACKED = defaultdict(lambda: "acked", compaction="")


@dataclass(frozen=True)
class State:
    """A graph that a write may lead to, and its rows."""

    place: str
    rows: Rows


class Cellar:
    """Has graphs for cells to start from, and runs what dies in processes of their own.

    Each cell gets a place that no other one had: what this process has read of a graph that was
    there before could hide what died there. What only looks does so in this process, which has
    Lance running.
    """

    def __init__(self, runner: CrashRunner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder
        self._places = 0
        self._states: dict[tuple[object, ...], State] = {}

    def fresh(self, template: str) -> str:
        """The place of an unharmed graph of this kind."""
        saved = self.folder / template.replace(" ", "-")
        if not saved.exists():
            self._build(str(saved), template)
        self._places += 1
        place = self.folder / f"cell-{self._places}"
        shutil.copytree(saved, place, copy_function=shutil.copyfile)
        return str(place)

    def _build(self, place: str, template: str) -> None:
        work.build(place, "branch" if template == "orphan fork" else template)
        if template == "orphan fork":
            for count in (1, 2, 5):
                # Each leaves one more fork that no branch owns.
                arm = f"fork.after_create=kill@{count}"
                died = self.run("write", path=place, writer="branch insert", count=5, arm=arm)
                assert died.was_killed

    def run(self, name: str, **arguments: object) -> Outcome:
        return self.runner.run(f"{WORK}:{name}", arguments)

    def lead(self, template: str, writer: str, count: int, *, to: str) -> State:
        """The graph before the write, if it is to be `old`, else after the whole of it."""
        acked = ACKED[writer]
        key = (template, acked) if to == "old" else (template, acked, writer, count)
        if key not in self._states:
            place = self.fresh(template)
            work.write(place, "" if to == "old" else writer, count, acked=acked)
            self._states[key] = State(place, work.look(place))
        return self._states[key]


@pytest.fixture(scope="session")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner([WORK, "tests.warm"]) as zygote:
        yield zygote


@pytest.fixture(scope="session")
def cellar(runner: CrashRunner, tmp_path_factory: pytest.TempPathFactory) -> Cellar:
    return Cellar(runner, tmp_path_factory.mktemp("cells"))
