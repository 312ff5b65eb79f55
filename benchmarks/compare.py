"""The social graph in Omnigraph and its peers: load, space, a look-up and the nine questions.

Each system runs in a process of its own, on the same frames; answers are compared with ours.
`OMNIGRAPH_BENCH_PEOPLE` sets the size: 100,000 people by default, 2.4 million follows.

    python -m benchmarks.compare NAME    measure one system and print its figures as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import social
from benchmarks.harness import Figure, is_quick, measure
from benchmarks.peers import MODULES, open_peer

PEOPLE = int(os.environ.get("OMNIGRAPH_BENCH_PEOPLE", "400" if is_quick() else str(social.PEOPLE)))
REPEAT = 3 if is_quick() else 11
SECONDS_MAX = 900
SYSTEMS_VARIABLE = "OMNIGRAPH_BENCH_SYSTEMS"
"""The systems to measure, with commas between them; all that are installed by default."""


def run() -> Iterator[Figure]:
    answers: dict[str, list[float]] = {}
    for name in os.environ.get(SYSTEMS_VARIABLE, ",".join(MODULES)).split(","):
        found = _run_alone(name)
        if found is None:
            continue
        yield from (Figure(**each) for each in found["figures"])
        for question, answer in found["answers"].items():
            expected = answers.setdefault(question, answer)
            if not np.allclose(expected, answer):
                raise AssertionError(f"{question}: {name} answers {answer}, not {expected}")


def _run_alone(name: str) -> dict[str, Any] | None:
    """What one system measured of itself; None, with a remark, when it is not installed."""
    command = [sys.executable, "-m", "benchmarks.compare", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    if done.returncode != 0:
        raise RuntimeError(f"{name} failed: {done.stderr.strip()[-2_000:]}")
    found: dict[str, Any] | None = json.loads(done.stdout.splitlines()[-1])
    if found is None:
        print(f"{name} is not installed: it is left out", file=sys.stderr)
    return found


def _measure(name: str) -> dict[str, Any] | None:
    peer = open_peer(name)
    if peer is None:
        return None
    frames = social.frames(PEOPLE)
    subject = f"{name} {peer.version}"
    figures: list[Figure] = []
    answers: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        figures += measure("load", lambda: peer.load(frames, top), repeat=1, subject=subject)
        for question in peer.questions:
            answers[question] = sorted(peer.ask(question))
            figures += measure(
                question, partial(peer.ask, question), repeat=REPEAT, subject=subject
            )
        keys = iter(np.random.default_rng(11).integers(0, PEOPLE, 10 * REPEAT).tolist() * 2)
        peer.find(0)
        figures += measure(
            "look up one person", lambda: peer.find(next(keys)), repeat=10 * REPEAT, subject=subject
        )
        size = sum(each.stat().st_size for each in top.rglob("*") if each.is_file())
        figures.append(Figure("space on disk", size / 1e6, "MB", subject=subject))
    return {"figures": [asdict(each) for each in figures], "answers": answers}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
