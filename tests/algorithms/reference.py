"""Graph algorithms in plain Python, one node at a time: what the fast ones are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

Rows = list[dict[str, Any]]
Edges = set[tuple[str, str]]


def pagerank(nodes: list[str], edges: Edges, iterations: int) -> dict[str, float]:
    rank = dict.fromkeys(nodes, 1 / len(nodes))
    out = Counter(source for source, _ in edges)
    for _ in range(iterations):
        lost = sum(rank[node] for node in nodes if not out[node])
        rank = {
            node: 0.15 / len(nodes)
            + 0.85 * (sum(rank[s] / out[s] for s, t in edges if t == node) + lost / len(nodes))
            for node in nodes
        }
    return rank


def neighbours(nodes: list[str], edges: Edges) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {node: set() for node in nodes}
    for source, target in edges:
        if source != target:
            found[source].add(target)
            found[target].add(source)
    return found


def components(nodes: list[str], edges: Edges) -> dict[str, str]:
    near = neighbours(nodes, edges)
    return {node: min(distances(near, [node])) for node in nodes}


def distances(near: dict[str, set[str]], starts: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(starts, 0)
    reached = list(found)
    for node in reached:
        for other in sorted(near[node]):
            if other not in found:
                found[other] = found[node] + 1
                reached.append(other)
    return found


def communities(nodes: list[str], edges: Edges, rounds: int) -> dict[str, str]:
    near = neighbours(nodes, edges)
    label = {node: node for node in nodes}
    for _ in range(rounds):
        before = label
        label = {
            node: min(
                (-count, name) for name, count in Counter(before[n] for n in near[node]).items()
            )[1]
            if near[node]
            else before[node]
            for node in nodes
        }
    return label


def triangles(nodes: list[str], edges: Edges) -> dict[str, int]:
    near = neighbours(nodes, edges)
    return {
        node: sum(b in near[a] for a, b in combinations(sorted(near[node]), 2)) for node in nodes
    }
