"""Checks by exchange: the same answers, texts and order as in one process, whatever is wrong."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import OmnigraphError
from omnigraph.pipeline.engine import CHECK_ROWS_VARIABLE, PART_BYTES_VARIABLE
from omnigraph.pipeline.exchange import cut_blocks, join_blocks
from omnigraph.pipeline.occurrences import NO_ROW, Occurrences
from tests.depth import depth
from tests.pipeline.conftest import SPARK, person, unclaimed_files
from tests.ready import copy_ready

SCHEMA = """
node Person { name: String @key  email: String? @unique }
node Team { name: String @key }
edge Knows: Person -> Person
edge MemberOf: Person -> Team @card(1..2) { @unique(src, dst) }
"""
Records = list[dict[str, Any]]


def team(name: str) -> dict[str, Any]:
    return {"type": "Team", "data": {"name": name}}


def edge(name: str, source: str, target: str, id_: str) -> dict[str, Any]:
    return {"edge": name, "from": source, "to": target, "data": {"id": id_}}


BASE: Records = [
    *(person(f"p{n}", email=f"{n}@x") for n in range(12)),
    *(team(f"t{n}") for n in range(4)),
    *(edge("Knows", f"p{n}", f"p{n + 1}", f"k{n}") for n in range(11)),
    *(edge("MemberOf", f"p{n}", f"t{n % 4}", f"m{n}") for n in range(8)),
]

PLANTS = ["repeat", "take", "miss", "unique", "clash", "card", "move", "nodes only", "pair"]


def plant(kind: str, size: int, chance: random.Random) -> Records:
    """Records that break one rule, `size` times or so."""
    match kind:
        case "repeat":
            return [person("twin", email=None) for _ in range(size)]
        case "take":
            return [person(f"p{n % 12}") for n in chance.sample(range(12), min(size, 12))]
        case "miss":
            ends = ["nobody", f"none{chance.randrange(5)}"]
            return [edge("Knows", "p1", chance.choice(ends), f"x{n}") for n in range(size)]
        case "unique":
            return [person(f"u{n}", email=f"same{n % 2}") for n in range(size)]
        case "clash":
            return [person(f"c{n}", email="3@x") for n in range(size)]
        case "card":
            return [edge("MemberOf", f"n{n % 3}", f"t{n % 4}", f"y{n}") for n in range(size)]
        case "move":
            return [edge("MemberOf", "n0", f"t{n % 4}", f"m{n}") for n in range(min(size, 8))]
        case "pair":
            return [edge("MemberOf", f"n{n}", "t0", f"z{n // 2}") for n in range(min(size, 9))]
        case _:
            return [person("p3"), person("p4")]


def make_load(seed: int) -> tuple[str, str, Records]:
    """Mode, what to do with bad records, and records: good ones with some plants among them."""
    chance = random.Random(seed)
    mode = ["append", "merge", "overwrite"][seed % 3]
    kinds = chance.sample(PLANTS, k=chance.choice([0, 1, 1, 2, 3]))
    if kinds == ["nodes only"]:
        return "overwrite", "reject", plant(kinds[0], 2, chance)
    good = [person(f"n{n}", email=f"n{n}@x") for n in range(10)]
    good += [edge("Knows", f"n{n}", f"n{n + 1}", f"g{n}") for n in range(9)]
    # More than are shown: the first hundred must be the same ones.
    bad = [each for kind in kinds for each in plant(kind, chance.choice([2, 9, 120]), chance)]
    if mode == "overwrite":
        good += [record for record in BASE if record not in bad]
    records = good + bad
    chance.shuffle(records)
    return mode, chance.choice(["reject", "reject", "quarantine"]), records


def answer(path: Path, load: tuple[str, str, Records], engine: str) -> list[Any]:
    mode, on_error, records = load
    text = "//\n" + "\n".join(map(json.dumps, records))
    with og.open(path, self_care=False) as graph:
        try:
            result = graph.load(text, mode=mode, on_error=on_error, engine=engine)
            said: Any = (dict(result.tables), result.rows_rejected)
            if result.quarantine:
                said += (sorted(Path(result.quarantine).read_text().splitlines()),)
        except OmnigraphError as error:
            said = (type(error).__name__, str(error))
        assert unclaimed_files(graph) == []
        return [said, sorted(map(str, graph.export()))]


def make_base(path: Path) -> og.Graph:
    graph = og.init(path, schema=SCHEMA, durability="process", self_care=False)
    graph.load(BASE, mode="append")
    return graph


def compare(
    top: Path, monkeypatch: pytest.MonkeyPatch, seed: int, engine: str, parts: int, rows: int
) -> str:
    load = make_load(seed)
    for name in ("here", "exchanged"):
        copy_ready("exchange", make_base, top / f"{name}{seed}")
    # The same parts: of more than a hundred bad rows, those of the first parts are shown.
    monkeypatch.setenv(PART_BYTES_VARIABLE, str(parts))
    expected = answer(top / f"here{seed}", load, "inline")
    monkeypatch.setenv(CHECK_ROWS_VARIABLE, str(rows))
    assert answer(top / f"exchanged{seed}", load, engine) == expected, load
    monkeypatch.delenv(CHECK_ROWS_VARIABLE)
    return str(expected[0][0])


@pytest.mark.slow
def test_an_exchange_answers_as_one_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads with every violation planted, in all modes, also very many of one key."""
    answers = Counter(
        compare(tmp_path, monkeypatch, seed, "inline", 1_500, 1 + seed % 5)
        for seed in range(depth(12, 200))
    )

    # Some are refused for bad rows, some for a taken id, and some are loaded.
    assert len(answers) >= 3, answers


@pytest.mark.slow
@pytest.mark.parametrize("engine", [SPARK])
def test_an_exchange_by_spark_answers_as_one_process_does(
    engine: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where most buckets get nothing."""
    for seed in range(depth(3, 30)):
        compare(tmp_path, monkeypatch, seed, engine, 4_000, 20)


@given(st.lists(st.none() | st.sampled_from("abcdefg")), st.integers(1, 5), st.integers(1, 4))
def test_occurrences_are_the_same_however_a_column_is_cut(
    texts: list[str | None], step: int, count: int
) -> None:
    """Cut into parts, each part into buckets, and merged in any order."""
    column = pa.array(texts, pa.utf8())
    parts = [
        Occurrences.of(column.slice(at, step), np.arange(at, min(at + step, len(texts))))
        for at in range(0, len(texts), step)
    ]
    tables = [each.to_table() for each in reversed(parts)]
    blocks = [
        block
        for table in tables
        for block in cut_blocks("k", table, np.arange(table.num_rows) % count)
    ]

    joined = join_blocks(blocks).get("k")
    found = Occurrences.read(joined)

    rows: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        if text is not None:
            rows.setdefault(text, []).append(row)
    expected = {
        text: (each[0], each[1] if len(each) > 1 else NO_ROW, each[-1], len(each))
        for text, each in rows.items()
    }
    numbers = zip(found.first, found.second, found.last, found.count, strict=True)
    assert dict(zip(found.keys.to_pylist(), map(tuple, numbers), strict=True)) == expected
