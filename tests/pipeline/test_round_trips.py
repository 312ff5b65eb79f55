"""What is exported loads back equal: every type and format, with values that are hard to spell."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.depth import depth

WORDS = [
    *("", " ", "a", "null", "NULL", "NA", "N/A", "None", "\\N", "true", "0", "-0", "1e3", "NaN"),
    *('"', '""', "'", ",", ";", "\t", "|", "\n", "\r\n", "\r", "\\", "\\n", '"a", b', "=1+1", "//"),
    *("\ufeff", "\u2028", "\x85", "é", "e\u0301", "𝄞", "\x00", "\x1a", "\x7f", " x ", "[1]", "{}"),
    *("base64:aGk=", "2020-01-01", "x" * 3000),
]
INTEGERS = {"I32": (-(2**31), 2**31 - 1), "I64": (-(2**63), 2**63 - 1)}
NATURALS = {"U32": (0, 2**32 - 1), "U64": (0, 2**64 - 1)}
FLOATS = [0.0, -0.0, 0.1, 1e-310, 5e-324, 1.7976931348623157e308, -2.5, 1 / 3, 123456789.123456789]
SCALARS = ["String", "Bool", *INTEGERS, *NATURALS, "F32", "F64", "Date", "DateTime", "enum(a, b_c)"]
FORMS = [
    *(f"jsonl{ending}" for ending in ("", ".gz", ".bz2", ".zst")),
    *(f"csv{ending}" for ending in ("", ".gz", ".bz2", ".zst")),
    "parquet",
]


def make_text(rng: random.Random) -> str:
    if rng.random() < 0.6:
        return rng.choice(["", rng.choice(WORDS), rng.choice(WORDS)])
    points = (rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]) for _ in "abc")
    return "".join(map(chr, points)) + rng.choice(WORDS)


def make_date(rng: random.Random) -> str:
    day = rng.choice([date.min, date.max, date.min + timedelta(rng.randrange(3_652_058))])
    return day.isoformat()


def make_time(rng: random.Random) -> str:
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000)
    seconds = rng.randrange(int((last - datetime.min).total_seconds()))
    when = datetime.min + timedelta(seconds=seconds, milliseconds=rng.randrange(1000))
    return rng.choice([datetime.min, last, when]).isoformat(timespec="milliseconds") + "Z"


def make_float(rng: random.Random) -> float:
    return rng.choice(
        [*FLOATS, rng.uniform(-1e9, 1e9), rng.random() * 10.0 ** rng.randrange(-300, 300)]
    )


def make_small_float(rng: random.Random) -> float:
    small: float = struct.unpack("f", struct.pack("f", rng.uniform(-1e9, 1e9)))[0]
    return rng.choice([0.0, -0.0, 1e-45, 3.4028234663852886e38, small])


def make_integer(low: int, high: int) -> Callable[[random.Random], int]:
    return lambda rng: rng.choice([low, high, 0, rng.randint(low, high)])


def make_blob(rng: random.Random) -> str:
    data = rng.randbytes(rng.choice([0, 1, 100, 70_000]))
    return f"base64:{base64.b64encode(data).decode()}"


MAKERS: dict[str, Callable[[random.Random], Any]] = {
    "String": make_text,
    "Bool": lambda rng: rng.random() < 0.5,
    **{name: make_integer(*bounds) for name, bounds in {**INTEGERS, **NATURALS}.items()},
    "F32": make_small_float,
    "F64": make_float,
    "Date": make_date,
    "DateTime": make_time,
    "enum(a, b_c)": lambda rng: rng.choice(["a", "b_c"]),
    "Blob": make_blob,
    "Vector(3)": lambda rng: [make_small_float(rng) for _ in range(3)],
}
TYPES = [*SCALARS, *(f"[{each}]" for each in SCALARS if "enum" not in each), "Blob", "Vector(3)"]


def make_value(rng: random.Random, type_: str) -> Any:
    if type_.endswith("?"):
        return None if rng.random() < 0.3 else make_value(rng, type_[:-1])
    if type_.startswith("["):
        return [make_value(rng, type_[1:-1]) for _ in range(rng.choice([0, 1, 3]))]
    return MAKERS[type_](rng)


def make_properties(rng: random.Random) -> dict[str, str]:
    """Some types, optional or not; a name says nothing about its type."""
    chosen = rng.sample(TYPES, rng.randint(1, len(TYPES)))
    return {f"p{n}": each + rng.choice(["", "?", "?"]) for n, each in enumerate(chosen)}


def make_graph(rng: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """A schema with a node type and two edge types, one with a key, and records of it."""
    bodies = [make_properties(rng) for _ in range(3)]
    node, keyed, free = ("  ".join(f"{name}: {type_}" for name, type_ in b.items()) for b in bodies)
    schema = (
        f"node Thing {{ key: String @key  {node} }}\n"
        f"edge Keyed: Thing -> Thing {{ {keyed}  @key(src, dst) }}\n"
        f"edge Free: Thing -> Thing {{ {free} }}\n"
    )

    def data(body: dict[str, str]) -> dict[str, Any]:
        return {name: make_value(rng, type_) for name, type_ in body.items()}

    keys = sorted({make_text(rng) or "k" for _ in range(rng.randint(1, 30))})
    records: list[dict[str, Any]] = [
        {"type": "Thing", "data": {"key": key, **data(bodies[0])}} for key in keys
    ]
    for name, body in (("Keyed", bodies[1]), ("Free", bodies[2])):
        pairs = {(rng.choice(keys), rng.choice(keys)) for _ in range(rng.randint(1, 10))}
        records += [
            {"edge": name, "from": source, "to": target, "data": data(body)}
            for source, target in sorted(pairs)
        ]
    return schema, records


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(depth(1, 40)))
def test_what_is_exported_loads_back_equal(form: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{form} {seed}")
    schema, records = make_graph(rng)
    path = tmp_path / (f"out.{form}" if form.startswith("jsonl") else "out")
    with og.init(tmp_path / "first", schema=schema, durability="process") as graph:
        graph.load(records, mode="append")
        graph.export(path, format="jsonl" if form.startswith("jsonl") else form)
        first = list(graph.export())
        again = graph.load(path, mode="overwrite")
    with og.init(tmp_path / "second", schema=schema, durability="process") as graph:
        graph.load(path, mode="append")
        second = list(graph.export())

    assert len(first) == len(records)
    assert repr(second) == repr(first)  # by its spelling: -0.0 is not 0.0
    assert again.commit_id is None
