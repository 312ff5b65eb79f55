"""The text of a log: commits, and below each of them what it changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import typer

from omnigraph.catalog.step_text import describe_step
from omnigraph.cli.graph_commands import Json
from omnigraph.wire import LogPart

SIGNS = {"insert": "+", "update": "~", "delete": "-"}
VALUE_CHARACTERS = 60
"""Longer values are cut; `--json` has them whole."""
_COUNTS = {"inserts": "inserted", "updates": "updated", "deletes": "deleted"}


def read_detail(*, patch: bool, stat: bool, changes: int | None) -> Json:
    """What --patch, --stat and --changes ask for."""
    if patch and stat:
        raise typer.BadParameter("give --patch or --stat: a patch has the counts as well")
    if changes is not None and not patch:
        raise typer.BadParameter("it goes with --patch", param_hint="--changes")
    return {"detail": "patch" if patch else "stat" if stat else None, "changes": changes}


def is_filtered(asked: LogPart) -> bool:
    """Whether commits between those of the log may be left out, so that no lines join them."""
    return any(value is not None for name, value in asked.filters.items() if name != "limit")


def log_lines(found: Json, head: Callable[[Json], str]) -> Iterator[str]:
    """Each commit as `head` describes it, and what it changed."""
    for commit in found["commits"]:
        yield head(commit)
        yield from patch_lines(commit)
    yield from found.get("notes", ())


def patch_lines(commit: Json) -> Iterator[str]:
    """What a commit changed, indented; nothing when that was not asked for."""
    for table in commit.get("stat", ()):
        counts = [f"{table[name]} {word}" for name, word in _COUNTS.items() if table[name]]
        yield f"    {table['table_key']}: {', '.join(counts)}"
    yield from (f"    schema: {describe_step(step)}" for step in commit.get("schema_steps", ()))
    yield from (f"    {_describe_record(each)}" for each in commit.get("changes", ()))
    if commit.get("is_cut"):
        yield f"    … more: omnigraph commit changes {commit['graph_commit_id']}"
    yield from (f"    {note}" for note in commit.get("notes", ()))


def _describe_record(record: Json) -> str:
    what = f"{SIGNS[record['op']]} {record['kind']}:{record['type']['name']} {record['id']!r}"
    before, after = (_values_of(record.get(side)) for side in ("before", "after"))
    if record["op"] == "delete":
        return what
    if record["op"] == "insert":
        values = [f"{name}: {cut(value)}" for name, value in after.items() if value is not None]
    else:
        values = [
            f"{name}: {cut(before.get(name))} → {cut(after.get(name))}"
            for name in dict.fromkeys((*before, *after))
            if before.get(name) != after.get(name)
        ]
    return f"{what} {', '.join(values)}".rstrip()


def _values_of(image: Json | None) -> Json:
    return {} if image is None else {**image["properties"], **(image.get("endpoints") or {})}


def cut(value: Any) -> str:
    """A value on one line, perhaps its beginning only."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARACTERS else f"{text[: VALUE_CHARACTERS - 1]}…"
