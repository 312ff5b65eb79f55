"""What calls return shows itself: every class of a result, and the results of a small graph."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.display import LINES_MAX, show_text
from omnigraph.display_fields import make_field_sheet
from omnigraph.graph.graph import Graph

ONE_LINE = {"Check", "CheckFailure", "CommitChanges", "CommitPatch", "RecoveryRecord", "Remote"}
"""Calls return lists of these: each item is one line of the list."""
PACKAGES = ("branch", "catalog", "executor", "graph", "manifest", "transfer", "upkeep", "write")
STARTS = ("omnigraph.errors", "omnigraph.pipeline", *(f"omnigraph.{each}." for each in PACKAGES))
SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
ADD = "query add($n: String) { insert Person { name: $n } }"


def find_classes() -> dict[str, type]:
    for package in PACKAGES:
        path = [str(Path(og.__file__).parent / package)]
        for module in pkgutil.iter_modules(path, f"omnigraph.{package}."):
            importlib.import_module(module.name)
    importlib.import_module("omnigraph.pipeline.preview")
    return {
        name: each
        for module in [value for key, value in sys.modules.items() if key.startswith(STARTS)]
        for name, each in vars(module).items()
        if inspect.isclass(each) and each.__module__ == module.__name__ and is_dataclass(each)
    }


def list_returned() -> set[str]:
    """The names in the return annotations of every public call and property of a graph."""
    found: set[str] = set()
    for name in dir(Graph):
        member = inspect.getattr_static(Graph, name)
        call = inspect.unwrap(getattr(member, "fget", None) or getattr(Graph, name))
        if not name.startswith("_") and callable(call):
            found |= set(re.findall(r"[A-Z]\w+", str(call.__annotations__.get("return", ""))))
    return found


def test_every_class_that_a_call_returns_shows_itself() -> None:
    classes = find_classes()
    returned = {name for name in list_returned() if name in classes}

    without = {name for name in returned if not hasattr(classes[name], "_repr_html_")}

    assert len(returned) > 25
    # A scan is read as a stream of batches; a picture is shown by its own rules.
    assert without - {"TableScan", "Picture"} == ONE_LINE


@pytest.mark.slow
def test_the_results_of_everyday_calls_are_short_and_say_what_happened(tmp_path: Path) -> None:
    with og.init(tmp_path / "g", schema=SCHEMA, durability="process") as graph:
        rows = [{"type": "Person", "data": {"name": f"p{n}"}} for n in range(40)]
        shown: dict[str, Any] = {
            "load result": graph.load(rows, mode="append"),
            "mutation result": graph.mutate(ADD, params={"n": "<b>ada</b>"}),
            "blame": graph.blame("Person", "p1")["name"],
        }
        graph.create_branch("review")
        graph.mutate(ADD, params={"n": "zoe"}, branch="review")
        shown["merge result"] = graph.merge("review")
        shown["optimize report"] = graph.optimize()
        shown["graph commit"] = graph.commits()[0]
        shown["tag"] = graph.tag("v1")

        texts = {name: show_text(each) for name, each in shown.items()}
        for name, text in texts.items():
            lines = text.split("\n")
            assert lines[0] == name
            assert 2 <= len(lines) <= LINES_MAX
            assert max(map(len, lines)) <= 160
            assert "<b>" not in shown[name]._repr_html_().replace(f"<b>{name}</b>", "")
    assert "outcome: " in texts["merge result"]
    assert repr(shown["merge result"]) == texts["merge result"]
    assert "\n" not in repr(shown["graph commit"])  # a list of commits has one line for each


@dataclass
class Part:
    name: str
    rows: int


@dataclass
class Whole:
    made_at: int
    parts: Sequence[Part]
    by_name: Mapping[str, Part]
    words: Sequence[str]
    nothing: Sequence[str] = ()
    _hidden: int = 1

    make_sheet = make_field_sheet


def test_fields_become_facts_and_tables_and_a_long_table_is_cut() -> None:
    parts = [Part(f"n{place}", place) for place in range(100)]
    whole = Whole(0, parts, {"a": parts[1]}, ["x"] * 3)

    lines = show_text(whole).split("\n")

    assert lines[:2] == ["whole", "made at: 1970-01-01 00:00:00"]
    assert "name | rows" in lines
    assert any(line.startswith("by name | name | rows") for line in lines)
    assert any(re.fullmatch(r"… and \d+ more", line) for line in lines)
    assert len(lines) <= LINES_MAX
    assert "hidden" not in "".join(lines)
