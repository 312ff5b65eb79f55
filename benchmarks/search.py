"""Full text, vectors and both fused, in Omnigraph, plain Lance and LanceDB.

Each system runs in a process of its own, on the same documents: random words of a skewed
distribution, and vectors around random centres. The recall of vectors is against all distances.
Scores of full text differ between systems, so those answers are not compared. `lancedb` takes part
when it is installed; it fuses both rankings itself, as Omnigraph does. Plain Lance fuses nothing.

    python -m benchmarks.search NAME    measure one system and print its figures as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents import ASKED, Documents, make_documents
from benchmarks.harness import Figure, is_quick, measure
from benchmarks.peers.searching import MODULES, Searcher, open_searcher

REPEAT = 3 if is_quick() else 15
SECONDS_MAX = 900


def run() -> Iterator[Figure]:
    for name in MODULES:
        command = [sys.executable, "-m", "benchmarks.search", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
        if done.returncode != 0:
            raise RuntimeError(f"{name} failed: {done.stderr.strip()[-2_000:]}")
        found: list[dict[str, Any]] | None = json.loads(done.stdout.splitlines()[-1])
        if found is None:
            print(f"{name} is not installed: it is left out", file=sys.stderr)
        yield from (Figure(**each) for each in found or ())


def _measure(name: str) -> list[Figure] | None:
    searcher = open_searcher(name)
    if searcher is None:
        return None
    documents = make_documents(2_000 if is_quick() else 50_000)
    subject = f"{name} {searcher.version}"
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        figures = list(
            measure("load", lambda: searcher.load(documents, top), repeat=1, subject=subject)
        )
        figures += _ask(searcher, documents, subject)
        figures += _after_commits(searcher, documents, subject)
        figures += _after_opens(searcher, documents, top, subject)
    return figures


def _ask(searcher: Searcher, documents: Documents, subject: str) -> Iterator[Figure]:
    """Each kind of search, warm, with other words and vectors each time."""
    for kind, ask in _kinds(searcher):
        for number in range(3):
            ask(documents, number)
        numbers = iter(range(REPEAT))
        search = partial(_ask_next, ask, documents, numbers)
        yield from measure(kind, search, repeat=REPEAT, subject=subject)
    found = [set(searcher.nearest(each)) for each in documents.vectors_asked]
    true = [set(each) for each in documents.find_nearest()]
    recall = np.mean([len(one & other) / ASKED for one, other in zip(found, true, strict=True)])
    yield Figure("recall of the nearest ten", float(recall), "x", subject=subject)


def _after_commits(searcher: Searcher, documents: Documents, subject: str) -> Iterator[Figure]:
    """The first search after a commit of one document."""
    for kind, ask in _kinds(searcher):
        search = partial(ask, documents)
        spans: list[list[Figure]] = []
        for number in range(3 if is_quick() else 7):
            searcher.add(f"{kind}-{number}", documents)
            name = f"{kind}, after a commit of one"
            spans.append(list(measure(name, partial(search, number), repeat=1, subject=subject)))
        yield from _join(spans)


def _after_opens(
    searcher: Searcher, documents: Documents, top: Path, subject: str
) -> Iterator[Figure]:
    """The first search of a handle that was just opened, in a process that has searched before."""
    for kind, ask in _kinds(searcher):
        spans: list[list[Figure]] = []
        for number in range(3 if is_quick() else 5):
            searcher.open_again(top)
            search = partial(ask, documents, number)
            spans.append(list(measure(f"{kind}, after an open", search, repeat=1, subject=subject)))
        yield from _join(spans)


def _join(spans: list[list[Figure]]) -> Iterator[Figure]:
    """One figure of several single measurements."""
    for figures in zip(*spans, strict=True):
        values = [each.value for each in figures]
        first = asdict(figures[0]) | {
            "value": float(np.median(values)),
            "least": min(values),
            "most": max(values),
            "repeat": len(values),
        }
        yield Figure(**first)


def _kinds(searcher: Searcher) -> Iterator[tuple[str, Any]]:
    yield "full text", lambda documents, n: searcher.match(documents.texts_asked[n])
    yield "vectors", lambda documents, n: searcher.nearest(documents.vectors_asked[n])
    if searcher.has_hybrid:
        yield (
            "hybrid",
            lambda documents, n: searcher.fuse(
                documents.texts_asked[n], documents.vectors_asked[n]
            ),
        )


def _ask_next(ask: Any, documents: Documents, numbers: Iterator[int]) -> None:
    ask(documents, next(numbers) % len(documents.texts_asked))


if __name__ == "__main__":
    measured = _measure(sys.argv[1])
    print(json.dumps(None if measured is None else [asdict(each) for each in measured]))
