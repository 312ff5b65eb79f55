"""What a terminal shows while a command works on many rows."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import omnigraph as og
from omnigraph.cli import main, progress
from omnigraph.cli.progress import describe_progress
from omnigraph.pipeline.progress import LoadProgress

SCHEMA = "node Person { name: String @key  age: I32 }"
WIDER = "node Person { name: String @key  age: I64 }"


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self) -> bool:
        return True


def person(number: int, age: int | None = None) -> dict[str, object]:
    return {"type": "Person", "data": {"name": f"p{number}", "age": number if age is None else age}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with og.init(tmp_path / "g.omni", schema=SCHEMA, self_care=False) as graph:
        graph.load([person(number) for number in range(20)], mode="append")
        graph.create_branch("work")
        changed = [person(0, age=99), *(person(number) for number in range(1, 30))]
        graph.load(changed, mode="merge", branch="work")
    return tmp_path / "g.omni"


def watch(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a command on a terminal that is patient enough: what it said of its progress."""
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0)
    screen = Terminal()
    with (
        patch.object(sys, "argv", ["omnigraph", *arguments]),
        patch.object(sys, "stderr", screen),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert not ended.value.code
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())


def test_a_terminal_shows_what_a_merge_and_a_schema_change_are_at(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = tmp_path / "wider.pg"
    wider.write_text(WIDER)
    store = ["--store", str(path)]

    compared = watch(monkeypatch, "branch", "diff", "main", "work", *store)
    merged = watch(monkeypatch, "branch", "merge", "work", "--into", "main", *store)
    changed = watch(monkeypatch, "schema", "apply", "--schema", str(wider), *store)
    quiet = watch(monkeypatch, "branch", "diff", "main", "work", *store, "--quiet")

    assert "comparing: comparing 1 of 1, 20 rows" in compared
    assert "merging: writing 1 of 1, 1 row" in merged
    assert "applying: writing 1 of 1, 30 rows" in changed
    assert "comparing" not in quiet


def test_progress_is_a_line_of_what_is_known() -> None:
    assert describe_progress(LoadProgress("writing", 3, 12, 2_000)) == "writing 3 of 12, 2,000 rows"
    assert describe_progress(LoadProgress("checking")) == "checking"
