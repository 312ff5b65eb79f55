"""Checks by exchange: the same answers, texts and order as in one process, whatever is wrong."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Hashable
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
from omnigraph.pipeline.hashes import find_repeated, hash_texts
from omnigraph.pipeline.occurrences import NO_ROW, Occurrences
from tests.depth import cover, depth, sample
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

MODES = ["append", "merge", "overwrite"]
PLANTS = ["repeat", "take", "miss", "unique", "clash", "card", "move", "pair", "nodes only"]


def plant(kind: str, size: int, chance: random.Random) -> Records:
    """Records that break one rule, `size` times or so."""
    match kind:
        case "repeat":
            pairs = [person(f"r{n}") for n in range(size)] if size > 9 else []
            return [person("twin", email=None) for _ in range(size // 3 + 2)] + 2 * pairs
        case "take":
            return [person(f"p{n % 12}") for n in chance.sample(range(12), min(size, 12))]
        case "miss":
            ends = ["nobody", *(f"none{n}" for n in range(size))]
            return [edge("Knows", "p1", ends[n % size], f"x{n}") for n in range(2 * size)]
        case "unique":
            same = ["same", *(f"same{n}" for n in range(size // 2))]
            return [person(f"u{n}", email=same[n % len(same)]) for n in range(2 * size)]
        case "clash":
            return [person(f"c{n}", email="3@x") for n in range(size)]
        case "card":
            # Two new edges of p1 are one too many, because of the committed one.
            sources = [f"{'pn'[n % 2]}{1 + n // 4 % 3}" for n in range(size)]
            return [edge("MemberOf", each, f"t{n % 4}", f"y{n}") for n, each in enumerate(sources)]
        case "move":
            return [edge("MemberOf", "n0", f"t{n % 4}", f"m{n}") for n in range(min(size, 8))]
        case "pair":
            return [edge("MemberOf", f"n{n}", "t0", f"z{n // 2}") for n in range(min(size, 9))]
        case _:
            return [person("p3"), person("p4")]


Case = tuple[str, str, list[str], int]
"""Mode, what to do with bad records, which plants, and how many of each."""

CASES: list[Case] = [
    *((mode, "reject", PLANTS[:-1], 3) for mode in MODES),
    *((mode, "quarantine", PLANTS[:-1], 2) for mode in MODES),
    ("merge", "reject", ["repeat", "take"], 20),
    ("merge", "reject", ["move"], 8),
    ("append", "reject", ["take"], 9),
    ("overwrite", "reject", ["nodes only"], 2),
    # More than are shown: the first hundred must be the same ones.
    ("append", "reject", ["repeat"], 120),
    ("append", "reject", ["miss", "card"], 120),
    ("merge", "reject", ["unique", "clash"], 120),
]


def show_features(case: Case) -> set[Hashable]:
    mode, on_error, kinds, size = case
    return {(mode, on_error), *kinds, size}


def list_cases(seeds: range) -> list[Case]:
    """Some of those above that show everything; in a deep run all, and random ones."""
    made: list[Case] = []
    for seed in seeds:
        chance = random.Random(seed)
        kinds = chance.sample(PLANTS[:-1], k=chance.choice([0, 1, 1, 2, 3]))
        on_error = chance.choice(["reject", "reject", "quarantine"])
        made.append((MODES[seed % 3], on_error, kinds, chance.choice([2, 9, 120])))
    return [*cover(CASES, show_features), *made]


def make_records(case: Case) -> Records:
    """Good records with the plants among them."""
    mode, _, kinds, size = case
    chance = random.Random(str(case))
    bad = [each for kind in kinds for each in plant(kind, size, chance)]
    if kinds == ["nodes only"]:
        return bad
    good = [person(f"n{n}", email=f"n{n}@x") for n in range(10)]
    good += [edge("Knows", f"n{n}", f"n{n + 1}", f"g{n}") for n in range(9)]
    if mode == "overwrite":
        good += [record for record in BASE if record not in bad]
    chance.shuffle(bad)
    return [*good[::2], *bad, *good[1::2]]


def answer(path: Path, case: Case, engine: str) -> list[Any]:
    mode, on_error, _, _ = case
    text = "//\n" + "\n".join(map(json.dumps, make_records(case)))
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
    top: Path, monkeypatch: pytest.MonkeyPatch, case: Case, engine: str, parts: int, rows: int
) -> str:
    for name in ("here", "exchanged"):
        shutil.rmtree(top / name, ignore_errors=True)
        copy_ready("exchange", make_base, top / name)
    # The same parts: of more than a hundred bad rows, those of the first parts are shown.
    monkeypatch.setenv(PART_BYTES_VARIABLE, str(parts))
    expected = answer(top / "here", case, "inline")
    monkeypatch.setenv(CHECK_ROWS_VARIABLE, str(rows))
    assert answer(top / "exchanged", case, engine) == expected, case
    monkeypatch.delenv(CHECK_ROWS_VARIABLE)
    return str(expected[0][0])


@pytest.mark.slow
def test_an_exchange_answers_as_one_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads with every violation planted, in all modes, also very many of one key."""
    # Less than a part has: a part is emitted in several slices.
    monkeypatch.setattr("omnigraph.pipeline.run_checks.INLINE_ROWS", 7)
    answers = Counter(
        compare(tmp_path, monkeypatch, case, "inline", 1_500, 1 + number % 5)
        for number, case in enumerate(list_cases(range(depth(0, 200))))
    )

    # Some are refused for bad rows, some for a taken id, and some are loaded.
    assert {"BadRowsError", "KeyConflict"} < set(answers), answers


@pytest.mark.slow
@pytest.mark.parametrize("engine", [SPARK])
def test_an_exchange_by_spark_answers_as_one_process_does(
    engine: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where most buckets get nothing."""
    cases = sample([CASES[1], *CASES], every=7)
    for case in cases:
        compare(tmp_path, monkeypatch, case, engine, 4_000, 20)


@given(st.lists(st.text("ab\0é", max_size=20), max_size=60), st.integers(0, 3))
def test_every_repeated_text_is_a_candidate_and_few_others_are(
    texts: list[str], start: int
) -> None:
    """Long and short ones, with zero bytes at their ends, also in a slice of a longer column."""
    column = pa.array(texts, pa.utf8()).slice(start)
    counts = Counter(column.to_pylist())
    repeated = [place for place, text in enumerate(column.to_pylist()) if counts[text] > 1]

    assert find_repeated(column).tolist() == repeated


def test_a_hash_looks_at_every_byte() -> None:
    """Texts that differ in one byte, wherever it is, differ in their hashes."""
    base = "x" * 40
    texts = [base[:at] + letter + base[at + 1 :] for at in range(40) for letter in "ab"]
    texts += ["x" * length for length in range(41)]

    assert len(set(hash_texts(pa.array(texts)).tolist())) == len(texts)


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
