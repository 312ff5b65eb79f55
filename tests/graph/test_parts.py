"""The public calls of a graph are in parts that do not depend on the order of inheritance."""

from __future__ import annotations

from collections import Counter

from omnigraph.graph import Graph


def test_no_two_parts_of_a_graph_define_the_same_name() -> None:
    parts = [each for each in Graph.__mro__ if each not in (Graph, object)]
    names = Counter(name for part in parts for name in vars(part) if not name.startswith("__"))

    assert len(parts) > 10
    assert {name for name, count in names.items() if count > 1} == set()
