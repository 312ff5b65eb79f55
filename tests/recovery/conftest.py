"""A zygote and the graphs that crash cells start from, once for each worker of the suite."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from omnigraph.testing.crash import CrashRunner, Outcome

WORK = "tests.recovery.work"

Rows: TypeAlias = dict[str, dict[str, list[str]]]

# Self-care counts the fragments of the manifest: one more write would make it come too early.
ACKED = defaultdict(lambda: "acked", compaction="")


class Cellar:
    """Runs work on a graph at one place and puts the graph back as it was between cells.

    A graph with branches cannot be moved (Lance writes the place of a fork's parent into it), so
    every graph of a kind is used where it was built.
    """

    def __init__(self, runner: CrashRunner, folder: Path) -> None:
        self.runner = runner
        self.folder = folder
        self._rows: dict[tuple[str, str, int], dict[str, Rows]] = {}

    def fresh(self, template: str) -> str:
        """The place of an unharmed graph of this kind."""
        place = self.folder / template.replace(" ", "-")
        saved = place.with_name(f"{place.name}.saved")
        if not saved.exists():
            self._build(str(place), template)
            shutil.copytree(place, saved)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(saved, place)
        return str(place)

    def _build(self, place: str, template: str) -> None:
        kind = "branch" if template == "orphan fork" else template
        self.run("build", path=place, kind=kind).result()
        if template == "orphan fork":
            for count in (1, 2, 5):
                # Each leaves one more fork that no branch owns.
                arm = f"fork.after_create=kill@{count}"
                died = self.run("write", path=place, writer="branch insert", count=5, arm=arm)
                assert died.was_killed

    def run(self, work: str, **arguments: object) -> Outcome:
        return self.runner.run(f"{WORK}:{work}", arguments)

    def rows(self, template: str, writer: str, count: int) -> dict[str, Rows]:
        """What the graph shows before the write, and after the whole of it."""
        key = (template, writer, count)
        if key not in self._rows:
            place = self.fresh(template)
            arguments = {"path": place, "writer": writer, "count": count, "acked": ACKED[writer]}
            self._rows[key] = self.run("look_around", **arguments).result()
        return self._rows[key]


@pytest.fixture(scope="session")
def runner() -> Iterator[CrashRunner]:
    with CrashRunner([WORK, "tests.warm"]) as zygote:
        yield zygote


@pytest.fixture(scope="session")
def cellar(runner: CrashRunner, tmp_path_factory: pytest.TempPathFactory) -> Cellar:
    return Cellar(runner, tmp_path_factory.mktemp("cells"))
