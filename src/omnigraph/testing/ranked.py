"""Rankings of the reference evaluator: distances, BM25 and their fusion, one entity at a time.

Words are told apart by spelling alone: texts that are compared have no two forms of one word.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from omnigraph.ir.expressions import Bm25, Nearest, Ranking, Rrf
from omnigraph.testing.returned import Entity, Row, identify, named, tie_of
from omnigraph.testing.walks import PathEntity

Value = Callable[[object], Any]
"""The value of a literal or a parameter."""
Nodes = Mapping[str, Mapping[str, Entity]]
"""The nodes of each type, by id."""
_K1, _B, _FUSION = 1.2, 0.75, 60


def score(ranking: Nearest | Bm25, entity: Entity, nodes: Nodes, value: Value) -> float | None:
    """The distance or the relevance of an entity; null without a vector, and of nothing."""
    query = value(ranking.query)
    if not entity or (query is None and isinstance(ranking, Nearest)):
        return None
    if isinstance(ranking, Nearest):
        vector = entity.get(ranking.target.property)
        return None if vector is None else math.dist(vector, map(_to_single, query))
    texts = [node.get(ranking.target.property) for node in nodes[identify(entity)[0]].values()]
    return _relevance(entity.get(ranking.target.property), query or "", texts)


def rank_rows(
    ranking: Ranking, rows: list[Row], limit: int | None, nodes: Nodes, value: Value
) -> list[tuple[Row, float]]:
    """The rows of entities that can be ranked, best first, and the score of each."""
    target = (ranking.first if isinstance(ranking, Rrf) else ranking).target.variable
    entities = list({identify(row[target]): row[target] for row in rows if row[target]}.values())
    if isinstance(ranking, Rrf):
        best = _fuse(ranking, entities, limit, nodes, value)
    else:
        best = _rank(ranking, entities, nodes, value)
    places = {identify(entity): place for place, (entity, _) in enumerate(best)}
    kept = [row for row in rows if row[target] and identify(row[target]) in places]
    names = _tie_names(rows)
    kept.sort(key=lambda row: (places[identify(row[target])], [tie_of(row[n]) for n in names]))
    return [(row, best[places[identify(row[target])]][1]) for row in kept]


def _rank(
    ranking: Nearest | Bm25, entities: Iterable[Entity], nodes: Nodes, value: Value
) -> list[tuple[Entity, float]]:
    scored = [(entity, score(ranking, entity, nodes, value)) for entity in entities]
    is_distance = isinstance(ranking, Nearest)
    found = [(e, s) for e, s in scored if s is not None and (is_distance or s > 0)]
    return sorted(found, key=lambda each: (each[1] if is_distance else -each[1], tie_of(each[0])))


def _fuse(
    ranking: Rrf, entities: list[Entity], limit: int | None, nodes: Nodes, value: Value
) -> list[tuple[Entity, float]]:
    given = None if ranking.k is None else value(ranking.k)
    k = _FUSION if given is None else given
    sums: dict[Any, tuple[Entity, float]] = {}
    for arm in (ranking.first, ranking.second):
        found = _rank(arm, entities, nodes, value)
        for rank, (entity, _) in enumerate(found[:limit] if isinstance(arm, Nearest) else found, 1):
            before = sums.get(identify(entity), (entity, 0.0))[1]
            sums[identify(entity)] = entity, before + 1 / (k + rank)
    # Dicts keep the order of the first arm, then of the second: so do ties.
    return sorted(sums.values(), key=lambda each: -each[1])


def _tie_names(rows: list[Row]) -> list[str]:
    """The names of edges and paths, then those of nodes.

    A variable of an `optional` is null in some rows: those where it is bound say what it is.
    """
    edges = {
        name
        for row in rows
        for name in named(row)
        if "src" in row[name] or isinstance(row[name], PathEntity)
    }
    names = {name for row in rows for name in named(row)}
    return sorted(names, key=lambda name: (name not in edges, name))


def _relevance(text: str | None, query: str, texts: list[str | None]) -> float:
    documents = [_words(each) for each in texts if each is not None]
    words = _words(text or "")
    mean = sum(map(len, documents)) / max(len(documents), 1)
    total = 0.0
    for word in _words(query):
        count, having = words.count(word), sum(word in each for each in documents)
        if count:
            idf = math.log1p((len(documents) - having + 0.5) / (having + 0.5))
            damping = _K1 * (1 - _B + _B * len(words) / mean)
            total += idf * count * (_K1 + 1) / (count + damping)
    return total


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def _to_single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])
